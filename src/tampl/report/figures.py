r"""The figures: predictions, twins, training curves, latent scale and the method's schematic.

Each function returns a `matplotlib.figure.Figure` made without pyplot, so that no window system
and no global state is involved; `save_figure` writes it as PNG and PDF. Bands are one standard
deviation over members on each side of the mean.
"""

import io
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.colors import BoundaryNorm, ListedColormap
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from numpy.typing import NDArray

from ..atomic import replacing
from ..errors import InputError
from ..evaluate.cases import Case, Cases, Curve
from . import style
from .histories import latent_scale, training_curves
from .names import name_of
from .schematic import schematic

__all__ = [
    "latent_scale",
    "png_bytes",
    "predictions",
    "save_figure",
    "schematic",
    "training_curves",
    "twins",
]

Legend = list[tuple[Any, str]]
"""Marks with their texts; a mark is an artist, or several drawn over each other."""

_BAND = 0.2
_TWIN_NAMES = ("A", "B")


@rc_context(style.RC)
def predictions(
    cases: Cases, kind: str = "lattice", *, labels: Sequence[str] | None = None
) -> Figure:
    """Initial microstates and what became of them: simulation, TAMPL and the closures.

    Arguments:
        cases: The cases kept by the evaluation.
        kind: Kind of the microstates, e.g. `description.microstate.kind`.
        labels: Families to show, one row each; all of them by default.
    """
    rows, columns = _first_of_labels(cases, labels), len(cases.symbols)
    figure = Figure(figsize=(style.WIDTH, 0.55 + 1.45 * len(rows)), layout="constrained")
    # One scale for each observable, so that rows can be compared.
    axes = figure.subplots(
        len(rows),
        1 + columns,
        sharex="col",
        sharey="col",
        squeeze=False,
        width_ratios=[0.78, *[1.0] * columns],
    )
    for row, case in zip(axes, rows, strict=True):
        _draw_microstate(row[0], case, kind)
        _draw_futures(row[1:], cases.times, case)
    _label_grid(axes, cases)
    _legend_above(figure, _prediction_legend(rows))
    return figure


@rc_context(style.RC)
def twins(cases: Cases, kind: str = "lattice") -> Figure:
    """Two microstates with the same macrostate and their different futures.

    Simulations are solid with a band, predictions broken. What predicts the same for both, as a
    closure in the macrostate must, is drawn once and in gray.
    """
    pair = [cases.case(index) for index in cases.twins]
    figure = Figure(figsize=(style.WIDTH, 3.0), layout="constrained")
    panels = [f"panel {j}" for j in range(len(cases.symbols))]
    axes = figure.subplot_mosaic(
        [[name, *panels] for name in _TWIN_NAMES], width_ratios=[0.7, *[1.0] * len(panels)]
    )
    columns = [axes[panel] for panel in panels]
    for name, case, color in zip(_TWIN_NAMES, pair, style.TWINS, strict=True):
        _draw_microstate(axes[name], case, kind, title=f"{name}: {case.label}", frame=color)
        _draw_curve(columns, cases.times, case.reference, style.Line(color, width=1.9))
    same = {name: _same(pair, name) for name in _common(pair)}
    for name in same:
        _draw_twin_prediction(columns, cases.times, pair, name=name, same=same[name])
    for axis, symbol in zip(columns, cases.symbols, strict=True):
        _label_panel(axis, cases.times, title=symbol)
        axis.set_xlabel("time")
    _legend_above(figure, _twin_legend(pair, same))
    return figure


