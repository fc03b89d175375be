"""What a sweep varies: where a key is found, which values are refused, values as text."""

import re
from pathlib import Path

import pytest

from tampl.errors import InputError
from tampl.lab.recipes import Axis, parse_setting, read_recipe

TINY = Path(__file__).parents[1] / "tiny.toml"


@pytest.fixture(scope="module")
def recipe():
    return read_recipe(TINY)


@pytest.mark.parametrize(
    ("method", "key", "path"),
    [
        ("jld", "lambda_tr", "methods.jld.lambda_tr"),
        ("jld", "methods.jld.lambda_tr", "methods.jld.lambda_tr"),
        ("jld-sig", "penalty.weight", "methods.jld-sig.penalty.weight"),
        ("tampl", "latent_dim", "model.latent_dim"),
        ("tampl", "model.latent_dim", "model.latent_dim"),
        ("tampl", "batch_size", "training.batch_size"),
        ("tampl", "transition.steps", "model.transition.steps"),
        ("tampl", "transition.learning_rate", "training.transition.learning_rate"),
    ],
)
def test_a_key_is_found_in_the_method_then_the_model_then_training(recipe, method, key, path):
    assert Axis.find(recipe, method, key, values=[3]).path == path


@pytest.mark.parametrize(
    ("key", "values", "words"),
    [
        ("lambda", [1.0], "unknown key `lambda`"),
        ("penalty.weight", [1.0], "unknown key `penalty.weight`"),
        ("methods.tampl.lambda_tr", [1.0], "unknown key `methods.tampl.lambda_tr`"),
        ("model.latent", [1], "unknown key `model.latent`"),
        ("system.beta", [1.0], "unknown key `system.beta`"),
        ("seed", [1], "`training.seed` is no setting"),
        ("lambda_tr", [1.0, -1.0], "`methods.jld.lambda_tr` is -1.0"),
        ("latent_dim", [4, 2.5], "`model.latent_dim` is 2.5"),
        ("latent_dim.x", [4], "unknown key `latent_dim.x`"),
        ("model.latent_dim.x", [4], "`model.latent_dim` is 3; it must be a section"),
        ("lambda_tr", [], "no values"),
        ("lambda_tr", [1.0, 2.0, 1.0], "1.0 twice"),
    ],
)
def test_bad_keys_and_values_are_refused(recipe, key, values, words):
    with pytest.raises(InputError, match=re.escape(words)):
        Axis.find(recipe, "jld", key, values=values)


def test_unknown_method(recipe):
    with pytest.raises(InputError, match="magic"):
        Axis.find(recipe, "magic", "lambda_tr", values=[1.0])


def test_values_are_toml():
    assert parse_setting("a.b=1, 2.5,true") == ("a.b", [1, 2.5, True])
    assert parse_setting('solver="euler","midpoint"')[1] == ["euler", "midpoint"]
    assert parse_setting("hidden=[8,8],[16]")[1] == [[8, 8], [16]]
    assert parse_setting("lambda_tr") == ("lambda_tr", [])
    for text in ("solver=euler", "a=1,,2", "a=[1", "a=1]"):
        with pytest.raises(InputError, match="`set`"):
            parse_setting(text)
