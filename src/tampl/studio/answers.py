"""What a studio computes for a page: forecasts, latent trajectories, closures, training logs.

Everything is plain data of numbers; a number that is not finite becomes None, because JSON has no
word for it.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ..errors import InputError
from ..evaluation.health import find_collapse
from ..models import Ensemble, MacroModel
from ..models.envelope import Envelope
from ..models.rollout import Sizes, draw_noise
from .exhibits import Exhibit, ShownModel

__all__ = [
    "LEVELS",
    "Asked",
    "forecast",
    "make_plain",
    "run_closures",
    "show_training",
    "trace_latents",
]

LEVELS = (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)
"""Quantiles of a forecast: edges of the bands of 95, 80 and 50 %, and the median."""

TRACED = 24
"""Members whose latent trajectories are drawn; more would hide one another."""


@dataclass(frozen=True, eq=False)
class Asked:
    """What a forecast is asked for.

    Attributes:
        state: The initial microstate in stored form.
        y0: Its macrostate, or None.
        horizon: Frames ahead.
        members: Members of the ensemble.
        seed: Governs the ensemble; the same for every stroke, so that curves do not jitter.
        samples: Whether all members are wanted.
    """

    state: NDArray[Any]
    y0: NDArray[np.float64] | None
    horizon: int
    members: int = 64
    seed: int = 0
    samples: bool = False


def forecast(shown: ShownModel, asked: Asked) -> dict[str, Any]:
    """Mean and quantiles of a forecast, its warnings, and what it took."""
    started = perf_counter()
    ahead = shown.model.forecast(
        asked.state,
        asked.y0,
        horizon=asked.horizon,
        members=max(asked.members, _count(shown.model)),
        seed=asked.seed,
        progress=False,
    )
    seconds = perf_counter() - started
    return {
        "times": ahead.times.tolist(),
        "mean": make_plain(ahead.mean[0]),
        "std": make_plain(ahead.std[0]),
        "levels": list(LEVELS),
        "quantiles": make_plain(ahead.quantiles(LEVELS)[:, 0]),
        "members": ahead.members,
        "held": ahead.held,
        "warnings": list(ahead.warnings),
        "observed": ahead.observed,
        "seconds": seconds,
        "samples": make_plain(ahead.samples[0]) if asked.samples else None,
    }


@torch.inference_mode()
def trace_latents(shown: ShownModel, asked: Asked) -> dict[str, Any]:
    """Latent trajectories of a forecast's members in the plane of two principal components.

    Models of an ensemble have latent spaces that nothing compares; the first one is shown.
    """
    model = _first(shown.model)
    envelope = model.envelope
    if envelope is None:
        raise InputError(f"{shown.name} has no envelope, and so no cloud of training states")
    state = _start(model, asked)
    sizes = Sizes(1, asked.members if model.stochastic else 1, asked.horizon, 0)
    state = state.repeat_interleave(sizes.members, dim=0)
    places, near = [_project(envelope, state)], None
    noise = draw_noise(sizes, model.transition.noise_dim, seed=asked.seed, states=slice(0, 1))
    for block in noise:
        for step in block.to(state.device, state.dtype):
            held = envelope.hold(model.transition(state, step), near)
            state, near = held.states, held.near
            places.append(_project(envelope, state))
    paths = torch.stack(places, dim=1)[:TRACED]
    return {"paths": make_plain(paths.cpu().numpy())}


def show_training(shown: ShownModel) -> dict[str, Any]:
    """The cloud of training states and the log of the training."""
    envelope = _first(shown.model).envelope
    cloud = None
    if envelope is not None:
        cloud = make_plain(_plane(envelope.landmarks).cpu().numpy())
    losses: dict[str, list[Any]] = {}
    for place, record in enumerate(shown.history):
        for stage, parts in record.get("losses", {}).items():
            losses.setdefault(stage, [None] * len(shown.history))[place] = parts.get("total")
    log = [record.get("latent") or {} for record in shown.history]
    found = {
        "epochs": [record.get("epoch", n) for n, record in enumerate(shown.history, 1)],
        "losses": losses,
        "latent_std": [latent.get("std_mean") for latent in log],
        "validation": [record.get("validation") for record in shown.history],
        "collapsed": [bool(record.get("collapsed")) for record in shown.history],
    }
    return {"cloud": cloud, **make_plain(found), "health": _describe_health(shown)}


def run_closures(exhibit: Exhibit, state: NDArray[Any]) -> list[dict[str, Any]]:
    """Trajectories of the system's textbook closures."""
    return [
        {"name": name.replace("_", " "), "macrostates": make_plain(closure(state[None])[0])}
        for name, closure in exhibit.closures.items()
    ]


def make_plain(value: Any) -> Any:  # noqa: ANN401
    """Arrays, tables and lists as plain data, with None for what is not finite."""
    if isinstance(value, np.ndarray):
        plain = value.tolist()
        return plain if np.isfinite(value).all() else make_plain(plain)
    if isinstance(value, Mapping):
        return {key: make_plain(entry) for key, entry in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, str):
        return [make_plain(entry) for entry in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def _start(model: MacroModel, asked: Asked) -> Tensor:
    """The initial latent state, (1, D)."""
    device = model.y_mean.device
    y0 = None if asked.y0 is None else torch.tensor(asked.y0[None], device=device)
    return model.start(torch.tensor(asked.state[None], device=device), y0)


def _project(envelope: Envelope, states: Tensor) -> Tensor:
    return _plane((states - envelope.centre.to(states)) @ envelope.axes.to(states))


def _plane(places: Tensor) -> Tensor:
    """The two largest principal components; an envelope has the smallest first."""
    plane = places.flip(-1)[:, :2]
    return torch.nn.functional.pad(plane, (0, 2 - plane.shape[1]))


def _describe_health(shown: ShownModel) -> str:
    if not shown.history:
        return "No log of the training is known; give the folder of a run to see it."
    collapse = find_collapse(shown.history)
    if collapse is None:
        return "The latent scale did not collapse."
    return f"The latent scale collapsed in epoch {collapse.epoch} and did not recover."


def _first(model: MacroModel | Ensemble) -> MacroModel:
    return model.models[0] if isinstance(model, Ensemble) else model


def _count(model: MacroModel | Ensemble) -> int:
    return len(model.models) if isinstance(model, Ensemble) else 1
