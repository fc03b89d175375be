"""The card of a model: what training writes on it, what a file keeps, what readers see."""

import json

import numpy as np
import pytest
import torch

import tampl
from tampl import InputError, Vector
from tampl.evaluation import Score
from tampl.files import strict_json
from tampl.methods import METHODS
from tampl.models import Card, Origin, load_card, load_model
from tampl.models.card import CITATION
from tampl.models.checkpoint import load_tensors, save_tensors
from tampl.models.model import FORMAT


@pytest.fixture(scope="module")
def walks():
    noise = np.random.default_rng(0).normal(size=(24, 7, 4))
    x = noise.cumsum(axis=1)
    y = np.stack([x.mean(axis=-1), np.repeat(x[:, :1, 0], 7, axis=1)], axis=-1)
    known = [
        tampl.Observable(name="mean", symbol="m", unit="nm", lower=-50),
        tampl.Observable(name="mark", symbol="k"),
    ]
    return tampl.Dataset(x, y, interval=0.5, observables=known, microstate=Vector(size=4))


@pytest.fixture(scope="module")
def fitted(walks):
    train, valid = walks.split(0.75, 0.25, seed=0)
    return METHODS["tampl+"].fit(train, valid, epochs=2, seed=7, device="cpu", progress=False)


def change_header(path, to, **changes):
    """Writes a model's file with another header, checksum included."""
    tensors, header = load_tensors(path, FORMAT)
    header = {key: value for key, value in (header | changes).items() if value is not None}
    save_tensors(to, tensors, header)
    return to


def test_training_says_where_a_model_comes_from(fitted):
    origin = fitted.origin
    assert origin.method == "TamplPlus" and origin.training["seed"] == 7
    assert (origin.trajectories, origin.initial_states, origin.validation_trajectories) == (
        *(18, 18),
        6,
    )
    assert origin.validation == min(
        r["validation"] for r in fitted.history if r["validation"] is not None
    )
    assert origin.versions["torch"] == torch.__version__
    assert fitted.card.parameters == sum(p.numel() for p in fitted.parameters())
    assert fitted.card.landmarks == len(fitted.envelope.landmarks)


def test_a_file_keeps_the_card_and_the_card_needs_no_modules(fitted, tmp_path):
    fitted.origin = fitted.origin.model_copy(update={"notes": "Of four walkers."})
    fitted.save(tmp_path / "model.safetensors")
    again = load_model(tmp_path / "model.safetensors", device="cpu")
    alone = load_card(tmp_path / "model.safetensors")
    assert again.origin == fitted.origin and again.card == alone == fitted.card
    assert alone.markdown() == str(fitted.card) and "Of four walkers." in str(alone)
    fitted.origin = fitted.origin.model_copy(update={"notes": ""})


def test_the_card_of_a_model_with_a_users_encoder_is_read_without_it(walks, tmp_path):
    model = METHODS["tampl"].fit(
        walks, encoder=torch.nn.Linear(4, 8), epochs=1, device="cpu", progress=False
    )
    model.save(tmp_path / "model.safetensors")
    assert load_card(tmp_path / "model.safetensors") == model.card


def test_the_same_training_gives_the_same_file(walks, tmp_path):
    for name in ("a", "b"):
        model = METHODS["tampl"].fit(walks, epochs=1, seed=3, device="cpu", progress=False)
        model.save(tmp_path / name)
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_readers_see_data_training_limits_and_citation(fitted):
    text = str(fitted.card)
    for words in (
        "# Model card: own data",
        "Forecasts m and k from one microstate, of vectors of 4 numbers.",
        "- method: TamplPlus",
        "- latent dimension: 8",
        "- training trajectories: 18",
        "| mean | m | nm | from -50 |  |",
        "| mark | k |  |  | yes |",
        "- seed: 7",
        "Not evaluated on a test set yet.",
        "beyond a time of 3 a forecast goes on",
        "Forecasts keep the initial value of k.",
        CITATION,
    ):
        assert words in text, words
    assert "None" not in text and "{" not in text
    plain = json.loads(strict_json(fitted.card.as_dict()))
    assert plain["model"]["latent_dim"] == 8 and plain["origin"]["trajectories"] == 18


def test_scores_are_added_by_an_evaluation(fitted, walks):
    evaluation = tampl.evaluate(fitted, walks, progress=False)
    origin = fitted.origin.scored(
        evaluation.scores, crps=evaluation.crps, coverage={"0.8": 0.75, "0.95": float("nan")}
    )
    assert origin.scores["model"]["rmse"] == evaluation.rmse
    assert origin.coverage == {"0.8": 0.75}
    card = Card(fitted.description, fitted.card.spec, origin, parameters=1, landmarks=None)
    for words in (
        f"| model | {evaluation.rmse:.4g} |",
        "| persistence |",
        "80 % band 75 %",
        f"CRPS against single trajectories: {evaluation.crps:.4g}.",
        "It has no envelope",
    ):
        assert words in str(card), words
    assert "Not evaluated" not in str(card)


def test_a_score_that_is_not_finite_is_left_out():
    origin = Origin().scored({"model": Score(float("nan"), None)}, crps=float("inf"))
    assert origin.scores == {"model": {"rmse": None, "mmd": None}} and origin.crps is None


def test_a_model_from_before_there_were_cards_is_read(fitted, tmp_path):
    fitted.save(tmp_path / "new")
    old = change_header(tmp_path / "new", tmp_path / "old", origin=None)
    model = load_model(old, device="cpu")
    assert model.origin == Origin()
    assert "older than model cards" in str(model.card) and "- method" not in str(model.card)


@pytest.mark.parametrize(
    ("origin", "words"),
    [
        ({"trajectories": "many"}, "`trajectories` is 'many'"),
        ({"format": "tampl-card-9"}, "`format` is 'tampl-card-9'"),
        ({"colour": "red"}, "unknown key `colour`"),
        ({"scores": {"model": 1.0}}, "`scores.model` is 1.0"),
        ([1, 2], "is not what is needed here"),
        ("text", "is not what is needed here"),
    ],
)
def test_a_damaged_card_is_one_line(fitted, tmp_path, origin, words):
    fitted.save(tmp_path / "good")
    bad = change_header(tmp_path / "good", tmp_path / "bad", origin=origin)
    for load in (load_model, load_card):
        with pytest.raises(InputError, match=words) as caught:
            load(bad)
        assert str(caught.value).startswith(f"{bad} does not hold the model it describes")
        assert "\n" not in str(caught.value)


def test_each_model_of_an_ensemble_has_its_own_card(walks):
    pair = METHODS["tampl"].fit(walks, epochs=1, models=2, device="cpu", progress=False)
    assert [model.origin.training["seed"] for model in pair.models] == [42, 43]
