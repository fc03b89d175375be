"""Measured runs as small files that stay: everything about a run but its weights.

    FOLDER/METHOD-SEED.json    scores, peaks and spread, recipe, learning curves, wall time, and
                               the provenance of training and evaluation
    FOLDER/METHOD-SEED.npz     the cases that figures show

A folder is one experiment, such as `results/sirs`: what is in it was evaluated on the same data.
From it alone tables, figures and pages can be made again.
"""

from dataclasses import asdict
from pathlib import Path
from typing import Any

from ...errors import InputError
from ...evaluation.cases import Cases
from ...evaluation.claims import plain_peaks, read_peaks
from ...evaluation.metrics import Score
from ...files import read_json, strict_json
from .runs import RunRecord, training_seconds, write_texts

__all__ = ["load_runs", "save_run"]

FORMAT = "tampl-run-1"


def save_run(run: RunRecord, folder: Path) -> Path:
    """Keeps a run in a folder; returns its JSON file.

    Arguments:
        run: The run.
        folder: The experiment's folder; one that holds runs on other data is refused.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for path in _files(folder):
        if _read(path)["data"] != run.data:
            raise InputError(f"{folder} holds runs that were evaluated on other data: {path.name}")
    name = f"{run.method}-{run.seed}"
    record = {
        "format": FORMAT,
        "system": run.recipe["system"]["name"],
        "method": run.method,
        "seed": run.seed,
        "scores": {key: asdict(score) for key, score in run.scores.items()},
        "peaks": plain_peaks(run.peaks),
        "spread": dict(run.spread),
        "seconds": training_seconds(run),
        "microstate": run.kind,
        "data": run.data,
        "recipe": run.recipe,
        "provenance": run.provenance,
        "training_provenance": run.training_provenance,
        "history": list(run.history),
    }
    run.cases.save(folder / f"{name}.npz")
    write_texts(folder, {f"{name}.json": strict_json(record, indent=1) + "\n"})
    return folder / f"{name}.json"


def load_runs(folder: Path) -> list[RunRecord]:
    """The runs that a folder keeps, in the order of their names."""
    return [_load(path) for path in _files(folder)]


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.glob("*.json")) if _is_run(path)]


def _is_run(path: Path) -> bool:
    content = _read(path)
    return isinstance(content, dict) and content.get("format") == FORMAT


def _load(path: Path) -> RunRecord:
    record = _read(path)
    return RunRecord(
        name=path.stem,
        method=record["method"],
        kind=record["microstate"],
        recipe=record["recipe"],
        scores={key: Score(**values) for key, values in record["scores"].items()},
        cases=Cases.load(path.with_suffix(".npz")),
        data=record["data"],
        history=record["history"],
        provenance=record["provenance"],
        training_provenance=record["training_provenance"],
        peaks=read_peaks(record["peaks"]),
        spread=record["spread"],
    )


def _read(path: Path) -> Any:  # noqa: ANN401
    return read_json(path, "restore it or record again")
