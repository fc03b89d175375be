"""Recipes: what is shipped reads, what is written reads back, what is wrong is one clear line."""

import re
import tomllib
from pathlib import Path

import pytest
import tomli_w

from tampl.errors import InputError
from tampl.lab.commented import write_commented
from tampl.lab.recipes import Recipe, read_recipe, resolve_system
from tampl.methods import METHODS
from tampl.systems import SIRS

RECIPES = sorted((Path(__file__).parents[2] / "recipes").glob("*.toml"))
MINIMAL = """
[system]
name = "sirs"

[data]
train = 4
valid = 2
test = 2
members = 3

[model]
latent_dim = 3
encoder = { name = "lattice" }
transition = { name = "flow" }
readout = { name = "mlp" }

[training]
epochs = 1
"""


def put(tables, key, value):
    """Sets a dotted key of nested tables; None removes it."""
    *path, last = key.split(".")
    for name in path:
        tables = tables.setdefault(name, {})
    if value is None:
        del tables[last]
    else:
        tables[last] = value


def write(folder, **changes):
    """Writes the minimal recipe with some keys changed, dots in a key spelled `__`."""
    tables = tomllib.loads(MINIMAL)
    for key, value in changes.items():
        put(tables, key.replace("__", "."), value)
    path = folder / "recipe.toml"
    path.write_text(tomli_w.dumps(tables), encoding="utf-8")
    return path


def refuses(path, *words):
    """The recipe is refused in one line that names the file and says `words`, in order."""
    with pytest.raises(InputError, match=".*".join(map(re.escape, words))) as caught:
        read_recipe(path)
    message = str(caught.value)
    assert str(path) in message and "\n" not in message


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_shipped_recipes_read(path):
    recipe = read_recipe(path)
    assert isinstance(recipe, Recipe) and recipe.name == path.stem
    assert recipe.methods.keys() == METHODS.keys()
    # Without published weights, which only a network has.
    encoder = recipe.model.blank().encoder.build(recipe.system.description.microstate, 2)
    assert sum(parameter.numel() for parameter in encoder.parameters()) > 0


def test_the_recipes_are_there():
    assert {"sirs", "sirs-mini"} <= {path.stem for path in RECIPES}


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_what_is_written_reads_back_equal(path, tmp_path):
    recipe = read_recipe(path)
    recipe.write(tmp_path / path.name)
    again = read_recipe(tmp_path / path.name)
    assert again == recipe and again.as_tables() == recipe.as_tables()
    assert list(tmp_path.iterdir()) == [tmp_path / path.name]


def test_shipped_values_arrive():
    recipe = read_recipe(next(path for path in RECIPES if path.stem == "sirs"))
    assert (recipe.system.size, recipe.system.beta, recipe.system.mu) == (100, 8.0, 0.15)
    assert recipe.data.train == 1600 and recipe.model.latent_dim == 16
    assert recipe.methods["tampl"].lambda_tr == 0.1


def test_a_resolved_recipe_states_its_defaults(tmp_path):
    recipe = read_recipe(write(tmp_path))
    tables = recipe.as_tables()
    assert tables["system"]["size"] == SIRS().size
    assert tables["methods"].keys() == METHODS.keys()
    # A number of the file that is a default today stays what it is when the default moves.
    # At their defaults these are left out, as in runs from before there were others.
    left_out = {"lag", "order", "partitions"}
    assert tables["training"].keys() == type(recipe.training).model_fields.keys() - left_out


def test_every_setting_survives_writing(tmp_path):
    path = write(
        tmp_path,
        system__clusters=[3],
        system__beta=1 / 3,
        data__shard_size=7,
        data__seed=2**63 - 1,
        model__encoder__widths=[5, 6],
        model__readout={"name": "mlp", "hidden": []},
        training__transition={"average": 0.5},
        methods__tampl={"lambda_tr": 1e-300},
    )
    recipe = read_recipe(path)
    recipe.write(path)
    again = read_recipe(path)
    assert again == recipe
    assert again.system.beta == 1 / 3 and again.system.clusters == (3,)
    assert again.data.shard_size == 7 and again.data.seed == 2**63 - 1
    assert again.model.readout.hidden == () and again.training.transition.average == 0.5


def test_another_seed_changes_the_seed_alone(tmp_path):
    recipe = read_recipe(write(tmp_path))
    assert recipe.with_seed(None) is recipe
    other = recipe.with_seed(7)
    assert other.training.seed == 7 and other != recipe
    assert other.with_seed(recipe.training.seed) == recipe
    with pytest.raises(InputError, match=r"`training\.seed` is -1"):
        recipe.with_seed(-1)


def test_methods_are_chosen_by_name(tmp_path):
    recipe = read_recipe(write(tmp_path))
    assert recipe.method("tampl") is recipe.methods["tampl"]
    with pytest.raises(InputError, match=r"`method` is 'magic'; choose one of .*tampl"):
        recipe.method("magic")


def test_systems_are_resolved_by_name():
    assert resolve_system("sirs", {"size": 9}) == SIRS(size=9)
    with pytest.raises(InputError, match=r"`system\.name` is 'ising'; choose one of sirs"):
        resolve_system("ising", {})


