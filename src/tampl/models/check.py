"""The contract of a model as a function that anyone who writes an encoder or transition can run.

`check_model` holds a model against what forecasts and training rely on: shapes, independence of
the batch, randomness that enters as data alone, gradients that reach every weight, and a
checkpoint that gives the same model back.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import torch
from numpy.typing import NDArray
from torch import Tensor

from .model import MacroModel, load_model

__all__ = ["check_model"]

_STEPS = 2
_TOLERANCE = 1e-5


def check_model(model: MacroModel, microstates: NDArray[Any]) -> None:
    """Raises `AssertionError`, naming the rule, where a model breaks one.

    Arguments:
        model: The model, in evaluation mode.
        microstates: Two microstates or more in stored form, (B, *shape).
    """
    stored = torch.from_numpy(microstates.copy()).to(model.y_mean.device)
    start = _Start(stored, _macrostates(model, len(stored)))
    _check_encoder(model, start)
    _check_transition(model, start)
    _check_rollout(model, start)
    _check_gradients(model, start)
    _check_checkpoint(model, start)


class _Start(NamedTuple):
    """Microstates and macrostates to start from; the latter any, for a model without encoder."""

    microstates: Tensor
    macrostates: Tensor


def _macrostates(model: MacroModel, count: int) -> Tensor:
    around = torch.linspace(-1, 1, count, dtype=torch.float64, device=model.y_mean.device)
    return model.y_mean + around[:, None] * model.y_std


def _require(condition: bool, rule: str) -> None:
    if not condition:
        raise AssertionError(f"a model must meet this rule and does not: {rule}")


@torch.no_grad()
def _check_encoder(model: MacroModel, start: _Start) -> None:
    z = model.encode(*start)
    shape = (len(start.microstates), model.spec.latent_dim)
    _require(z.shape == shape, "`encode` gives (B, latent_dim)")
    _require(bool(z.isfinite().all()), "encodings are finite")
    alone = model.encode(*(part[:1] for part in start))
    _require(
        torch.allclose(alone, z[:1], rtol=_TOLERANCE, atol=_TOLERANCE),
        "the encoding of a microstate does not depend on what else is in the batch",
    )


@torch.no_grad()
def _check_transition(model: MacroModel, start: _Start) -> None:
    state, transition = model.start(*start), model.transition
    draws = [transition.draw(len(state), _generator(model)) for _ in range(2)]
    _require(
        all(torch.equal(draws[0][name], draws[1][name]) for name in draws[0]),
        "`draw` gives the same for the same generator",
    )
    losses = [transition.loss(state, state, draws[0]) for _ in range(2)]
    _require(losses[0].shape == (), "the transition's loss is one number, the batch mean")
    _require(torch.equal(*losses), "the transition's loss draws nothing itself")
    noise = _noise(model, len(state))[0]
    step = transition(state, noise)
    _require(step.shape == state.shape, "a step keeps the shape of the state")
    _require(torch.equal(step, transition(state, noise)), "a step draws nothing itself")
    differs = model.stochastic and not torch.equal(step, transition(state, noise + 1))
    _require(differs == model.stochastic, "a step depends on its noise if there is any")


@torch.no_grad()
def _check_rollout(model: MacroModel, start: _Start) -> None:
    state = model.start(*start)
    y = list(model.rollout(state, _noise(model, len(state))))
    shape = (len(start.microstates), len(model.description.observables))
    _require(len(y) == _STEPS + 1, "a rollout gives the macrostate at t = 0 and after each step")
    _require(all(frame.shape == shape for frame in y), "macrostates have shape (B, m)")
    _require(torch.equal(y[0], model.read(state)), "a rollout starts at its initial state")


def _check_gradients(model: MacroModel, start: _Start) -> None:
    parameters = dict(model.named_parameters())
    frozen = {name for name, parameter in parameters.items() if not parameter.requires_grad}
    model.requires_grad_(True)
    z, state = model.encode(*start), model.start(*start)
    draws = model.transition.draw(len(z), _generator(model))
    moved = model.transition.loss(state, state.detach() + 1, draws)
    stepped = model.transition(state, _noise(model, len(state))[0])
    loss = model.readout(z).square().sum() + moved + stepped.square().sum()
    gradients = torch.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    for (name, parameter), gradient in zip(parameters.items(), gradients, strict=True):
        parameter.requires_grad_(name not in frozen)
        _require(gradient is not None, f"the losses reach every weight, `{name}` included")


@torch.no_grad()
def _check_checkpoint(model: MacroModel, start: _Start) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.safetensors"
        model.save(path)
        own = model.encoder if model.spec.encoder.name == "module" else None
        again = load_model(path, encoder=own, device=start.microstates.device)
    ours, theirs = model.start(*start), again.start(*start)
    noise = _noise(model, len(ours))
    pairs = zip(model.rollout(ours, noise), again.rollout(theirs, noise), strict=True)
    same = [torch.equal(ours, theirs), *(torch.equal(a, b) for a, b in pairs)]
    _require(all(same), "a saved and loaded model gives the same bytes")


def _generator(model: MacroModel) -> torch.Generator:
    return torch.Generator(model.y_mean.device).manual_seed(0)


def _noise(model: MacroModel, count: int) -> Tensor:
    shape = (_STEPS, count, model.transition.noise_dim)
    dtype = next(model.transition.parameters()).dtype
    noise = torch.randn(shape, generator=torch.Generator().manual_seed(0), dtype=dtype)
    return noise.to(model.y_mean.device)
