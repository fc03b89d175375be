r"""The macroscopic model: E, T and R with what they need to stand alone.

At inference the encoder sees the initial microstate only (the paper's Algorithm 2):

    z_0 = E(x_0),    z_{t+1} ~ T(. | z_t),    y_t = R(z_t).

A model without an encoder starts from z_0 = y_0, standardised, instead. A model whose transition
carries the macrostate has the state (z, y), starts at (E(x_0), y_0), with R(E(x_0)) in place of a
y_0 that is not known, and reads y from its state. The readout speaks standardised macrostates; the
model returns physical units.
"""

import math
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor, nn

from ..data.dataset import Dataset, Normalization, Statistics
from ..description import Description
from ..errors import ForecastWarning, InputError
from ..forecast import Forecast, Moments
from ..frozen import Frozen, Width
from ..progress import bar
from ..version import __version__
from .card import Card, Origin
from .checkpoint import load_tensors, save_tensors, take_prefixed
from .decoders import AnyDecoder
from .encoders import AnyEncoder, ModuleEncoderSpec, ResNetEncoderSpec
from .envelope import SAMPLED, Envelope, Likeness
from .limits import respect_limits
from .parts import resolve_device
from .readouts import AnyReadout, MLPReadoutSpec
from .rollout import (
    Block,
    Part,
    Sizes,
    collect_moments,
    collect_samples,
    draw_noise,
    roll_out,
)
from .transitions import AnyTransition, Transition

__all__ = ["MacroModel", "ModelSpec", "Modules", "load_card", "load_model"]

FORMAT = "tampl-model-4"

ENCODED = 512
"""Microstates encoded at once, which bounds the memory of a deterministic model's forecast."""

ENTRIES = 2**17
"""Their entries on a CPU. The activations of more do not fit into its caches: 256 lattices of
100 x 100 sites take four times as long at once as in pieces."""

ROWS, ROWS_GPU = 2048, 65536
"""Members carried through the networks at once: on a CPU their activations stay in its cache. With
8,192 the same products take 2.6 times as long on two cores."""


class ModelSpec(Frozen):
    """The architecture as plain data: encoder, transition and readout around one dimension d_z.

    A recipe states it and a checkpoint carries it. A combination that cannot work, such as a
    lattice encoder on vectors, is refused before anything is trained.

    Attributes:
        latent_dim: Size of z.
        encoder: E.
        transition: T.
        readout: R.
        decoder: For methods that reconstruct microstates in training; no model keeps it.
    """

    latent_dim: Width
    encoder: AnyEncoder
    transition: AnyTransition
    readout: AnyReadout = MLPReadoutSpec(name="mlp")
    decoder: AnyDecoder | None = None

    def blank(self) -> "ModelSpec":
        """The same architecture without published weights to start from.

        For a model whose own weights follow: they need not be fetched to be overwritten.
        """
        if not isinstance(self.encoder, ResNetEncoderSpec):
            return self
        encoder = self.encoder.model_copy(update={"weights": "none"})
        return self.model_copy(update={"encoder": encoder})


class Modules(nn.Module):
    """The modules of a training run by name; a method may add some that no model keeps.

    Arguments:
        spec: The architecture that encoder, transition and readout have.
        encoder: E, network input (B, ...) to z (B, d).
        transition: T.
        readout: R, z (B, d) to the standardised macrostate (B, m).
    """

    def __init__(
        self, spec: ModelSpec, *, encoder: nn.Module, transition: Transition, readout: nn.Module
    ) -> None:
        super().__init__()
        self.spec = spec
        self.encoder = encoder
        self.transition = transition
        self.readout = readout

    @classmethod
    def build(cls, spec: ModelSpec, description: Description) -> "Modules":
        """Builds E, T and R with fresh weights for a system's microstates and observables."""
        observables = len(description.observables)
        carried = observables if spec.transition.carries_macrostate else 0
        return cls(
            spec,
            encoder=spec.encoder.build(description.microstate, spec.latent_dim),
            transition=spec.transition.build(spec.latent_dim + carried),
            readout=spec.readout.build(spec.latent_dim, observables),
        )

    def add(self, others: Mapping[str, nn.Module]) -> None:
        """Adds modules that no model keeps, e.g. a decoder, by name."""
        for name, module in others.items():
            self.add_module(name, module)


