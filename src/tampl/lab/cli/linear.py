"""The commands `tampl linear`: the paper's controlled experiments, and certificates.

Each runs one function of `tampl.theory`, prints its summary, and with `--out` writes the summary
with its provenance as JSON and the figure as PNG and PDF.
"""

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ...errors import InputError
from ...files import strict_json, write_texts
from .verbs import Json

__all__ = ["app"]

if TYPE_CHECKING:
    from matplotlib.figure import Figure

app = typer.Typer(
    help="The linear theory: controlled experiments, and certificates of any linear system.",
    context_settings={"help_option_names": ["-h", "--help"]},
)

Out = Annotated[Path | None, typer.Option(help="Folder for the figure and the JSON file.")]
Seeds = Annotated[str, typer.Option(help="Seeds, such as 0-4 or 0,3,7.")]
Updates = Annotated[int, typer.Option(min=1, help="Updates of each method.")]
LambdaCur = Annotated[float, typer.Option(min=0, help="Weight of the current loss.")]
LambdaTr = Annotated[float, typer.Option(min=0, help="Weight of the transition loss.")]
_Summary = Mapping[str, Any]


@app.command()
def case1(
    seeds: Seeds = "0-4", updates: Updates = 15_000, out: Out = None, as_json: Json = False
) -> None:
    """Case I: joint training shrinks the latent state and stops learning the transition."""
    from ...theory.experiments import run_case1
    from ..report.linear import case_text

    found = run_case1(_parse_seeds(seeds), updates=updates)
    draw = lambda: _load_figures().mechanism(found)
    _show("case1", found.summary(), case_text, out=out, as_json=as_json, draw=draw)


@app.command()
def case2(
    seeds: Seeds = "0-4", updates: Updates = 15_000, out: Out = None, as_json: Json = False
) -> None:
    """Case II: joint training keeps its scale and loses the task."""
    from ...theory.experiments import run_case2
    from ..report.linear import case_text, wrong_subspace_text

    def text(summary: _Summary) -> str:
        return case_text(summary) + wrong_subspace_text(summary["certificate"])

    found = run_case2(_parse_seeds(seeds), updates=updates)
    draw = lambda: _load_figures().mechanism(found)
    _show("case2", found.summary(), text, out=out, as_json=as_json, draw=draw)


@app.command()
def local(
    seeds: Seeds = "0-39",
    rounds: Annotated[int, typer.Option(min=20, help="Rounds of each method.")] = 6_000,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Local convergence: certificates of an exact realisation, and both methods beside it."""
    from ...theory.experiments import run_local
    from ..report.linear import local_text

    found = run_local(_parse_seeds(seeds), rounds=rounds)
    draw = lambda: _load_figures().local_test(found)
    _show("local", found.summary(), local_text, out=out, as_json=as_json, draw=draw)


@app.command()
def collapse(
    seeds: Seeds = "0-23",
    updates: Updates = 15_000,
    step: Annotated[int, typer.Option(min=0, help="Rollout step whose error is shown.")] = 12,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Case I with many seeds: what shrinks under joint training, and what that costs."""
    from ...theory.experiments import run_collapse
    from ..report.linear import collapse_text

    found = run_collapse(_parse_seeds(seeds), updates=updates, step=step)
    text = partial(collapse_text, step=step)
    draw = lambda: _load_figures().collapse(found)
    _show("collapse", found.summary(), text, out=out, as_json=as_json, draw=draw)


@app.command()
def selection(
    c: Annotated[float, typer.Option(help="Coefficient of the observable y = c u.")] = 1.0,
    variance_u: Annotated[float, typer.Option(help="Variance of the task coordinate u.")] = 1.0,
    variance_n: Annotated[float, typer.Option(help="Variance of the irrelevant n.")] = 4.0,
    lambda_cur: LambdaCur = 1.0,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Theorem 1 in two dimensions: when reconstruction drives the task out of the latent state."""
    from ...theory.experiments import run_selection
    from ..report.linear import selection_text

    found = run_selection(c, variance_u=variance_u, variance_n=variance_n, cur=lambda_cur)
    draw = lambda: _load_figures().selection(found)
    _show("selection", found.summary(), selection_text, out=out, as_json=as_json, draw=draw)


@app.command()
def certify(
    file: Annotated[
        Path,
        typer.Argument(
            help="An .npz of A, C, Sigma and either B, D, K or d, the latent dimension."
        ),
    ],
    lambda_cur: LambdaCur = 1.0,
    lambda_tr: LambdaTr = 1.0,
    mu: Annotated[float, typer.Option(help="Step size of both blocks of a round.")] = 0.001,
    encoder_steps: Annotated[int, typer.Option(help="N_E, steps of (B, D) in a round.")] = 1,
    transition_steps: Annotated[int, typer.Option(help="N_T, steps of K in a round.")] = 1,
    mu_encoder: Annotated[float | None, typer.Option(help="mu_E, if it is not mu.")] = None,
    mu_transition: Annotated[float | None, typer.Option(help="mu_T, if it is not mu.")] = None,
    partial: Annotated[
        bool, typer.Option("--partial", help="Accept a point that is no exact realisation.")
    ] = False,
    out: Out = None,
    as_json: Json = False,
) -> None:
    """Certifies a linear system from a file: every certificate with its verdict in words."""
    from ...theory.certificates import certify_file
    from ...theory.linear import Weights
    from ...theory.updates import Round, require_step
    from ..report.linear import certificates_text

    require_step(mu, "mu")
    steps = Round(
        encoder_steps=encoder_steps,
        transition_steps=transition_steps,
        mu_encoder=mu if mu_encoder is None else mu_encoder,
        mu_transition=mu if mu_transition is None else mu_transition,
    )
    weights = Weights(cur=lambda_cur, tr=lambda_tr)
    findings = certify_file(file, weights=weights, steps=steps, partial=partial)
    summary = {
        found.name.lower().replace(" ", "_"): {
            "verdict": found.verdict,
            "words": found.words,
            "numbers": found.numbers,
        }
        for found in findings
    }
    _show("certify", summary, certificates_text, out=out, as_json=as_json)


def _show(
    name: str,
    summary: _Summary,
    text: Callable[[_Summary], str],
    *,
    out: Path | None,
    as_json: bool,
    draw: "Callable[[], Figure] | None" = None,
) -> None:
    """Prints a summary as JSON or as text, and writes it with its figure to a folder."""
    if out is not None:
        from ..provenance import provenance
        from ..report.figures import save_figure

        out.mkdir(parents=True, exist_ok=True)
        record = {"result": summary, "provenance": provenance()}
        write_texts(out, {f"{name}.json": strict_json(record, indent=1) + "\n"})
        if draw is not None:
            save_figure(draw(), out / name)
    print(strict_json(summary) if as_json else text(summary))


def _load_figures() -> Any:  # noqa: ANN401
    # Matplotlib is slow to load, and without `--out` nothing is drawn.
    from ..report.figures import theory

    return theory


def _parse_seeds(text: str) -> list[int]:
    """Seeds and ranges of seeds, such as 0-4,7."""
    seeds: list[int] = []
    try:
        for part in text.split(","):
            first, _, last = part.partition("-")
            seeds += range(int(first), int(last or first) + 1)
    except ValueError as error:
        raise InputError(f"`seeds` is {text!r}; give integers such as 0-4 or 0,3,7") from error
    if not seeds:
        raise InputError(f"`seeds` is {text!r}, which is empty; give a range such as 0-4")
    return seeds