def save_figure(figure: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Writes `stem`.png (150 dpi) and `stem`.pdf and returns both paths."""
    stem = Path(stem)
    png, pdf = (stem.with_name(f"{stem.name}.{form}") for form in ("png", "pdf"))
    for path in (png, pdf):
        with replacing(path) as temporary:
            temporary.write_bytes(_rendered(figure, path.suffix[1:]))
    return png, pdf


def png_bytes(figure: Figure) -> bytes:
    """The figure as a PNG image (150 dpi), for a page that holds its images itself."""
    return _rendered(figure, "png")


@rc_context(style.RC)
def _rendered(figure: Figure, form: str) -> bytes:
    buffer = io.BytesIO()
    # Without a date the same figure gives the same bytes.
    metadata = {"CreationDate": None} if form == "pdf" else None
    figure.savefig(
        buffer, format=form, dpi=150, bbox_inches="tight", pad_inches=0.05, metadata=metadata
    )
    return buffer.getvalue()


def _first_of_labels(cases: Cases, labels: Sequence[str] | None) -> list[Case]:
    first: dict[str, Case] = {}
    for case in cases.cases:
        first.setdefault(case.label, case)
    wanted = list(first) if labels is None else list(labels)
    if not wanted or not first.keys() >= set(wanted):
        raise InputError(f"`labels` is {wanted}; the cases have the labels {list(first)}")
    return [first[label] for label in wanted]


def _draw_lattice(axis: Axes, microstate: NDArray[Any]) -> None:
    states = len(style.STATES)
    norm = BoundaryNorm(np.arange(states + 1) - 0.5, states)
    # Neighbouring sites must not be blended: half infected is no state.
    axis.imshow(microstate, cmap=ListedColormap(style.STATES), norm=norm, interpolation="none")
    axis.set(xticks=[], yticks=[])


def _draw_vector(axis: Axes, microstate: NDArray[Any]) -> None:
    axis.plot(microstate, color=style.INK, linewidth=0.9)
    axis.margins(x=0)
    style.tick(axis)


_DRAW: dict[str, Callable[[Axes, NDArray[Any]], None]] = {
    "lattice": _draw_lattice,
    "vector": _draw_vector,
}


def _draw_microstate(
    axis: Axes, case: Case, kind: str, *, title: str | None = None, frame: str = style.INK
) -> None:
    if kind not in _DRAW:
        raise InputError(f"`kind` is {kind!r}; kinds that can be drawn are {sorted(_DRAW)}")
    _DRAW[kind](axis, case.microstate)
    axis.grid(False)
    axis.set_ylabel(title or case.label, parse_math=False, color=frame)
    for spine in axis.spines.values():
        spine.set(visible=True, color=frame, linewidth=0.6 if frame == style.INK else 1.6)


def _draw_futures(axes: Sequence[Axes], times: NDArray[np.float64], case: Case) -> None:
    _draw_curve(axes, times, case.reference, style.line_of("reference"))
    # Ensembles last, above deterministic curves: they are what the figure is about.
    for name, curve in sorted(case.predictions.items(), key=lambda item: item[1].std is not None):
        _draw_curve(axes, times, curve, style.line_of(name))


def _draw_curve(
    axes: Sequence[Axes], times: NDArray[np.float64], curve: Curve, line: style.Line
) -> None:
    for j, axis in enumerate(axes):
        mean = curve.mean[:, j]
        if curve.std is not None:
            low, high = mean - curve.std[:, j], mean + curve.std[:, j]
            axis.fill_between(times, low, high, color=line.color, alpha=_BAND, linewidth=0)
        axis.plot(times, mean, color=line.color, linestyle=line.dash, linewidth=line.width)


def _draw_twin_prediction(
    axes: Sequence[Axes],
    times: NDArray[np.float64],
    pair: Sequence[Case],
    *,
    name: str,
    same: bool,
) -> None:
    colors = (style.MUTED,) if same else style.TWINS
    for case, color in zip(pair, colors, strict=False):
        line = style.Line(color, style.broken(name), 1.2)
        _draw_curve(axes, times, Curve(case.predictions[name].mean, None), line)


def _common(pair: Sequence[Case]) -> list[str]:
    return [name for name in pair[0].predictions if name in pair[1].predictions]


def _same(pair: Sequence[Case], name: str) -> bool:
    one, two = (case.predictions[name].mean for case in pair)
    return bool(np.allclose(one, two, atol=1e-9))


def _label_grid(axes: NDArray[Any], cases: Cases) -> None:
    for number, row in enumerate(axes):
        for axis, symbol in zip(row[1:], cases.symbols, strict=True):
            _label_panel(axis, cases.times, title="" if number else symbol)
    axes[0][0].set_title("initial state")
    for axis in axes[-1][1:]:
        axis.set_xlabel("time")


def _label_panel(axis: Axes, times: NDArray[np.float64], *, title: str) -> None:
    axis.set_title(title, fontstyle="italic", parse_math=False)
    axis.set_xlim(times[0], times[-1])
    style.tick(axis)


def _prediction_legend(rows: Sequence[Case]) -> Legend:
    legend = [_entry(style.line_of("reference"), name_of("reference"), band=True)]
    for name in dict.fromkeys(name for case in rows for name in case.predictions):
        curves = [case.predictions[name] for case in rows if name in case.predictions]
        band = any(curve.std is not None for curve in curves)
        legend.append(_entry(style.line_of(name), name_of(name), band=band))
    return legend


def _twin_legend(pair: Sequence[Case], same: Mapping[str, bool]) -> Legend:
    legend = [
        _entry(style.Line(color, width=1.9), f"Simulation from {name}", band=True)
        for name, color in zip(_TWIN_NAMES, style.TWINS, strict=True)
    ]
    for name, both in same.items():
        line = style.Line(style.MUTED if both else style.INK, style.broken(name), 1.2)
        text = f"{name_of(name)} (both)" if both else name_of(name)
        legend.append(_entry(line, text, band=False))
    return legend


def _entry(line: style.Line, text: str, *, band: bool) -> tuple[Any, str]:
    curve = Line2D([], [], color=line.color, linestyle=line.dash, linewidth=line.width)
    mark = (Patch(facecolor=line.color, alpha=_BAND, linewidth=0), curve)
    return (mark if band else curve), text


def _legend_above(figure: Figure, legend: Legend) -> None:
    marks, texts = [mark for mark, _ in legend], [text for _, text in legend]
    box = figure.legend(marks, texts, loc="outside upper center", ncols=min(len(legend), 5))
    for text in box.get_texts():
        text.set_parse_math(False)