def test_files_that_are_not_there_are_refused(tmp_path):
    refuses(tmp_path / "nowhere.toml", "recipe", "does not exist")
    refuses(tmp_path, "recipe", "does not exist")


@pytest.mark.parametrize("text", ["", "\n\n", "# only a comment\n"])
def test_an_empty_file_is_refused(tmp_path, text):
    path = tmp_path / "recipe.toml"
    path.write_text(text)
    refuses(path, "is empty")


@pytest.mark.parametrize(
    "content",
    [
        b"{}",
        b"[system",
        b"a = 1\na = 2\n",
        b"key without value",
        b"\x00\x01\x02",
        MINIMAL.encode() + b"# \xff\xfe\n",
        MINIMAL.encode("utf-16"),
    ],
    ids=["json", "open", "twice", "prose", "binary", "latin", "utf-16"],
)
def test_what_is_not_toml_is_refused(tmp_path, content):
    path = tmp_path / "recipe.toml"
    path.write_bytes(content)
    refuses(path, "is not TOML")


def test_letters_of_any_language_may_be_in_a_recipe(tmp_path):
    path = tmp_path / "recipe.toml"
    path.write_bytes(("# β = 8\n" + MINIMAL).encode())
    assert read_recipe(path).system == SIRS()


@pytest.mark.parametrize("section", ["system", "data", "model", "training"])
def test_a_missing_section_is_refused(tmp_path, section):
    refuses(write(tmp_path, **{section: None}), f"section [{section}] is missing")


def test_methods_may_be_left_out(tmp_path):
    recipe = read_recipe(write(tmp_path))
    assert recipe.methods["tampl"] == METHODS["tampl"]


@pytest.mark.parametrize("section", ["system", "data", "model", "training", "methods"])
@pytest.mark.parametrize("value", [3, "text", [], [{"name": "sirs"}]], ids=str)
def test_a_section_that_is_no_table_is_refused(tmp_path, section, value):
    refuses(write(tmp_path, **{section: value}), f"`{section}` is", f"a section [{section}]")


def test_a_method_that_is_no_table_is_refused(tmp_path):
    refuses(write(tmp_path, methods__tampl=3), "`methods.tampl` is 3", "[methods.tampl]")


@pytest.mark.parametrize(
    "key",
    [
        "colour",
        "system.colour",
        "data.colour",
        "model.colour",
        "model.encoder.colour",
        "model.transition.colour",
        "model.readout.colour",
        "training.colour",
        "training.representation.colour",
        "training.transition.colour",
        "methods.colour",
        "methods.tampl.colour",
    ],
)
@pytest.mark.parametrize("value", ["red", {"red": 1}], ids=["value", "table"])
def test_an_unknown_key_is_refused_at_every_level(tmp_path, key, value):
    refuses(write(tmp_path, **{key: value}), f"unknown key `{key}`")


@pytest.mark.parametrize("part", ["encoder", "transition", "readout"])
def test_a_choice_without_its_name_is_refused(tmp_path, part):
    refuses(write(tmp_path, **{f"model.{part}": {}}), f"`model.{part}.name` is missing")


def test_the_encoder_of_a_method_is_not_the_recipe_s_to_choose(tmp_path):
    path = write(tmp_path, model__encoder={"name": "macrostate"})
    refuses(path, "`model.encoder.name` is 'macrostate'", "macro-only")


@pytest.mark.parametrize("path", RECIPES, ids=lambda path: path.stem)
def test_decoders_have_at_most_twice_the_encoder_s_parameters(path):
    recipe = read_recipe(path)
    kind, size = recipe.system.description.microstate, recipe.model.latent_dim
    parts = (recipe.model.blank().encoder, recipe.model.decoder)
    encoder, decoder = (
        sum(parameter.numel() for parameter in part.build(kind, size).parameters())
        for part in parts
    )
    assert 0 < decoder <= 2 * encoder


