"""What a studio shows: trained models of one system, its simulator, and test states."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset, Store
from ..description import Description, refuse_other_system
from ..errors import InputError
from ..lab.recipes import find_system
from ..lab.report.grids import in_reading_order
from ..lab.runs import Run
from ..models import Ensemble, MacroModel, load
from ..system import Closure, System

__all__ = ["Exhibit", "HeldOut", "ShownModel", "find_models", "open_exhibit"]

_RUN = "run.json"


@dataclass(frozen=True, eq=False)
class ShownModel:
    """A model with its name on the page and the log of its training.

    Attributes:
        name: What the page calls it.
        model: A model, or several that forecast together.
        history: One record per epoch; empty where no log is known.
    """

    name: str
    model: MacroModel | Ensemble
    history: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True, eq=False)
class HeldOut:
    """Initial microstates of a test set with what followed them.

    Attributes:
        x: Initial microstates in stored form, (G, *shape).
        y: Macrostates, (G, N, F, m).
        labels: The family of each.
        paths: Microstates of one trajectory from each, (G, F, *shape); None where a store keeps
            macrostates alone.
    """

    x: NDArray[Any]
    y: NDArray[np.float64]
    labels: NDArray[np.str_]
    paths: NDArray[Any] | None = None

    def __len__(self) -> int:
        return len(self.x)


@dataclass(frozen=True, eq=False)
class Exhibit:
    """What one studio shows.

    Attributes:
        models: The models, one at least, all of one system.
        system: The simulator; None for data without one.
        held_out: Test states; None where no store was given.
        closures: The system's textbook closures.
    """

    models: Sequence[ShownModel]
    system: System | None = None
    held_out: HeldOut | None = None
    closures: Mapping[str, Closure] = field(default_factory=dict)

    @property
    def description(self) -> Description:
        """The system and how it is observed."""
        return self.models[0].model.description

    def check_state(self, array: NDArray[Any], name: str) -> NDArray[Any]:
        """One microstate in stored form, or `InputError`.

        Arguments:
            array: What was sent.
            name: What a message calls it.
        """
        kind = self.description.microstate
        state = kind.check(array, name)
        if state.ndim != len(kind.shape):
            raise InputError(
                f"{name} has shape {state.shape}; give one microstate, of shape {kind.shape}"
            )
        return state

    def observe(
        self, state: NDArray[Any], given: Sequence[float] | None = None
    ) -> NDArray[np.float64] | None:
        """The macrostate of a microstate, (m,); None where nobody knows it.

        Arguments:
            state: The microstate in stored form.
            given: The macrostate, where the user knows it.
        """
        if given is not None:
            y = np.asarray(given, dtype=np.float64)
            if y.shape != (len(self.description.observables),):
                raise InputError(
                    f"`y0` has {y.size} numbers; give {len(self.description.observables)}, one "
                    "for each observable"
                )
            return y
        return None if self.system is None else self.system.observe(state[None])[0]


def find_models(path: Path) -> list[Path]:
    """The models that a path stands for: itself, or all runs in the folder of a comparison."""
    if not (path / "runs").is_dir():
        return [path]
    runs = [run for run in sorted((path / "runs").iterdir()) if Run(run).best_file.is_file()]
    order = in_reading_order({Run.open(run).method for run in runs})
    runs.sort(key=lambda run: order.index(Run.open(run).method))
    if not runs:
        raise InputError(f"{path / 'runs'} holds no trained model; train one with `tampl train`")
    return runs


def open_exhibit(
    models: Sequence[str | Path], *, data: str | Path | None = None, device: str = "auto"
) -> Exhibit:
    """Loads models, finds their simulator and reads test states.

    Arguments:
        models: Folders of runs, files of models, folders of ensembles or of comparisons.
        data: The folder of a store with test states, or None.
        device: Where forecasts are made.
    """
    paths = [found for path in models for found in find_models(Path(path))]
    if not paths:
        raise InputError("`models` is empty; give a trained model at least")
    names = _name_models(paths)
    shown = [_load(path, name, device) for path, name in zip(paths, names, strict=True)]
    description = shown[0].model.description
    for other in shown[1:]:
        refuse_other_system(description, other.model.description, whose="the first model")
    system = find_system(description)
    held_out = None
    if data is not None:
        store = Store.open(data)
        refuse_other_system(description, store.description, whose="the model")
        held_out = _read_held_out(store)
    return Exhibit(shown, system, held_out, {} if system is None else system.closures())


def _load(path: Path, name: str, device: str) -> ShownModel:
    if not (path / _RUN).is_file():
        return ShownModel(name, load(path, device=device))
    run = Run.open(path)
    return ShownModel(name, load(run.best_file, device=device), run.read_history())


def _name_models(paths: Sequence[Path]) -> list[str]:
    """The method of a run, the name of a file or folder; longer where two would be the same."""
    names = [_name(path) for path in paths]
    for longer in (_name_with_seed, lambda path: f"{_name_with_seed(path)} in {path.name}"):
        names = [
            longer(path) if names.count(name) > 1 else name
            for name, path in zip(names, paths, strict=True)
        ]
    return [
        f"{name}, no. {names[: place + 1].count(name)}" if names.count(name) > 1 else name
        for place, name in enumerate(names)
    ]


def _name(path: Path) -> str:
    if (path / _RUN).is_file():
        return Run.open(path).method.upper()
    return path.stem if path.is_file() else path.name


def _name_with_seed(path: Path) -> str:
    if not (path / _RUN).is_file():
        return _name(path)
    seed = Run.open(path).recipe.get("training", {}).get("seed")
    return f"{_name(path)}, seed {seed}"


def _read_held_out(store: Store) -> HeldOut:
    split = store.manifest.splits.get("test")
    if split is None or split.members:
        found = store.references("test")
        return HeldOut(found.x, found.y, found.labels)
    data: Dataset = store.dataset("test")
    found = data.references
    # The first trajectory from each initial microstate is the one that is shown.
    first: dict[bytes, int] = {}
    for place, initial in enumerate(data.x[:, 0]):
        first.setdefault(np.ascontiguousarray(initial).tobytes(), place)
    places = [first[np.ascontiguousarray(x).tobytes()] for x in found.x]
    return HeldOut(found.x, found.y, found.labels, data.x[places])
