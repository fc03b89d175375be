"""Recipes: one complete TOML file per experiment, checked before anything runs.

The registries of systems and methods are read here and nowhere else. An error names the key, its
value and the rule it breaks, in one line. An `Axis` is a setting of a recipe with the values that
a sweep gives it.

All methods are trained alike, but for what the section `[chosen.METHOD]` says: where trials with
the same effort for each found other values best for one of them, in place of the common ones.

A recipe of one's own data, `[system] name = "own data"`, has neither a simulator nor a section
`[data]`: it says how to train, on any store. `propose_recipe` derives one from a store, with the
defaults of `fit`.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
from pydantic import BaseModel

from ..data import DataPlan, Store
from ..data.dataset import OWN_DATA
from ..description import Description, refuse_other_system
from ..errors import InputError
from ..files import replacing
from ..frozen import prefix_keys
from ..methods import METHODS, Method, find_method
from ..methods.defaults import complete_architecture, default_training
from ..models import ModelSpec
from ..plugins import known_names
from ..system import System
from ..systems import SYSTEMS, find_system_class
from ..training import TrainingSpec

__all__ = [
    "Axis",
    "Recipe",
    "find_system",
    "parse_setting",
    "propose_recipe",
    "read_recipe",
    "resolve_system",
]

SECTIONS = ("system", "data", "model", "training", "methods", "chosen")
NEEDED = SECTIONS[:4]
CHOSEN = ("model", "training")
"""Sections that may have other values for one method."""

Parsed = TypeVar("Parsed", bound=BaseModel)


@dataclass(frozen=True)
class Recipe:
    """Everything that determines an experiment.

    Attributes:
        name: The recipe's name, for logs and reports.
        system: The simulator; None for one's own data, which nothing simulates.
        data: How many trajectories, from which seed; None where nothing is simulated.
        model: The architecture, the same for every method.
        training: How to train, the same for every method.
        methods: The methods' own settings, by name.
        chosen: Values in place of those of `model` and `training`, as tables by name of a method.
    """

    name: str
    system: System | None
    data: DataPlan | None
    model: ModelSpec
    training: TrainingSpec
    methods: Mapping[str, Method]
    chosen: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def system_name(self) -> str:
        """The name of the system."""
        return OWN_DATA if self.system is None else self.system.description.system

    def find_plan(self) -> tuple[System, DataPlan]:
        """The simulator and how much of it; refuses a recipe without."""
        if self.system is None or self.data is None:
            raise InputError(
                f"the recipe {self.name} is of {OWN_DATA}, which nothing simulates: give the "
                "folder of a store by `--data`"
            )
        return self.system, self.data

    def refuse_other_data(self, description: Description) -> None:
        """Refuses data of another system than the recipe's; one without takes any."""
        if self.system is not None:
            refuse_other_system(self.system.description, description, whose="the recipe")

    def method(self, name: str) -> Method:
        """The method of a name, with the recipe's settings."""
        if name in self.methods:
            return self.methods[name]
        names = dict.fromkeys([*self.methods, *known_names(METHODS, "tampl.methods")])
        if name not in names:
            raise InputError(f"`method` is {name!r}; choose one of {', '.join(names)}")
        return find_method(name)

    def of(self, name: str) -> "Recipe":
        """The recipe that a method is trained by, with what was chosen for it."""
        if not self.chosen:
            return self
        self.method(name)
        tables = self.as_tables()
        own = tables.pop("chosen").get(name, {})
        return _resolve(self.name, _merge_tables(tables, own), known=self.methods)

    def with_seed(self, seed: int | None) -> "Recipe":
        """The same recipe with another training seed; None keeps its own."""
        if seed is None:
            return self
        settings = {**self.training.model_dump(), "seed": seed}
        return replace(self, training=_parse(TrainingSpec, settings, "training"))

    def with_epochs(self, epochs: int | None) -> "Recipe":
        """The same recipe with another number of epochs; None keeps its own."""
        return self if epochs is None else self.with_value("training.epochs", epochs)

    def with_value(self, path: str, value: object) -> "Recipe":
        """The same recipe with another value at a dotted path, such as `model.latent_dim`."""
        *sections, key = path.split(".")
        if not sections or sections[0] not in SECTIONS:
            raise InputError(f"unknown key `{path}`; sections are {', '.join(SECTIONS)}")
        tables = self.as_tables()
        table = tables
        for depth, name in enumerate(sections, start=1):
            table = _require_table(table.setdefault(name, {}), ".".join(sections[:depth]))
        table[key] = value
        return _resolve(self.name, tables, known=self.methods)

    def as_tables(self, *, only: str | None = None) -> dict[str, Any]:
        """The resolved recipe, defaults included, as TOML tables.

        Arguments:
            only: The one method whose settings to give; all by default.
        """
        names = self.methods if only is None else [only]
        methods = {name: _dump(self.method(name)) for name in names}
        own = {} if self.system is None else _dump(self.system)
        return {
            "system": {"name": self.system_name, **own},
            **({} if self.data is None else {"data": _dump(self.data)}),
            "model": _dump(self.model),
            "training": _dump(self.training),
            "methods": methods,
            **({"chosen": dict(self.chosen)} if self.chosen else {}),
        }

    def write(self, path: Path) -> None:
        """Writes the resolved recipe, which can be run again as it is."""
        with replacing(path) as temporary:
            temporary.write_text(tomli_w.dumps(self.as_tables()), encoding="utf-8")


