"""A training run in a folder: checkpoints, log, best model, resume.

    run.json             what the run is; another run is refused in the same folder
    recipe.toml          the resolved recipe
    provenance.json      hardware, versions, commit and command that started it
    state.safetensors    everything to resume from, at the end of an epoch
    history.json         one record per epoch
    best.safetensors     the model with the lowest validation error
    last.safetensors     the model after the last epoch
    evaluation.json      scores of the best model, where it was evaluated
    cases.npz            the cases that figures show

Every file appears by rename, complete or not at all.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..data.manifest import first_difference
from ..errors import InputError
from ..files import claimed, is_temporary, read_json, remove_unfinished, write_json
from ..models import MacroModel, save_model
from ..models.checkpoint import load_tensors, save_tensors
from ..training.loop import History
from ..training.trainer import Trainer

__all__ = ["RunFolder"]

STATE_FORMAT = "tampl-state-1"


class RunFolder:
    """The files of one run.

    Arguments:
        path: The folder; it is made if it does not exist.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.identity = path / "run.json"
        self.recipe = path / "recipe.toml"
        self.provenance = path / "provenance.json"
        self.state = path / "state.safetensors"
        self.history = path / "history.json"
        self.best = path / "best.safetensors"
        self.last = path / "last.safetensors"
        self.evaluation = path / "evaluation.json"
        self.cases = path / "cases.npz"

    @property
    def has_learnt(self) -> bool:
        """Whether there is anything to lose: a start that was refused leaves nothing."""
        return any(path.exists() for path in (self.state, self.best, self.last))

    @contextmanager
    def claimed(self, identity: dict[str, Any]) -> Iterator[None]:
        """Starts a run or takes up the same one, alone; refuses a folder that holds another.

        Arguments:
            identity: What makes the run what it is, as JSON.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with claimed(self.path):
            self._refuse_other(identity)
            remove_unfinished(self.path)
            write_json(self.identity, identity)
            yield

    def read_identity(self) -> dict[str, Any]:
        """What the run in this folder is."""
        if not self.identity.exists():
            raise InputError(f"{self.path} holds no run; train one with `tampl train`")
        return read_json(self.identity, "train again elsewhere")

    def _refuse_other(self, identity: dict[str, Any]) -> None:
        if not self.identity.exists():
            if not all(is_temporary(path) for path in self.path.iterdir()):
                raise InputError(f"{self.path} is not empty and holds no run; give another folder")
            return
        if not self.has_learnt:
            return
        difference = first_difference(self.read_identity(), identity)
        if difference is not None:
            key, there, here = difference
            raise InputError(
                f"{self.path} holds another run (`{key}` is {there} there, {here} here): give "
                "another folder or remove that one"
            )

    def keep_best(self, model: MacroModel) -> None:
        """Saves the model with the lowest validation error so far."""
        save_model(model, self.best)

    def keep_last(self, model: MacroModel) -> None:
        """Saves the model of the last epoch."""
        save_model(model, self.last)

    def keep_state(self, trainer: Trainer, history: History) -> None:
        """Saves the state at the end of an epoch."""
        header = {"format": STATE_FORMAT, "epoch": trainer.epoch, "history": vars(history)}
        save_tensors(self.state, trainer.tensors(), header)
        write_json(self.history, history.epochs)

    def is_complete(self) -> bool:
        """Whether nothing is missing of a finished training."""
        return self.last.exists() and self.history.exists()

    def resume(self, trainer: Trainer) -> History:
        """Puts the trainer where the run was left, and returns its log."""
        if not self.state.exists():
            return History()
        tensors, header = load_tensors(self.state, STATE_FORMAT)
        history = History(**header["history"])
        if history.best_epoch and not self.best.exists():
            raise InputError(f"{self.best} is lost; restore it, or train again in a new folder")
        trainer.load(header["epoch"], tensors)
        return history