@pytest.mark.parametrize(
    ("key", "value", "rule"),
    [
        ("system.name", "ising", "choose one of sirs"),
        ("system.name", ["sirs"], "choose one of sirs"),
        ("system.name", 3, "choose one of sirs"),
        ("system.beta", -8.0, "greater than or equal to 0"),
        ("system.gamma", "fast", "valid number"),
        ("system.mu", float("nan"), "finite"),
        ("system.mu", float("inf"), "finite"),
        ("system.size", 2, "greater than or equal to 3"),
        ("system.size", 2.5, "valid integer"),
        ("system.size", [8, 8], "valid integer"),
        ("system.coverage", 1.0, "less than 1"),
        ("system.clusters", 4, "valid tuple"),
        ("system.clusters.1", [1, 0], "greater than or equal to 1"),
        ("data.train", 0, "at least 1"),
        ("data.members", -3, "at least 1"),
        ("data.seed", -1, "greater than or equal to 0"),
        ("data.test", "many", "valid integer"),
        ("model.latent_dim", 0, "greater than 0"),
        ("model.encoder", "lattice", "valid dictionary"),
        ("model.encoder.widths.1", [4, 0], "greater than 0"),
        ("model.transition.steps", 0, "greater than 0"),
        ("model.transition.solver", "heun", "'euler', 'midpoint' or 'rk4'"),
        ("training.epochs", 0, "greater than 0"),
        ("training.epochs", {"first": 3}, "valid integer"),
        ("training.seed", -1, "greater than or equal to 0"),
        ("training.representation.learning_rate", 0, "greater than 0"),
        ("training.transition.average", 1, "less than 1"),
        ("methods.tampl.lambda_tr", -0.1, "greater than 0"),
        ("methods.tampl.lambda_cur", "much", "valid number"),
    ],
    ids=lambda part: part if isinstance(part, str) and "." in part else "",
)
def test_a_wrong_value_is_refused_with_its_key_and_the_rule(tmp_path, key, value, rule):
    written = key.removesuffix(".1")
    shown = value[1] if key.endswith(".1") else value
    refuses(write(tmp_path, **{written: value}), f"`{key}` is {shown!r}", rule)


@pytest.mark.parametrize("section", ["encoder", "transition"])
def test_an_unknown_choice_is_refused(tmp_path, section):
    path = write(tmp_path, **{f"model.{section}.name": "magic"})
    refuses(path, f"`model.{section}.name` is 'magic'", "choose one of")


@pytest.mark.parametrize(
    "key", ["data.train", "data.members", "model.latent_dim", "model.encoder", "training.epochs"]
)
def test_a_missing_key_is_named(tmp_path, key):
    refuses(write(tmp_path, **{key: None}), f"`{key}` is missing")


def test_a_missing_system_name_is_refused(tmp_path):
    refuses(write(tmp_path, system__name=None), "`system.name` is None", "choose one of sirs")


def test_clusters_that_do_not_fit_are_refused(tmp_path):
    refuses(
        write(tmp_path, system__clusters=[10**6]), "`system.clusters` is (1000000,)", "smaller one"
    )


def test_one_value_can_be_changed():
    recipe = read_recipe(RECIPES[0])
    changed = recipe.with_value("methods.jld.lambda_tr", 0.25)
    assert changed.method("jld").lambda_tr == 0.25
    assert changed.with_value("methods.jld.lambda_tr", recipe.method("jld").lambda_tr) == recipe
    assert recipe.with_value("model.transition.steps", 7).model.transition.steps == 7


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("latent_dim", 3, "unknown key `latent_dim`"),
        ("surprise.key", 3, "unknown key `surprise.key`"),
        ("model.latent", 3, "unknown key `model.latent`"),
        ("model.latent_dim", 0, "`model.latent_dim` is 0"),
        ("model.latent_dim.deep", 1, "must be a section"),
        ("methods.magic.weight", 1, "unknown key `methods.magic`"),
    ],
)
def test_a_changed_value_is_checked_as_in_a_file(path, value, words):
    with pytest.raises(InputError, match=re.escape(words)):
        read_recipe(RECIPES[0]).with_value(path, value)


OWN = {"training": {"batch_size": 8, "transition": {"learning_rate": 0.25}}}


def test_a_method_may_have_values_of_its_own(tmp_path):
    recipe = read_recipe(write(tmp_path, chosen__jld=OWN))
    jld, common = recipe.of("jld"), recipe.of("tampl")
    assert (jld.training.batch_size, jld.training.transition.learning_rate) == (8, 0.25)
    plain = read_recipe(write(tmp_path))
    assert common == plain == recipe.of("vamp")
    assert jld.training.representation == plain.training.representation
    assert jld.of("jld") is jld and not jld.chosen
    # What is changed afterwards is changed for all, and what was chosen stays.
    wider = recipe.with_value("model.latent_dim", 3).with_seed(5).of("jld")
    assert (wider.model.latent_dim, wider.training.batch_size, wider.training.seed) == (3, 8, 5)
    recipe.write(tmp_path / "again.toml")
    (tmp_path / "commented.toml").write_text(write_commented(recipe))
    for name in ("again", "commented"):
        assert read_recipe(tmp_path / f"{name}.toml").of("jld").as_tables() == jld.as_tables()


@pytest.mark.parametrize(
    "own, words",
    [
        ({"system": {"beta": 2.0}}, ("`chosen.jld.system`", "model and training")),
        ({"training": 3}, ("`chosen.jld.training` is 3",)),
        (3, ("`chosen.jld` is 3",)),
        ({"training": {"colour": 1}}, ("[chosen.jld]", "unknown key `training.colour`")),
        ({"training": {"epochs": 0}}, ("[chosen.jld]", "`training.epochs` is 0")),
    ],
)
def test_a_wrong_choice_for_a_method_is_refused(tmp_path, own, words):
    refuses(write(tmp_path, chosen={"jld": own}), *words)


def test_a_choice_for_an_unknown_method_is_refused(tmp_path):
    refuses(write(tmp_path, chosen__nobody=OWN), "[chosen.nobody]", "`method` is 'nobody'")