def read_recipe(path: str | Path) -> Recipe:
    """Reads and checks a recipe."""
    path = Path(path)
    tables = _read_toml(path)
    own = isinstance(tables.get("system"), dict) and tables["system"].get("name") == OWN_DATA
    needed = [name for name in NEEDED if not (own and name == "data")]
    missing = [name for name in needed if name not in tables]
    if missing:
        raise InputError(f"{path}: section [{missing[0]}] is missing")
    unknown = [name for name in tables if name not in SECTIONS]
    if unknown:
        raise InputError(f"{path}: unknown key `{unknown[0]}`; sections are {', '.join(SECTIONS)}")
    try:
        return _resolve(path.stem, tables)
    except InputError as error:
        raise InputError(f"{path}: {error}") from error


def find_system(description: Description) -> System | None:
    """The simulator that a store or a model names; None where it is not registered."""
    if description.system not in known_names(SYSTEMS, "tampl.systems"):
        return None
    return resolve_system(description.system, description.parameters)


def resolve_system(name: str, parameters: Mapping[str, Any]) -> System:
    """The simulator of a name with its parameters."""
    return _parse(find_system_class(name), parameters, "system")


def _resolve(
    name: str, tables: dict[str, Any], *, known: Mapping[str, Method] = METHODS
) -> Recipe:
    tables = {key: _require_table(value, key) for key, value in tables.items()}
    system = dict(tables["system"])
    methods = tables.get("methods", {})
    for key in methods:
        if key not in known:
            known = {**known, key: _find_new_method(key, known)}
    methods = {key: _require_table(value, f"methods.{key}") for key, value in methods.items()}
    model = _parse(ModelSpec, tables["model"], "model")
    if model.encoder.reads != "x":
        raise InputError(
            f"`model.encoder.name` is {model.encoder.name!r}, which only the method macro-only "
            "uses, by itself; choose an encoder of microstates"
        )
    recipe = Recipe(
        name=name,
        system=_resolve_own(system, tables),
        data=_parse(DataPlan, tables["data"], "data") if "data" in tables else None,
        model=model,
        training=_parse(TrainingSpec, tables["training"], "training"),
        chosen=tables.get("chosen", {}),
        methods={
            key: _parse(
                type(method), _merge_tables(_dump(method), methods.get(key, {})), f"methods.{key}"
            )
            for key, method in known.items()
        },
    )
    for method, own in recipe.chosen.items():
        _refuse_bad_choice(recipe, method, own)
    return recipe


def _refuse_bad_choice(recipe: Recipe, method: str, own: object) -> None:
    where = f"chosen.{method}"
    for section, values in _require_table(own, where).items():
        _require_table(values, f"{where}.{section}")
        if section not in CHOSEN:
            raise InputError(
                f"unknown key `{where}.{section}`; a method may have values of its own in "
                f"{' and '.join(CHOSEN)}"
            )
    try:
        recipe.of(method)
    except InputError as error:
        raise InputError(f"[{where}]: {error}") from error


def _resolve_own(system: dict[str, Any], tables: Mapping[str, Any]) -> System | None:
    """The simulator of the section `system`; None for one's own data."""
    name = system.pop("name", None)
    if name != OWN_DATA:
        return resolve_system(name, system)
    for key in system:
        raise InputError(f"unknown key `system.{key}`; {OWN_DATA} has no parameters")
    if "data" in tables:
        raise InputError(f"[data] says what to simulate, and {OWN_DATA} is not: leave it out")
    return None


def propose_recipe(store: Store) -> Recipe:
    """The recipe by which `fit` trains on a store when no setting is given.

    Arguments:
        store: The data; its training split is read.
    """
    train = store.dataset("train")
    plan, system = _find_plan(store), None
    if plan is not None:
        with suppress(InputError):  # parameters of another version
            system = find_system(store.description)
    return Recipe(
        name=store.path.resolve().name,
        system=system,
        data=None if system is None else plan,
        model=complete_architecture(train),
        training=default_training(train),
        methods=METHODS,
    )


def _find_plan(store: Store) -> DataPlan | None:
    """What a store was made from, if it has the splits of a simulated one."""
    splits = store.manifest.splits
    if splits.keys() != {"train", "valid", "test"} or not splits["test"].members:
        return None
    return DataPlan(
        seed=store.manifest.seed,
        **{name: split.count for name, split in splits.items()},
        members=splits["test"].members,
        train_runs=splits["train"].runs,
        valid_runs=splits["valid"].runs,
    )


