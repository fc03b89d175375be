"""The linear theory's results as text: tables of the experiments, certificates in words.

Each function takes the summary of an experiment, plain data as `--json` prints it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from .grids import Column, Grid, Line

__all__ = [
    "NAMES",
    "case_text",
    "certificates_text",
    "collapse_text",
    "local_text",
    "selection_text",
    "wrong_subspace_text",
]

_Summary = Mapping[str, Any]
NAMES = {"joint": "Joint", "recon_joint": "Joint with reconstruction", "tampl": "TAMPL"}


def case_text(summary: _Summary) -> str:
    """What each method ends at."""
    keys = ("l_cur", "l_tr", "s_min", "s_min_lowest", "rollout")
    heads = ("", "L_cur", "L_tr", "smallest scale", "its lowest", "rollout error")
    lines = [[NAMES[name], *(_write(summary[name][key]) for key in keys)] for name in NAMES]
    return _tabulate(heads, lines)


def wrong_subspace_text(certificate: _Summary) -> str:
    """The certificates of Case II in one line."""
    margins = ", ".join(map(_write, certificate["endpoint_margins"]))
    ordering = "holds" if certificate["spectral_ordering"] else "fails"
    return (
        f"wrong subspace: tau_0 {_write(certificate['tau_0'])}, margin"
        f" {_write(certificate['reference_margin'])}; at the joint endpoints {margins};"
        f" the spectral ordering on the omitted subspace {ordering}"
    )


def local_text(summary: _Summary) -> str:
    """One line for each seed, and the worst of all."""
    keys = ("seed", "margin", "mu_max", "radius", "factor", "factor_joint")
    heads = ("seed", "s_star - epsilon_star", "mu_max", "radius", "fitted", "fitted, joint")
    lines = [[f"{line[key]:.5g}" for key in keys] for line in summary["seeds"]]
    return _tabulate(heads, lines) + (
        f"lowest margin {_write(summary['lowest_margin'])}, lowest mu_max"
        f" {_write(summary['lowest_mu_max'])}, highest radius {summary['highest_radius']:.6g};"
        f" step {summary['step']:g}, {summary['rounds']} rounds"
    )


def collapse_text(summary: _Summary, step: int) -> str:
    """Medians and quartiles of each method."""
    heads = ("", "latent norm / initial", "smallest scale / initial", f"error at step {step}")
    keys = ("norm", "scale", "error")
    lines = [
        [NAMES[name], *(_write_quartiles(values[key]) for key in keys)]
        for name, values in summary.items()
    ]
    return _tabulate(heads, lines) + "medians over seeds, quartiles in brackets"


def selection_text(summary: _Summary) -> str:
    """Both sides of the threshold, and where it is."""
    heads = ("lambda_rec", "kept variance of y", "L_cur", "L_rec")
    lines = [list(map(_write, summary[side].values())) for side in ("below", "above")]
    threshold = summary["threshold"]
    said = (
        f"above lambda_rec = {_write(threshold)} reconstruction drives the task out"
        if threshold < float("inf")
        else "no weight of reconstruction drives the task out"
    )
    return _tabulate(heads, lines) + said


def certificates_text(summary: _Summary) -> str:
    """Every certificate: its verdict, a sentence, its numbers."""
    blocks = []
    for name, found in summary.items():
        block = [f"{name.replace('_', ' ')}: {found['verdict']}", f"  {found['words']}"]
        if found["numbers"]:
            numbers = (f"{key} {_write_exactly(value)}" for key, value in found["numbers"].items())
            block.append(f"  {', '.join(numbers)}")
        blocks.append("\n".join(block))
    return "\n".join(blocks)


def _write_quartiles(values: Mapping[str, float]) -> str:
    return f"{_write(values['median'])} ({_write(values['low'])} to {_write(values['high'])})"


def _write(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def _write_exactly(value: object) -> str:
    """Six digits, because factors of a round are close to one."""
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _tabulate(heads: Sequence[str], lines: Sequence[Sequence[str]]) -> str:
    return Grid(tuple(map(Column, heads)), tuple(Line(tuple(line)) for line in lines)).markdown()
