"""The card of a model: what it is, what it was trained on, how good it is, where it ends.

A model's file keeps its *origin* in its header: method, settings, sizes of the data, versions. The
card adds what the file says of the model anyway, and is printed as Markdown or as plain data:

    print(model.card)
    model.card.as_dict()

Scores belong to a model and a test set: a card has them once `Origin.scored` was called with the
numbers of an evaluation. Nothing in an origin depends on time or place, so that the same training
gives the same file.
"""

import platform
from collections.abc import Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal

import numpy as np
import torch
from pydantic import Field

from ..description import Description, Observable
from ..frozen import Frozen
from ..version import __version__

__all__ = ["CITATION", "Card", "Origin", "list_versions"]

CITATION = (
    'Zhichao Han, Yue Zhao and Qianxiao Li, "Learning Macroscopic Dynamics without '
    'Reconstructing Microscopic States", 2026.'
)
"""What a user of a model should cite."""


def list_versions() -> dict[str, str]:
    """The versions that a training depends on."""
    return {
        "tampl": __version__,
        "python": platform.python_version(),
        "torch": str(torch.__version__),
        "numpy": np.__version__,
    }


class Origin(Frozen):
    """Where a model comes from, as its file keeps it; unknown parts are left empty.

    Attributes:
        format: Of this record.
        method: Name of the method.
        settings: The settings of the method.
        training: Seed, epochs, batches and rates.
        recipe: The whole recipe, of a run of the laboratory.
        identity: Identity of the store that it was trained on.
        trajectories: Trajectories in the training set.
        initial_states: Different initial states among them.
        validation_trajectories: Trajectories in the validation set.
        validation: The lowest validation error, RMSE in standard deviations.
        scores: RMSE and squared MMD on a test set, of the model and of what it is compared with.
        crps: Continuous ranked probability score on the test set.
        coverage: Fraction of the test trajectories inside central bands, by level of the band.
        notes: Whatever the user wants to add.
        versions: Versions of the software that trained.
    """

    format: Literal["tampl-card-1"] = "tampl-card-1"
    method: str = ""
    settings: dict[str, Any] = Field(default_factory=dict)
    training: dict[str, Any] = Field(default_factory=dict)
    recipe: dict[str, Any] = Field(default_factory=dict)
    identity: str = ""
    trajectories: int | None = None
    initial_states: int | None = None
    validation_trajectories: int | None = None
    validation: float | None = None
    scores: dict[str, dict[str, float | None]] = Field(default_factory=dict)
    crps: float | None = None
    coverage: dict[str, float] = Field(default_factory=dict)
    notes: str = ""
    versions: dict[str, str] = Field(default_factory=dict)

    def scored(
        self,
        scores: Mapping[str, Any],
        *,
        crps: float | None = None,
        coverage: Mapping[str, float] | None = None,
    ) -> "Origin":
        """The same with the scores of an evaluation.

        Arguments:
            scores: Scores by name, each with `rmse` and `mmd`, such as those of
                `tampl.evaluate(model, test).scores`.
            crps: The CRPS.
            coverage: Fractions inside central bands, by level.
        """
        plain = {
            name: {"rmse": _keep_finite(score.rmse), "mmd": _keep_finite(score.mmd)}
            for name, score in scores.items()
        }
        kept = {key: value for key, value in (coverage or {}).items() if isfinite(value)}
        return self.model_copy(
            update={"scores": plain, "crps": _keep_finite(crps), "coverage": kept}
        )