def _find_new_method(key: str, known: Mapping[str, Method]) -> Method:
    """A method that an installed plug-in brings."""
    try:
        return find_method(key)
    except InputError as error:
        if key in known_names(METHODS, "tampl.methods"):
            raise
        names = ", ".join(dict.fromkeys([*known, *known_names(METHODS, "tampl.methods")]))
        raise InputError(f"unknown key `methods.{key}`; methods are {names}") from error


def _read_toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"recipe {path} does not exist")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    # A number of thousands of digits is a ValueError, tables nested without end a RecursionError.
    except (ValueError, RecursionError) as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    if not tables:
        raise InputError(f"{path} is empty; start from one of the files in recipes/")
    return tables


def _require_table(value: object, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"`{key}` is {value!r}; it must be a section [{key}]")
    return value


def _parse(record: type[Parsed], table: Mapping[str, Any], where: str) -> Parsed:
    try:
        return record.model_validate(table)
    except InputError as error:
        raise InputError(prefix_keys(str(error), where)) from error


def _merge_tables(defaults: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """The defaults with the table's values in their place, tables within tables too."""
    merged = {**defaults, **table}
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(defaults.get(key), dict):
            merged[key] = _merge_tables(defaults[key], value)
    return merged


def _dump(record: BaseModel) -> dict[str, Any]:
    return record.model_dump(mode="json", exclude_none=True)


SWEPT = ("model", "training")
"""Sections in which a sweep looks a key up; it varies neither the system nor the data."""


@dataclass(frozen=True)
class Axis:
    """The setting that a sweep varies, as a dotted path into the recipe, and its values."""

    method: str
    path: str
    values: tuple[Any, ...]

    @classmethod
    def find(cls, recipe: Recipe, method: str, key: str, *, values: Sequence[Any]) -> "Axis":
        """Finds a key and checks all values, by what the recipe itself refuses.

        Arguments:
            recipe: The recipe.
            method: Name of the method.
            key: A dotted path into the recipe's tables, such as `model.latent_dim`, or a path
                that is looked up in the method's settings, then in model, then in training.
            values: The values.
        """
        axis = cls(method, _find_path(recipe, method, key), tuple(values))
        if not axis.values:
            raise InputError(f"`{key}` has no values; give one at least")
        for place, value in enumerate(axis.values):
            recipe.with_value(axis.path, value)
            if value in axis.values[:place] or str(value) in map(str, axis.values[:place]):
                raise InputError(f"`{key}` has the value {value!r} twice; give each value once")
        return axis

    @property
    def short(self) -> str:
        """The path without the method's section."""
        return self.path.removeprefix(f"methods.{self.method}.")

    def folder(self, value: object, seed: int) -> str:
        """Name of the folder of a run."""
        text = re.sub(r"[^A-Za-z0-9.+-]+", "_", str(value)).strip("_")
        return f"{self.method}-{self.short}-{text}-{seed}"


def parse_setting(text: str) -> tuple[str, list[Any]]:
    """Key and values of a text such as `lambda_tr=0.1,1.0`; values are TOML.

    Example:
        >>> parse_setting("model.transition.hidden=[64, 64],[128]")
        ('model.transition.hidden', [[64, 64], [128]])
    """
    key, _, values = text.partition("=")
    try:
        tables = tomllib.loads(f"values = [{values}]")
    # A number of thousands of digits is a ValueError, lists nested without end a RecursionError.
    except (ValueError, RecursionError) as error:
        raise InputError(
            f"`set` is {text[:100]!r}; write KEY=VALUE,VALUE,... with values as in a recipe, "
            f"texts in quotation marks ({error})"
        ) from error
    return key.strip(), tables["values"]


def _find_path(recipe: Recipe, method: str, key: str) -> str:
    """The dotted path of a key, which may lack its section."""
    recipe.method(method)
    tables, own = recipe.as_tables(only=method), f"methods.{method}"
    sections = {own: tables["methods"][method], **{name: tables[name] for name in SWEPT}}
    given = [name for name in sections if key.startswith(f"{name}.")]
    found = [name for name, table in sections.items() if _holds(table, key.split("."))]
    if not given and not found:
        raise InputError(
            f"unknown key `{key}`: neither a setting of {method} nor one of the recipe's "
            f"{' or '.join(SWEPT)}"
        )
    path = key if given else f"{found[0]}.{key}"
    if path == "training.seed":
        raise InputError("`training.seed` is no setting to sweep; give `seeds`")
    return path


def _holds(table: object, keys: Sequence[str]) -> bool:
    for key in keys:
        if not isinstance(table, Mapping) or key not in table:
            return False
        table = table[key]
    return True
