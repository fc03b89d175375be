"""From the runs of a sweep to its table, figure and JSON."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ...evaluation.comparison import Summary
from ...evaluation.sweeps import Sweep, SweepRow
from ...files import strict_json
from .grids import MISSING, Column, Grid, Line, spread_text
from .names import name_of
from .runs import save_figures, write_texts

__all__ = ["sweep_grid", "write_sweep"]

_TEST_COLUMNS = (Column("test RMSE"), Column("test MMD²"))


def write_sweep(sweep: Sweep, out: Path, *, record: Mapping[str, Any]) -> None:
    """Writes `sweep.json`, `sweep.md` and `figures/sweep.*`.

    Arguments:
        sweep: The numbers.
        out: The folder.
        record: The sweep as plain data with where it comes from, for `sweep.json`.
    """
    from .figures import sensitivity

    out.mkdir(parents=True, exist_ok=True)
    lines = [f"- {line}" for line in _remarks(sweep)]
    write_texts(
        out,
        {
            "sweep.json": strict_json(record, indent=1) + "\n",
            "sweep.md": "\n".join([sweep_grid(sweep).markdown(), *lines, ""]),
        },
    )
    save_figures({"sweep": sensitivity(sweep)}, out / "figures")


def sweep_grid(sweep: Sweep) -> Grid:
    """One line for each value."""
    columns = (
        Column(f"{name_of(sweep.method)}, {sweep.key}"),
        Column("validation RMSE"),
        *(_TEST_COLUMNS if sweep.test else ()),
        Column("latent std"),
        Column("collapsed"),
    )
    return Grid(columns, tuple(Line(_cells(sweep, row)) for row in sweep.rows))


def _cells(sweep: Sweep, row: SweepRow) -> tuple[str, ...]:
    count = "" if len(row.seeds) == len(sweep.seeds) else f" (n = {len(row.seeds)})"
    tested = (_spread(row.rmse), _spread(row.mmd)) if sweep.test else ()
    collapsed = f"{len(row.collapsed)} of {len(row.seeds)}"
    return (
        str(row.value) + count,
        _spread(row.validation),
        *tested,
        _spread(row.latent_std),
        collapsed,
    )


def _spread(summary: Summary | None) -> str:
    return MISSING if summary is None else spread_text(summary.mean, summary.std)


def _remarks(sweep: Sweep) -> list[str]:
    failed = [
        f"{sweep.key} = {run.value}, seed {run.seed}: failed; {run.reason}" for run in sweep.failed
    ]
    total = len(sweep.rows) * len(sweep.seeds)
    waiting = f"{sweep.waiting} of {total} runs are still to be made"
    return [*failed, waiting] if sweep.waiting else failed
