"""Recipes: one complete TOML file per experiment, checked before anything runs.

The literal registries of systems and methods are read here and nowhere else. An error names the
key, its value and the rule it breaks, in one line.
"""

import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, TypeVar

import tomli_w
from pydantic import BaseModel, ValidationError

from ..data import DataPlan
from ..description import Description
from ..errors import InputError
from ..files import replacing
from ..methods import METHODS, Method
from ..models import ModelSpec
from ..system import System
from ..systems import SYSTEMS
from ..training import TrainingSpec

__all__ = ["Recipe", "find_system", "read_recipe", "resolve_system"]

SECTIONS = ("system", "data", "model", "training", "methods")


Parsed = TypeVar("Parsed", bound=BaseModel)


@dataclass(frozen=True)
class Recipe:
    """Everything that determines an experiment.

    Attributes:
        name: The recipe's name, for logs and reports.
        system: The simulator.
        data: How many trajectories, from which seed.
        model: The architecture, the same for every method.
        training: How to train, the same for every method.
        methods: The methods' own settings, by name.
    """

    name: str
    system: System
    data: DataPlan
    model: ModelSpec
    training: TrainingSpec
    methods: Mapping[str, Method]

    def method(self, name: str) -> Method:
        """The method of a name, with the recipe's settings."""
        if name not in self.methods:
            raise InputError(f"`method` is {name!r}; choose one of {', '.join(self.methods)}")
        return self.methods[name]

    def with_seed(self, seed: int | None) -> "Recipe":
        """The same recipe with another training seed; None keeps its own."""
        if seed is None:
            return self
        settings = {**self.training.model_dump(), "seed": seed}
        return replace(self, training=_parse(TrainingSpec, settings, "training"))

    def with_value(self, path: str, value: object) -> "Recipe":
        """The same recipe with another value at a dotted path, such as `model.latent_dim`."""
        *sections, key = path.split(".")
        if not sections or sections[0] not in SECTIONS:
            raise InputError(f"unknown key `{path}`; sections are {', '.join(SECTIONS)}")
        tables = self.as_tables()
        table = tables
        for depth, name in enumerate(sections, start=1):
            table = _table(table.setdefault(name, {}), ".".join(sections[:depth]))
        table[key] = value
        return _resolve(self.name, tables, known=self.methods)

    def as_tables(self, *, only: str | None = None) -> dict[str, Any]:
        """The resolved recipe, defaults included, as TOML tables.

        Arguments:
            only: The one method whose settings to give; all by default.
        """
        description = self.system.description
        names = self.methods if only is None else [only]
        methods = {name: _dump(self.methods[name]) for name in names}
        return {
            "system": {"name": description.system, **_dump(self.system)},
            "data": _dump(self.data),
            "model": _dump(self.model),
            "training": _dump(self.training),
            "methods": methods,
        }

    def write(self, path: Path) -> None:
        """Writes the resolved recipe, which can be run again as it is."""
        with replacing(path) as temporary:
            temporary.write_text(tomli_w.dumps(self.as_tables()), encoding="utf-8")


def read_recipe(path: str | Path) -> Recipe:
    """Reads and checks a recipe."""
    path = Path(path)
    tables = _read_toml(path)
    missing = [name for name in SECTIONS[:-1] if name not in tables]
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
    """The simulator that a store or a model speaks of; None where it is not one of ours."""
    if description.system not in SYSTEMS:
        return None
    return resolve_system(description.system, description.parameters)


def resolve_system(name: str, parameters: Mapping[str, Any]) -> System:
    """The simulator of a name with its parameters."""
    if name not in list(SYSTEMS):  # a list, because a file can hold a name that is not hashable
        raise InputError(f"`system.name` is {name!r}; choose one of {', '.join(SYSTEMS)}")
    return _parse(SYSTEMS[name], parameters, "system")


def _resolve(
    name: str, tables: dict[str, Any], *, known: Mapping[str, Method] = METHODS
) -> Recipe:
    tables = {key: _table(value, key) for key, value in tables.items()}
    system = dict(tables["system"])
    methods = tables.get("methods", {})
    unknown = [key for key in methods if key not in known]
    if unknown:
        raise InputError(f"unknown key `methods.{unknown[0]}`; methods are {', '.join(known)}")
    methods = {key: _table(value, f"methods.{key}") for key, value in methods.items()}
    model = _parse(ModelSpec, tables["model"], "model")
    if model.encoder.reads != "x":
        raise InputError(
            f"`model.encoder.name` is {model.encoder.name!r}, which only the method macro-only "
            "uses, by itself; choose an encoder of microstates"
        )
    return Recipe(
        name=name,
        system=resolve_system(system.pop("name", None), system),
        data=_parse(DataPlan, tables["data"], "data"),
        model=model,
        training=_parse(TrainingSpec, tables["training"], "training"),
        methods={
            key: _parse(type(method), _over(_dump(method), methods.get(key, {})), f"methods.{key}")
            for key, method in known.items()
        },
    )


def _read_toml(path: Path) -> dict[str, Any]:
    if not path.is_file():
        raise InputError(f"recipe {path} does not exist")
    try:
        tables = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"{path} is not TOML: {error}") from error
    if not tables:
        raise InputError(f"{path} is empty; start from one of the files in recipes/")
    return tables


def _table(value: object, key: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InputError(f"`{key}` is {value!r}; it must be a section [{key}]")
    return value


def _parse(record: type[Parsed], table: Mapping[str, Any], where: str) -> Parsed:
    try:
        return record.model_validate(table)
    except ValidationError as error:
        raise InputError(_first_error(error, table, where)) from error


def _first_error(error: ValidationError, table: Mapping[str, Any], where: str) -> str:
    first = error.errors()[0]
    key = ".".join([where, *_keys(table, first["loc"])])
    if first["type"] == "extra_forbidden":
        return f"unknown key `{key}`"
    if first["type"] == "missing":
        return f"`{key}` is missing"
    if first["type"] == "union_tag_not_found":
        return f"`{key}.name` is missing"
    if first["type"] == "value_error":
        # A rule of ours, which names the field and its value itself.
        message = first["msg"].removeprefix("Value error, ")
        whole = message.replace(f"`{key.rpartition('.')[2]}`", f"`{key}`", 1)
        return whole if f"`{key}`" in whole else f"{key}: {message}"
    return f"`{key}` is {first['input']!r}: {first['msg'][:1].lower()}{first['msg'][1:]}"


def _keys(table: object, location: Sequence[int | str]) -> Iterator[str]:
    """The keys of a location in the file, without the names of choices that pydantic puts in."""
    for key in location:
        if isinstance(table, Mapping) and table.get("name") == key and key not in table:
            continue
        yield str(key)
        table = table.get(key) if isinstance(table, Mapping) else None


def _over(defaults: dict[str, Any], table: dict[str, Any]) -> dict[str, Any]:
    """The defaults with the table's values in their place, tables within tables too."""
    merged = {**defaults, **table}
    for key, value in table.items():
        if isinstance(value, dict) and isinstance(defaults.get(key), dict):
            merged[key] = _over(defaults[key], value)
    return merged


def _dump(record: BaseModel) -> dict[str, Any]:
    return record.model_dump(mode="json", exclude_none=True)
