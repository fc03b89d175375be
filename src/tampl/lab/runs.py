"""Training runs: the folder in which a run is trained, and the record that is kept of it.

    run.json             what identifies the run; the folder of another run is refused
    recipe.toml          the resolved recipe
    provenance.json      hardware, versions, commit and command that started the training
    state.safetensors    the checkpoint to resume from, at the end of an epoch; the one before it
                         is state.previous.safetensors
    history.json         one record per epoch
    best.safetensors     the model with the lowest validation error; before the first validation
                         that of the last checkpoint
    last.safetensors     the model after the last epoch
    evaluation.json      the record of the evaluated run with its checksum, and the SHA-256 of the
                         model it scores
    cases.npz            the test cases that figures show

A record is everything about an evaluated run but its weights. `tampl record` copies it to a folder
of measured results, as METHOD-SEED.json with METHOD-SEED.npz, from which tables, figures and pages
can be made again. Every file appears by rename, complete or not at all.
"""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from ..description import first_difference
from ..errors import InputError
from ..evaluation.cases import Cases
from ..evaluation.claims import Peaks, plain_peaks, read_peaks
from ..evaluation.comparison import Trial
from ..evaluation.metrics import Score
from ..evaluation.trust import Trust
from ..files import (
    claimed,
    is_temporary,
    read_json,
    remove_unfinished,
    strict_json,
    write_json,
    write_texts,
)
from ..models import MacroModel, load_model
from ..models.checkpoint import load_latest_tensors, save_tensors
from ..training import History, Trainer

__all__ = ["Run", "RunRecord", "load_records", "read_records"]

FORMAT, STATE_FORMAT = "tampl-run-1", "tampl-state-1"

SEALED_FORMAT = "tampl-run-2"
"""An evaluation in the folder of its run, which has a checksum; older ones have none."""

_DAMAGES = (KeyError, TypeError, ValueError, AttributeError, IndexError, OverflowError)
"""What plain data of other types than a record's raise where they are read."""


