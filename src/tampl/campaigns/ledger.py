"""What a campaign has done and what it still costs: one line for each run, as a file.

    OUT/plan.json    [{"system", "method", "seed", "folder", "state", "epochs", "total_epochs",
                       "seconds", "estimated_s"}, ...]

The state is read from the run's folder, so a ledger is never wrong about what is there: `waiting`,
`begun`, `trained`, `done`, or `failed` where this campaign saw it fail. A run's time is estimated
from its own epochs, or else from those of other runs of the same method.
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import mean
from typing import Any

from ..methods.engine.run import RunFolder, write_json
from ..pipeline import read_history

__all__ = ["Entry", "estimate", "read_entry", "write_ledger"]


@dataclass(frozen=True)
class Entry:
    """One run.

    Attributes:
        system: Name of the system.
        method: Name of the method.
        seed: The training seed.
        folder: Name of the run's folder.
        state: `waiting`, `begun`, `trained`, `done` or `failed`.
        epochs: Epochs that were saved.
        total_epochs: Epochs of the whole training.
        seconds: What these epochs took.
        estimated_s: What the whole training takes; None where nothing tells.
    """

    system: str
    method: str
    seed: int
    folder: str
    state: str
    epochs: int
    total_epochs: int
    seconds: float
    estimated_s: float | None = None


def read_entry(folder: Path, origin: Mapping[str, Any], *, total_epochs: int) -> Entry:
    """Reads from a run's folder how far it is.

    Arguments:
        folder: The folder, which need not exist.
        origin: `system`, `method` and `seed`.
        total_epochs: Epochs of the whole training.
    """
    files = RunFolder(folder)
    log = read_history(folder) if files.history.is_file() else []
    trained = len(log) == total_epochs and files.best.is_file() and files.last.is_file()
    state = "trained" if trained else "begun" if log else "waiting"
    if trained and files.evaluation.is_file():
        state = "done"
    seconds = sum(sum(epoch["seconds"].values()) for epoch in log)
    return Entry(
        **origin,
        folder=folder.name,
        state=state,
        epochs=len(log),
        total_epochs=total_epochs,
        seconds=seconds,
    )


def estimate(entries: Sequence[Entry]) -> list[Entry]:
    """Entries with the time that each training takes, where anything tells."""
    return [replace(entry, estimated_s=_estimate(entry, entries)) for entry in entries]


def _estimate(entry: Entry, entries: Sequence[Entry]) -> float | None:
    same = [other for other in entries if other.method == entry.method and other.epochs]
    known = [entry] if entry.epochs else same
    if not known:
        return None
    return entry.total_epochs * mean(other.seconds / other.epochs for other in known)


def write_ledger(entries: Sequence[Entry], path: Path) -> None:
    """Writes the ledger, complete or not at all; its folder is made where it does not exist."""
    path.parent.mkdir(parents=True, exist_ok=True)
    write_json(path, [asdict(entry) for entry in estimate(entries)])