class MacroModel(nn.Module):
    """A trained E, T and R: forecasts macrostates from initial microstates by itself.

    Arguments:
        description: The system it was trained on.
        statistics: What it keeps of its training set.
        modules: The modules; architecture, encoder, transition and readout are taken from them.

    Attributes:
        history: The log of the training, one plain record per epoch; empty for a loaded model.
        origin: Where it comes from; `card` shows it with all else that is known.
    """

    y_mean: Tensor
    y_std: Tensor
    x_mean: Tensor | None
    x_std: Tensor | None
    mean_trajectory: Tensor | None

    def __init__(
        self, description: Description, *, statistics: Statistics, modules: Modules
    ) -> None:
        super().__init__()
        self.spec = modules.spec
        self.description = description
        self.encoder = modules.encoder
        self.transition = modules.transition
        self.readout = modules.readout
        self.history: list[dict[str, Any]] = []
        self.origin = Origin()
        self.envelope: Envelope | None = None
        self.likeness: Likeness | None = None
        x, y = statistics.x, statistics.y
        # Copies, beside the weights: loading a model must not reach the caller's statistics.
        device = next(modules.transition.parameters()).device
        for name, value in (
            ("y_mean", y.mean),
            ("y_std", y.std),
            ("x_mean", None if x is None else x.mean),
            ("x_std", None if x is None else x.std),
            ("mean_trajectory", statistics.mean_trajectory),
        ):
            known = None if value is None else torch.tensor(value, dtype=torch.float64)
            self.register_buffer(name, known if known is None else known.to(device))

    def __repr__(self) -> str:
        symbols = ", ".join(o.symbol for o in self.description.observables)
        return (
            f"MacroModel({self.spec.encoder.name} encoder, latent dimension "
            f"{self.spec.latent_dim}, {self.spec.transition.name} transition, "
            f"{self._count_weights():,} parameters; observables: {symbols})"
        )

    @property
    def card(self) -> Card:
        """What the model is, what it was trained on, how good it is and where it ends."""
        return Card(
            description=self.description,
            spec=self.spec.model_dump(mode="json"),
            origin=self.origin,
            parameters=self._count_weights(),
            landmarks=None if self.envelope is None else len(self.envelope.landmarks),
        )

    @property
    def stochastic(self) -> bool:
        """Whether two rollouts from one microstate differ."""
        return self.transition.noise_dim > 0

    @property
    def normalization(self) -> Normalization:
        """Statistics of the training macrostates."""
        return Normalization(mean=self.y_mean.cpu().numpy(), std=self.y_std.cpu().numpy())

    @property
    def carries_macrostate(self) -> bool:
        """Whether y is part of the state that the transition moves."""
        return self.spec.transition.carries_macrostate

    @property
    def needs_macrostates(self) -> bool:
        """Whether it starts from y_0 instead of x_0."""
        return self.spec.encoder.reads == "y"

    def encode(self, microstates: Tensor, macrostates: Tensor | None = None) -> Tensor:
        """z_0 = E(x_0), or the standardised y_0 where there is no encoder: (B, d).

        Arguments:
            microstates: In stored form, (B, *shape).
            macrostates: In physical units, (B, m); for a model that `needs_macrostates`.
        """
        dtype = next(self.transition.parameters()).dtype
        if not self.needs_macrostates:
            if self.x_mean is not None and self.x_std is not None:
                microstates = (microstates - self.x_mean) / self.x_std
            return self.encoder(self.description.microstate.network_input(microstates, dtype))
        if macrostates is None:
            raise InputError("the model starts from macrostates; give `y0`, those at t = 0, too")
        return self.encoder(((macrostates - self.y_mean) / self.y_std).to(dtype))

    def start(self, microstates: Tensor, macrostates: Tensor | None = None) -> Tensor:
        """The initial state of a rollout: z_0, or (z_0, y_0) where the transition carries y.

        Arguments:
            microstates: In stored form, (B, *shape).
            macrostates: Observed at t = 0, in physical units, (B, m); R(z_0) stands in for them.
        """
        z = self.encode(microstates, macrostates)
        if not self.carries_macrostate:
            return z
        if macrostates is None:
            return torch.cat([z, self.readout(z)], dim=-1)
        y = (macrostates - self.y_mean) / self.y_std
        return torch.cat([z, y.to(z.dtype)], dim=-1)

    def read(self, state: Tensor) -> Tensor:
        """The macrostate of a state in physical units, float64: R(z), or the y that it carries."""
        d = self.spec.latent_dim
        y = state[..., d:] if self.carries_macrostate else self.readout(state)
        return y.to(self.y_std.dtype) * self.y_std + self.y_mean

    @torch.no_grad()
    def enclose(self, train: Dataset) -> None:
        """Takes the envelope of the training set; a model that is not sound has none."""
        shape, present = train.y.shape[:2], train.present
        count = shape[0] * shape[1] if present is None else int(present.sum())
        # Not every k-th frame, which would be the same time of every trajectory for some k.
        chosen = np.linspace(0, count - 1, min(SAMPLED, count)).round().astype(int)
        if present is not None:
            chosen = np.flatnonzero(present)[chosen]
        run, frame = np.unravel_index(chosen, shape)
        parts = []
        for first in range(0, len(run), ENCODED):  # all of them may not fit into memory
            place = run[first : first + ENCODED], frame[first : first + ENCODED]
            x = train.x[place]
            summary = torch.from_numpy(self.description.microstate.summarise(x))
            parts.append((self.start_arrays(x, train.y[place]), summary))
        states, summaries = (torch.cat(each) for each in zip(*parts, strict=True))
        if not states.isfinite().all():
            return
        trajectory = torch.from_numpy(run).to(states.device)
        self.envelope = Envelope.fit(states, trajectory).to(states.device)
        if summaries.shape[1]:
            likeness = Likeness.fit(summaries.to(states.device), trajectory)
            self.likeness = likeness.to(states.device)

    def rollout(self, state: Tensor, noise: Tensor) -> Iterator[Tensor]:
        """Yields y_0, y_1, ..., y_H in physical units, each (B, m).

        Arguments:
            state: Initial states, as `start` gives them, (B, D).
            noise: Base noise of every step, (H, B, noise_dim).
        """
        yield self.read(state)
        for step_noise in noise:
            state = self.transition(state, step_noise)
            yield self.read(state)

    @overload
    def forecast(
        self,
        x0: ArrayLike,
        y0: ArrayLike | None = None,
        *,
        horizon: int | None = None,
        members: int = 64,
        seed: int = 0,
        limits: bool = True,
        keep: Literal["samples"] = "samples",
        progress: bool = True,
    ) -> Forecast: ...

    @overload
    def forecast(
        self,
        x0: ArrayLike,
        y0: ArrayLike | None = None,
        *,
        horizon: int | None = None,
        members: int = 64,
        seed: int = 0,
        limits: bool = True,
        keep: Literal["moments"],
        progress: bool = True,
    ) -> Moments: ...

    def forecast(
        self,
        x0: ArrayLike,
        y0: ArrayLike | None = None,
        *,
        horizon: int | None = None,
        members: int = 64,
        seed: int = 0,
        limits: bool = True,
        keep: Literal["samples", "moments"] = "samples",
        progress: bool = True,
    ) -> Forecast | Moments:
        """Forecasts the observables from microstates at t = 0: Algorithm 2.

        Arguments:
            x0: One initial microstate, or several stacked, (G, *shape). Particles may be more or
                fewer than the model was trained on.
            y0: The observed macrostates at t = 0 in physical units, (G, m). R(E(x_0)) stands in
                for them; only a model without an encoder cannot do without.
            horizon: Number H of frames ahead; by default as many as a training trajectory has.
            members: Trajectories for each microstate; a deterministic model gives one.
            seed: Governs the ensemble.
            limits: Whether rollouts are held inside the envelope of the training states, start at
                `y0` and respect the limits of the observables. Without, the numbers are those of
                the paper's algorithm.
            keep: "samples" for all members; "moments" for mean and standard deviation alone, whose
                memory does not grow with the number of members.
            progress: Whether to show a bar.

        Example:
            >>> model.forecast(lattice, horizon=40, members=64, seed=1).mean  # doctest: +SKIP
        """
        horizon = self.description.frames - 1 if horizon is None else horizon
        for name, count in (("horizon", horizon), ("members", members)):
            if not isinstance(count, int | np.integer) or not 1 <= count <= _MOST:
                raise InputError(
                    f"`{name}` is {count!r}; it must be an integer of at least 1, and of at most "
                    f"{_MOST:,}"
                )
        if keep not in _COLLECTORS:
            raise InputError(f"`keep` is {keep!r}; it must be one of {list(_COLLECTORS)}")
        states = self._stack(np.asarray(x0))
        start = self._check_start(y0, len(states))
        if not limits and not self.needs_macrostates:
            start = None
        observables = self.description.observables
        sizes = Sizes(
            len(states), members if self.stochastic else 1, int(horizon), len(observables)
        )
        parts = self.roll_out(
            states, start, sizes=sizes, seed=seed, limits=limits, progress=progress
        )
        labels = {
            "times": self.description.interval * np.arange(horizon + 1, dtype=np.float64),
            "symbols": tuple(observable.symbol for observable in observables),
            "units": tuple(observable.unit for observable in observables),
            "time_unit": self.description.time_unit,
            "observed": start is not None,
        }
        found = _COLLECTORS[keep](parts, sizes, labels)
        for line in found.warnings:
            warnings.warn(line, ForecastWarning, stacklevel=2)
        return found

    def roll_out(
        self,
        states: NDArray[Any],
        start: NDArray[np.float64] | None,
        *,
        sizes: Sizes,
        seed: int = 0,
        limits: bool = False,
        progress: bool = False,
    ) -> Iterator[Part]:
        """Rolls the model out, some initial microstates and times after another.

        Arguments:
            states: Microstates in stored form, (G, *shape).
            start: Observed macrostates at t = 0, (G, m), or None.
            sizes: Horizon and members.
            seed: Governs the ensemble.
            limits: Whether to hold rollouts inside the envelope and the observables' limits.
            progress: Whether to show a bar.
        """
        rows = ROWS if self.y_mean.device.type == "cpu" else ROWS_GPU
        per_chunk = max(1, min(ENCODED, rows // sizes.members))
        chunks = range(0, len(states), per_chunk)
        envelope = self.envelope if limits else None
        with bar("forecasting", len(chunks), visible=progress) as advance:
            for first in chunks:
                chunk = slice(first, first + per_chunk)
                known = None if start is None else start[chunk]
                noise = draw_noise(sizes, self.transition.noise_dim, seed=seed, states=chunk)
                state = self.start_arrays(states[chunk], known)
                state = state.repeat_interleave(sizes.members, dim=0)
                initial, time = None, 0
                for block in roll_out(self.transition, self.read, state, noise, envelope):
                    y, inside = _to_arrays(block, sizes.members)
                    if inside is not None and initial is None:
                        inside &= self._know(states[chunk])[:, None, None]
                    if limits:
                        y = respect_limits(y, self.description, initial=initial, observed=known)
                    # What is conserved keeps the value of t = 0, which comes first.
                    initial = y[:, :, 0] if initial is None else initial
                    times = slice(time, time + y.shape[2])
                    yield Part(chunk, times, y, inside)
                    time = times.stop
                advance("")

    def save(self, path: str | Path) -> None:
        """Saves weights, architecture, description and statistics to one safetensors file."""
        header = {
            "format": FORMAT,
            "code_version": __version__,
            "spec": self.spec.model_dump(mode="json"),
            "description": self.description.model_dump(mode="json"),
            "parameters": self._count_weights(),
            "origin": self.origin.model_dump(mode="json", exclude_defaults=True),
        }
        if not Path(path).parent.is_dir():
            raise InputError(f"`path` is {path}; its folder does not exist: make it first")
        save_tensors(Path(path), self.state_dict(), header)

    def take(self, tensors: Mapping[str, Tensor]) -> None:
        """Takes weights, statistics and envelope from the state of a model that is built alike."""
        envelope, likeness = (take_prefixed(tensors, name) for name in ("envelope.", "likeness."))
        if envelope:
            self.envelope = Envelope(**envelope)
        if likeness:
            own = {name: likeness.pop(name) for name in ("mean", "scale")}
            self.likeness = Likeness(
                **own, envelope=Envelope(**take_prefixed(likeness, "envelope."))
            )
        self.load_state_dict(tensors)

    def _count_weights(self) -> int:
        return sum(parameter.numel() for parameter in self.parameters())

    def _stack(self, x0: NDArray[Any]) -> NDArray[Any]:
        """Microstates in stored form, (G, *shape)."""
        kind = self.description.microstate
        states = kind.check(x0, "`x0`")
        if states.ndim > len(kind.shape) + 1:
            raise InputError(f"`x0` has shape {states.shape}; stack microstates along one axis")
        # The kind says how many axes a microstate has; sets of particles may be of any size.
        states = states.reshape(-1, *states.shape[-len(kind.shape) :])
        if not len(states):
            raise InputError("`x0` is empty; give one microstate at least")
        return states

    def _check_start(self, y0: ArrayLike | None, count: int) -> NDArray[np.float64] | None:
        """Macrostates at t = 0, (G, m); None where they are not given and not needed."""
        if y0 is None and not self.needs_macrostates:
            return None
        shape = (count, len(self.description.observables))
        if y0 is None:
            raise InputError(
                f"`y0` is missing; the model starts from macrostates at t = 0, of shape {shape}"
            )
        start = np.asarray(y0, dtype=np.float64)
        if start.shape == shape[1:] and count == 1:
            start = start[None]
        if start.shape != shape:
            raise InputError(
                f"`y0` has shape {start.shape}; the macrostates at t = 0 of these microstates "
                f"have shape {shape}"
            )
        if not np.isfinite(start).all():
            raise InputError("`y0` holds NaN or infinity; give the observed macrostates at t = 0")
        return start

    @torch.inference_mode()
    def start_arrays(self, states: NDArray[Any], start: NDArray[Any] | None) -> Tensor:
        """What `start` gives, of arrays and in bounded memory.

        Arguments:
            states: In stored form, (B, *shape).
            start: Macrostates in physical units, (B, m), or None.
        """
        device, parts, at_once = self.y_mean.device, [], ENCODED
        if device.type == "cpu":
            at_once = max(1, min(ENCODED, ENTRIES // math.prod(states.shape[1:])))
        for first in range(0, len(states), at_once):
            part = slice(first, first + at_once)
            # Copies, because torch takes no array that is read-only or runs backwards.
            microstates = torch.from_numpy(states[part].copy()).to(device)
            known = None if start is None else torch.from_numpy(start[part].copy()).to(device)
            parts.append(self.start(microstates, known))
        return torch.cat(parts)

    def _know(self, states: NDArray[Any]) -> NDArray[np.bool_]:
        """Which microstates look like those of the training set, (B,)."""
        if self.likeness is None:
            return np.ones(len(states), dtype=np.bool_)
        summaries = torch.from_numpy(self.description.microstate.summarise(states))
        return self.likeness.know(summaries.to(self.y_mean.device)).cpu().numpy()


_MOST = 10**9
"""Steps or members of a forecast."""

_COLLECTORS: dict[str, Callable[..., Forecast | Moments]] = {
    "samples": collect_samples,
    "moments": collect_moments,
}
"""What a forecast may keep of its ensemble."""


def _to_arrays(block: Block, members: int) -> tuple[NDArray[np.float64], NDArray[np.bool_] | None]:
    y = block.y.unflatten(0, (-1, members)).cpu().numpy()
    if block.inside is None:
        return y, None
    return y, block.inside.unflatten(0, (-1, members)).cpu().numpy()


def load_model(
    path: str | Path, *, encoder: nn.Module | None = None, device: torch.device | str = "auto"
) -> MacroModel:
    """Loads a model saved by `MacroModel.save`, in evaluation mode.

    Arguments:
        path: The file.
        encoder: The encoder's module, for a model that was trained with one from outside of tampl;
            its weights are replaced by those of the file.
        device: Where to put the model; "auto" takes a GPU where there is one.
    """
    device = resolve_device(str(device))
    tensors, header = load_tensors(Path(path), FORMAT)
    try:
        model = _rebuild(tensors, header, encoder)
    # What torch raises where names or shapes of the tensors differ is a RuntimeError.
    except (KeyError, TypeError, InputError, RuntimeError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} does not hold the model it describes: {reason}") from error
    return model.to(device).eval()


def load_card(path: str | Path) -> Card:
    """Reads the card of a saved model; its modules need not be known.

    Arguments:
        path: The file.
    """
    tensors, header = load_tensors(Path(path), FORMAT)
    try:
        return Card(
            description=Description.model_validate(header["description"]),
            spec=ModelSpec.model_validate(header["spec"]).model_dump(mode="json"),
            origin=_read_origin(header),
            parameters=_read_weights(tensors, header),
            landmarks=_count_landmarks(tensors),
        )
    except (KeyError, TypeError, InputError) as error:
        reason = " ".join(str(error).split())
        raise InputError(f"{path} does not hold the model it describes: {reason}") from error


def _read_origin(header: Mapping[str, Any]) -> Origin:
    # Models from before there were cards do not say where they come from.
    return Origin.model_validate(header.get("origin", {}))


def _read_weights(tensors: Mapping[str, Tensor], header: Mapping[str, Any]) -> int:
    # Models from before there were cards do not say which of their numbers are weights.
    parts = ("encoder.", "transition.", "readout.")
    count = sum(value.numel() for key, value in tensors.items() if key.startswith(parts))
    told = header.get("parameters", count)
    if not isinstance(told, int):
        raise TypeError(f"`parameters` is {told!r}; it must be a number")
    return told


def _count_landmarks(tensors: Mapping[str, Tensor]) -> int | None:
    return len(tensors["envelope.landmarks"]) if "envelope.landmarks" in tensors else None


def _rebuild(
    tensors: Mapping[str, Tensor], header: Mapping[str, Any], encoder: nn.Module | None
) -> MacroModel:
    spec = ModelSpec.model_validate(header["spec"])
    if encoder is not None:
        spec = spec.model_copy(update={"encoder": ModuleEncoderSpec.of(encoder)})
    description = Description.model_validate(header["description"])
    # The weights keep the precision they were trained in; the statistics stay float64.
    dtypes = (value.dtype for name, value in tensors.items() if name.startswith("transition."))
    # The file brings all weights: published ones need not be fetched to be overwritten.
    modules = Modules.build(spec.blank(), description).to(next(dtypes, torch.float32))
    modules.spec = spec
    path = tensors.get("mean_trajectory")
    x = None  # models from before vectors were standardised have none either
    if "x_mean" in tensors:
        x = Normalization(tensors["x_mean"].numpy(), tensors["x_std"].numpy())
    statistics = Statistics(
        y=Normalization(tensors["y_mean"].numpy(), tensors["y_std"].numpy()),
        x=x,
        mean_trajectory=None if path is None else path.numpy(),
    )
    model = MacroModel(description, statistics=statistics, modules=modules)
    model.origin = _read_origin(header)
    model.take(tensors)
    return model