@dataclass(frozen=True)
class RunRecord:
    """An evaluated run as plain data, with its test cases.

    Attributes:
        method: Name of the method, under which the model's own score stands.
        kind: Kind of the microstates.
        recipe: The resolved recipe, as tables.
        scores: Scores by name: the model's, and those of the baselines.
        cases: The test cases that figures show.
        data: Identity of the store that the run was evaluated on.
        history: One record per epoch.
        provenance: Hardware, versions, commit and command of the evaluation.
        training_provenance: The same of the training.
        peaks: Peaks of the simulation, the model and the closures.
        spread: The model's spread over the true one, by symbol; empty if it is deterministic.
        crps: The model's CRPS against single trajectories; None in older records.
        description: What the data are of, as plain data; empty in older records.
        trust: What stands beside scores that were taken inside limits and envelope; None in older
            records, whose scores are plain.
    """

    method: str
    kind: str
    recipe: Mapping[str, Any]
    scores: Mapping[str, Score]
    cases: Cases
    data: str
    history: Sequence[Mapping[str, Any]]
    provenance: Mapping[str, Any]
    training_provenance: Mapping[str, Any] = field(default_factory=dict)
    peaks: Peaks = field(default_factory=dict)
    spread: Mapping[str, float] = field(default_factory=dict)
    crps: float | None = None
    description: Mapping[str, Any] = field(default_factory=dict)
    trust: Trust | None = None

    @property
    def seed(self) -> int:
        """The training seed."""
        return self.recipe["training"]["seed"]

    @property
    def seconds(self) -> float:
        """The duration of the training."""
        return sum(sum(epoch["seconds"].values()) for epoch in self.history)

    @property
    def baselines(self) -> dict[str, Score]:
        """The scores of predictions that were not trained."""
        return {key: score for key, score in self.scores.items() if key != self.method}

    @property
    def trial(self) -> Trial:
        """The run as a trial of its method."""
        return Trial.of_log(self.method, self.seed, self.history, self.scores[self.method])

    def as_dict(self) -> dict[str, Any]:
        """Everything but the cases, as plain data for a file."""
        plain = {
            "format": FORMAT,
            "system": self.recipe["system"]["name"],
            "method": self.method,
            "seed": self.seed,
            "scores": {key: asdict(score) for key, score in self.scores.items()},
            "peaks": plain_peaks(self.peaks),
            "spread": dict(self.spread),
            "seconds": self.seconds,
            "microstate": self.kind,
            "data": self.data,
            "recipe": self.recipe,
            "provenance": self.provenance,
            "training_provenance": self.training_provenance,
            "history": list(self.history),
        }
        # What older records lack is not added to them.
        added = {
            "crps": self.crps,
            "description": self.description or None,
            "trust": None if self.trust is None else self.trust.as_dict(),
        }
        return plain | {key: value for key, value in added.items() if value is not None}

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any], cases: Cases) -> "RunRecord":
        """The record that `as_dict` turned into plain data; refuses data of other types."""
        made = cls(
            method=plain["method"],
            kind=plain["microstate"],
            recipe=plain["recipe"],
            scores={key: Score.from_dict(values) for key, values in plain["scores"].items()},
            cases=cases,
            data=plain["data"],
            history=plain["history"],
            provenance=plain["provenance"],
            training_provenance=plain["training_provenance"],
            peaks=read_peaks(plain["peaks"]),
            spread=plain["spread"],
            crps=plain.get("crps"),
            description=plain.get("description", {}),
            trust=Trust.from_dict(plain["trust"]) if "trust" in plain else None,
        )
        _refuse_bad_recipe(made.method, made.recipe)
        _refuse_bad_provenance(made.training_provenance)
        for table in (made.provenance, made.description, made.spread):
            dict(**table)
        float(made.seconds), made.trial  # what tables and pages ask for
        return made

    def save(self, path: Path) -> None:
        """Writes a JSON file, and the cases beside it as an .npz file of the same name."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.cases.save(path.with_suffix(".npz"))
        write_texts(path.parent, {path.name: strict_json(self.as_dict(), indent=1) + "\n"})

    @classmethod
    def load(cls, path: Path) -> "RunRecord":
        """Reads the files that `save` wrote."""
        plain = _read_saved(path)
        try:
            return cls.from_dict(plain, Cases.load(path.with_suffix(".npz")))
        except InputError:
            raise
        except _DAMAGES as error:
            raise InputError(f"{path} is damaged ({error}); record the run again") from error


def load_records(folder: Path) -> list[RunRecord]:
    """The records that a folder of measured results holds, in the order of their names."""
    return [RunRecord.load(path) for path in sorted(folder.glob("*.json")) if _is_record(path)]


def _is_record(path: Path) -> bool:
    content = _read_saved(path)
    return isinstance(content, dict) and content.get("format") == FORMAT


def _read_saved(path: Path) -> Any:  # noqa: ANN401
    return read_json(path, "restore it or record the run again")


class Run:
    """A training run in its folder, which keeps the run's models, checkpoints and record.

    It is the `tampl.training.Keeper` of its training.

    Arguments:
        path: The folder; `claim` creates it.

    Attributes:
        log: The history of the training, as far as this process knows it.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.identity_file = self.path / "run.json"
        self.recipe_file = self.path / "recipe.toml"
        self.provenance_file = self.path / "provenance.json"
        self.state_file = self.path / "state.safetensors"
        self.history_file = self.path / "history.json"
        self.best_file = self.path / "best.safetensors"
        self.last_file = self.path / "last.safetensors"
        self.evaluation_file = self.path / "evaluation.json"
        self.cases_file = self.path / "cases.npz"
        self.log = History()

    @classmethod
    def open(cls, path: str | Path) -> "Run":
        """Opens the folder of a run; refuses a folder that holds none."""
        run = cls(path)
        try:
            identity = run.read_identity()
            _refuse_bad_recipe(identity["method"], identity["recipe"])
        except InputError:
            raise
        except _DAMAGES as error:
            raise InputError(
                f"{run.identity_file} is damaged ({error}); train again in another folder"
            ) from error
        return run

    def read_identity(self) -> dict[str, Any]:
        """Method, resolved recipe and data, which together identify the run."""
        if not self.identity_file.exists():
            raise InputError(f"{self.path} holds no run; train one with `tampl train`")
        return read_json(self.identity_file, "train again in another folder")

    @property
    def method(self) -> str:
        """Name of the method."""
        return self.read_identity()["method"]

    @property
    def recipe(self) -> Mapping[str, Any]:
        """The resolved recipe, as tables."""
        return self.read_identity()["recipe"]

    @property
    def has_learnt(self) -> bool:
        """Whether the folder holds a model or a checkpoint."""
        return any(path.exists() for path in (self.state_file, self.best_file, self.last_file))

    @contextmanager
    def claim(self, identity: dict[str, Any], *, extend: bool = False) -> Iterator[None]:
        """Holds the folder for a new run or for the same run as before.

        A folder that holds another run, or that another process has claimed, is refused.

        Arguments:
            identity: What identifies the run, as JSON.
            extend: Whether the same run with fewer epochs may be there, to be trained further.
        """
        self.path.mkdir(parents=True, exist_ok=True)
        with claimed(self.path):
            self._refuse_other(self._shorten(identity) if extend else identity)
            remove_unfinished(self.path)
            write_json(self.identity_file, identity)
            yield

    def find_shorter(self, identity: dict[str, Any]) -> int | None:
        """The epochs of the run in the folder if it is the same run with fewer of them.

        Arguments:
            identity: What identifies a run, as JSON.
        """
        shortened = self._shorten(identity)
        if shortened is identity or first_difference(self.read_identity(), shortened) is not None:
            return None
        return _read_epochs(shortened)

    def _shorten(self, identity: dict[str, Any]) -> dict[str, Any]:
        """The identity with as many epochs as the run in the folder has, where those are fewer."""
        if not (self.identity_file.exists() and self.state_file.exists()):
            return identity
        kept, wanted = (_read_epochs(known) for known in (self.read_identity(), identity))
        if kept is None or wanted is None or kept >= wanted:
            return identity
        recipe = identity["recipe"]
        return identity | {"recipe": recipe | {"training": recipe["training"] | {"epochs": kept}}}

    def note_extension(self, before: int, after: int) -> None:
        """Adds to the provenance that the run was trained further than was first asked for."""
        known = self.read_provenance()
        extended = [*known.get("extended", []), {"from": before, "to": after}]
        write_json(self.provenance_file, {**known, "extended": extended})

    def describe_saved(self, total_epochs: int) -> str:
        """What the folder holds of a training that was left, in words.

        Arguments:
            total_epochs: Epochs of the whole training.
        """
        kept = self.list_saved(total_epochs)
        resumes = "the same command resumes" if self.state_file.exists() else "no checkpoint yet"
        if not kept:
            return f"nothing is saved in {self.path} yet: the first epoch did not end"
        return f"saved in {self.path}: {kept}; {resumes}"

    def list_saved(self, total_epochs: int) -> str:
        """The state and the model that the folder holds, in words; empty if it has neither.

        Arguments:
            total_epochs: Epochs of the whole training.
        """
        kept = []
        if self.state_file.exists():
            epochs = len(self.read_history())
            kept.append(f"the state after epoch {epochs} of {total_epochs}")
        if self.best_file.exists():
            best = self.log.best_epoch
            which = f"the best model so far, of epoch {best}" if best else "a first model"
            kept.append(f"{which} ({self.best_file.name})")
        return " and ".join(kept)

    def _refuse_other(self, identity: dict[str, Any]) -> None:
        if not self.identity_file.exists():
            if not all(is_temporary(path) for path in self.path.iterdir()):
                raise InputError(f"{self.path} is not empty and holds no run; give another folder")
            return
        if not self.has_learnt:  # an earlier start was refused, and nothing can be lost
            return
        difference = first_difference(self.read_identity(), identity)
        if difference is not None:
            key, theirs, ours = difference
            raise InputError(
                f"{self.path} holds another run (`{key}` is {theirs} in that run, {ours} in this "
                "one): give another folder or remove that one"
            )

    def resume(self, trainer: Trainer) -> History:
        """Restores the trainer from the last checkpoint, and returns the history until then."""
        self.log = History()
        if self.state_file.exists():
            tensors, header = load_latest_tensors(self.state_file, STATE_FORMAT)
            try:
                self.log = History(**header["history"])
                epoch = header["epoch"]
            except (KeyError, TypeError) as error:
                raise InputError(
                    f"{self.state_file} is not the checkpoint of a training ({error}); restore "
                    "it, or train again in a new folder"
                ) from error
            if self.log.best_epoch and not self.best_file.exists():
                raise InputError(
                    f"{self.best_file} is lost; restore it, or train again in a new folder"
                )
            trainer.load(epoch, tensors)
        return self.log

    def keep_best(self, model: MacroModel) -> None:
        """Saves the model with the lowest validation error so far, or the first model."""
        self._sign(model)
        model.save(self.best_file)

    def keep_last(self, model: MacroModel) -> None:
        """Saves the model of the last epoch."""
        self._sign(model)
        model.save(self.last_file)

    def _sign(self, model: MacroModel) -> None:
        """Notes on a model's card which data and recipe it comes from."""
        known = self.read_identity()
        model.origin = model.origin.model_copy(
            update={
                "method": known.get("method", model.origin.method),
                "recipe": known.get("recipe", {}),
                "identity": known.get("data", ""),
            }
        )

    def keep_state(self, trainer: Trainer, history: History) -> None:
        """Saves the checkpoint at the end of an epoch."""
        header = {"format": STATE_FORMAT, "epoch": trainer.epoch, "history": vars(history)}
        save_tensors(self.state_file, trainer.tensors(), header, keep_previous=True)
        write_json(self.history_file, history.epochs)

    def is_complete(self) -> bool:
        """Whether no file of a finished training is missing."""
        return self.last_file.exists() and self.history_file.exists()

    def best_model(self) -> MacroModel | None:
        """The model with the lowest validation error so far; None before the first checkpoint."""
        return load_model(self.best_file, device="cpu") if self.best_file.exists() else None

    def load_model(self, device: str = "cpu") -> MacroModel:
        """The model with the lowest validation error."""
        return load_model(self.best_file, device=device)

    def read_history(self) -> list[dict[str, Any]]:
        """One record per epoch; empty before the first checkpoint."""
        if not self.history_file.is_file():
            return []
        log = read_json(self.history_file, "run `tampl train` on it again")
        if not isinstance(log, list) or not all(isinstance(epoch, dict) for epoch in log):
            raise InputError(
                f"{self.history_file} is damaged: it is no list of epochs; run `tampl train` again"
            )
        return log

    def read_seconds(self) -> float:
        """The duration of the training until its last checkpoint."""
        try:
            return float(sum(sum(epoch["seconds"].values()) for epoch in self.read_history()))
        except _DAMAGES as error:
            if isinstance(error, InputError):
                raise
            raise InputError(
                f"{self.history_file} is damaged ({error}); run `tampl train` again"
            ) from error

    def read_provenance(self) -> dict[str, Any]:
        """Hardware, versions, commit and command that started the training."""
        remedy = "train again in a new folder"
        known = read_json(self.provenance_file, remedy)
        try:
            _refuse_bad_provenance(known)
        except _DAMAGES as error:
            raise InputError(f"{self.provenance_file} is damaged ({error}); {remedy}") from error
        return known

    def read_stage(self, total_epochs: int) -> str:
        """`waiting`, `begun`, `trained` or `done`, by the files in the folder.

        Arguments:
            total_epochs: Epochs of the whole training.
        """
        epochs = len(self.read_history())
        if epochs == total_epochs and self.best_file.is_file() and self.last_file.is_file():
            return "done" if self.evaluation_file.is_file() else "trained"
        return "begun" if epochs else "waiting"

    def keep_record(self, record: RunRecord) -> None:
        """Saves the record of the evaluation of the best model."""
        record.cases.save(self.cases_file)
        # Not strict JSON: a comparison needs to know whether an error is infinite or NaN.
        plain = {
            **record.as_dict(), "format": SEALED_FORMAT, "model": _digest(self.best_file)
        }  # fmt: skip
        write_json(self.evaluation_file, {**plain, "checksum": _compute_checksum(plain)})

    def read_record(self) -> RunRecord:
        """The record of the evaluation; refuses one of another model than the present best."""
        cases = Cases.load(self.cases_file)
        try:
            return RunRecord.from_dict(self._read_evaluation(), cases)
        except InputError:
            raise
        except _DAMAGES as error:
            raise InputError(
                f"{self.evaluation_file} is damaged ({error}); run `tampl evaluate` again"
            ) from error

    def read_trial(self, choice: str, *, test: bool = True) -> Trial:
        """The run as a trial of a comparison.

        Arguments:
            choice: The method or the value that the run stands for.
            test: Whether the run is compared by its test score.
        """
        try:
            score = None
            if test:
                score = Score.from_dict(self._read_evaluation()["scores"][self.method])
            seed = self.recipe["training"]["seed"]
            return Trial.of_log(choice, seed, self.read_history(), score)
        except InputError:
            raise
        except _DAMAGES as error:
            raise InputError(
                f"the files of the run in {self.path} are damaged ({error}); train it again"
            ) from error

    def is_evaluated(self, data: str) -> bool:
        """Whether the present best model was evaluated on the store of an identity."""
        try:
            return self.read_record().data == data
        except InputError:
            return False

    def _read_evaluation(self) -> dict[str, Any]:
        remedy = "run `tampl evaluate` on it"
        if not self.evaluation_file.is_file():
            raise InputError(f"{self.path} is not evaluated; {remedy} first")
        plain = read_json(self.evaluation_file, f"{remedy} again")
        if not isinstance(plain, dict) or plain.get("format") not in (FORMAT, SEALED_FORMAT):
            raise InputError(
                f"{self.evaluation_file} is not of format {SEALED_FORMAT}; {remedy} again"
            )
        checksum = plain.pop("checksum", None)
        sealed = checksum is not None or plain["format"] == SEALED_FORMAT
        if sealed and checksum != _compute_checksum(plain):
            raise InputError(
                f"{self.evaluation_file} is damaged: it differs from its checksum; {remedy} again"
            )
        if not self.best_file.is_file() or plain.get("model") != _digest(self.best_file):
            raise InputError(
                f"the best model in {self.path} is not the one that was evaluated; {remedy} again"
            )
        if not isinstance(plain.get("history"), list):
            raise InputError(f"{self.evaluation_file} is damaged; {remedy} again")
        if len(plain["history"]) < len(self.read_history()):
            raise InputError(
                f"the run in {self.path} was trained further after its evaluation; {remedy} again"
            )
        return plain