@dataclass(frozen=True)
class Card:
    """A model's card.

    Attributes:
        description: What the model forecasts, and of what.
        spec: Its architecture, as plain data.
        origin: Where it comes from.
        parameters: Number of its weights.
        landmarks: Training states that its envelope is made of; None without an envelope.
    """

    description: Description
    spec: Mapping[str, Any]
    origin: Origin
    parameters: int
    landmarks: int | None

    def __str__(self) -> str:
        return self.markdown()

    def as_dict(self) -> dict[str, Any]:
        """The card as plain data."""
        return {
            "description": self.description.model_dump(mode="json"),
            "model": {
                **self.spec,
                "parameters": self.parameters,
                "envelope_landmarks": self.landmarks,
            },
            "origin": self.origin.model_dump(mode="json"),
            "limits": self._list_limits(),
            "citation": CITATION,
        }

    def markdown(self) -> str:
        """The card as Markdown."""
        known = self.description
        symbols = _join([observable.symbol for observable in known.observables])
        parts = [
            f"# Model card: {known.system}",
            f"Forecasts {symbols} from one microstate, of {known.microstate.in_words}.",
            self.origin.notes,
            "## Model",
            _list(self._describe_model()),
            "## Data",
            _list(self._describe_data()),
            _tabulate(
                ("observable", "symbol", "unit", "range", "conserved"),
                [_describe_observable(observable) for observable in known.observables],
            ),
            "## Training",
            _list(self._describe_training()),
            "## Scores",
            *self._describe_scores(),
            "## Limits",
            "\n".join(f"- {line}" for line in self._list_limits()),
            "## Software and citation",
            _list(self.origin.versions),
            CITATION,
        ]
        return "\n\n".join(part for part in parts if part)

    def _describe_model(self) -> dict[str, Any]:
        parts = {
            part: _write_part(self.spec[part])
            for part in ("encoder", "transition", "readout")
            if part in self.spec
        }
        return {
            "method": self.origin.method,
            "latent dimension": self.spec.get("latent_dim"),
            **parts,
            "weights": f"{self.parameters:,}",
        }

    def _describe_data(self) -> dict[str, Any]:
        known, origin = self.description, self.origin
        unit = f" {known.time_unit}" if known.time_unit else ""
        return {
            "parameters": _write(known.parameters),
            "frames": f"{known.frames}, one every {known.interval:g}{unit}",
            "training trajectories": origin.trajectories,
            "different initial states": origin.initial_states,
            "validation trajectories": origin.validation_trajectories,
            "identity": origin.identity,
        }

    def _describe_training(self) -> dict[str, Any]:
        plain = {key: value for key, value in self.origin.training.items() if value != []}
        validation = self.origin.validation
        return {
            **plain,
            "settings of the method": _write(self.origin.settings),
            "lowest validation error": None if validation is None else f"{validation:.4g}",
        }

    def _describe_scores(self) -> list[str]:
        if not self.origin.scores:
            return ["Not evaluated on a test set yet."]
        rows = [
            (name, *("" if v is None else f"{v:.4g}" for v in (score["rmse"], score["mmd"])))
            for name, score in self.origin.scores.items()
        ]
        lines = [
            "RMSE and squared MMD on the test set, in standard deviations of the training set; "
            "lower is better.",
            _tabulate(("", "RMSE", "MMD²"), rows),
        ]
        if self.origin.crps is not None:
            lines.append(f"CRPS against single trajectories: {self.origin.crps:.4g}.")
        if self.origin.coverage:
            bands = [
                f"{100 * float(level):g} % band {100 * covered:.0f} %"
                for level, covered in self.origin.coverage.items()
            ]
            lines.append(f"Test trajectories inside central bands: {_join(bands)}.")
        return lines

    def _list_limits(self) -> list[str]:
        known = self.description
        unit = f" {known.time_unit}" if known.time_unit else ""
        time = f"{known.interval * (known.frames - 1):g}{unit}"
        lines = [
            f"It was trained on trajectories of {known.frames} frames; beyond a time of {time} a "
            "forecast goes on by the same law, without having been seen there.",
            "It holds for the system, the parameters and the interval above, and for initial "
            "states like those of the training set.",
        ]
        if self.landmarks is None:
            lines.append(
                "It has no envelope: nothing warns of states unlike those of the training set."
            )
        else:
            lines.append(
                f"Its envelope covers the training states by {self.landmarks} landmarks. "
                "Forecasts that leave it are held at its boundary and say so."
            )
        if any(o.lower is not None or o.upper is not None for o in known.observables):
            lines.append("Forecasts are kept within the ranges of the observables.")
        if conserved := [o.symbol for o in known.observables if o.conserved]:
            lines.append(f"Forecasts keep the initial value of {_join(conserved)}.")
        if not self.origin.method:
            lines.append("The file does not say how it was trained: it is older than model cards.")
        return lines


def _describe_observable(observable: Observable) -> tuple[str, ...]:
    ends = (observable.lower, observable.upper)
    low, high = ("" if end is None else f"{end:g}" for end in ends)
    range_ = f"{low} to {high}".strip() if low or high else ""
    if range_.startswith("to"):
        range_ = f"up to {high}"
    elif low and not high:
        range_ = f"from {low}"
    conserved = "yes" if observable.conserved else ""
    return observable.name, observable.symbol, observable.unit, range_, conserved


def _write_part(part: Any) -> str:  # noqa: ANN401
    """A part of the architecture: its name, then its settings."""
    settings = _write({key: value for key, value in part.items() if key != "name"})
    return f"{part['name']} ({settings})" if settings else str(part["name"])


def _write(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, Mapping):
        kept = {key: part for key, part in value.items() if part not in (None, [], {})}
        return ", ".join(
            f"{key} ({_write(part)})" if isinstance(part, Mapping) else f"{key} {_write(part)}"
            for key, part in kept.items()
        )
    if isinstance(value, list | tuple):
        return " x ".join(map(_write, value))
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def _list(facts: Mapping[str, Any]) -> str:
    return "\n".join(
        f"- {key.replace('_', ' ')}: {_write(value)}"
        for key, value in facts.items()
        if value not in (None, "", {})
    )


def _tabulate(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(_escape(cell) for cell in line)} |" for line in lines)


def _escape(cell: str) -> str:
    return " ".join(cell.replace("|", "\\|").split())


def _join(words: list[str]) -> str:
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _keep_finite(value: float | None) -> float | None:
    return None if value is None or not isfinite(value) else float(value)