def read_records(runs: Sequence[Run]) -> list[RunRecord]:
    """The records of evaluated runs; refuses runs that were evaluated on different data."""
    records = [run.read_record() for run in runs]
    if len({record.data for record in records}) > 1:
        raise InputError("the runs were evaluated on different data; report them one by one")
    return records


def _refuse_bad_recipe(method: object, recipe: Mapping[str, Any]) -> None:
    """Raises one of `_DAMAGES` unless a method and the sections of a recipe are given."""
    # Method and seed become parts of the names of files.
    if not isinstance(method, str) or not re.fullmatch(r"\w[\w+.-]{,99}", method):
        raise ValueError(f"`method` is {str(method)[:100]!r}")
    for section in ("system", "data", "model", "training", "methods"):
        dict(**recipe[section])
    if not isinstance(recipe["system"]["name"], str):
        raise ValueError("`recipe.system.name` is no text")
    if type(recipe["training"]["seed"]) is not int:
        raise ValueError("`recipe.training.seed` is no integer")


def _refuse_bad_provenance(provenance: Mapping[str, Any]) -> None:
    """Raises one of `_DAMAGES` unless a training's provenance and its extensions are tables."""
    for step in dict(**provenance).get("extended", []):
        step["from"], step["to"]


def _read_epochs(identity: Mapping[str, Any]) -> int | None:
    """The epochs of a run by its identity; None where the identity does not say."""
    recipe = identity.get("recipe") if isinstance(identity, Mapping) else None
    training = recipe.get("training") if isinstance(recipe, Mapping) else None
    epochs = training.get("epochs") if isinstance(training, Mapping) else None
    return epochs if isinstance(epochs, int) else None


def _compute_checksum(plain: Mapping[str, Any]) -> str:
    # Through JSON and back, as the reader will see it.
    text = json.dumps(json.loads(json.dumps(plain)), sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()
