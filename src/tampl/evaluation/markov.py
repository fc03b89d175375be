r"""Is the latent state a state? The Chapman-Kolmogorov equation on held-out trajectories.

If z_t tells everything about the future that matters, the law of z_{t+k} given z_t is that of k
steps of the transition,

    p(z_{t+k} | z_t) = T^k(. | z_t),        for every k and every t,

not only from t = 0. From encoded frames of trajectories the transition is run k steps, and the
encoded frame k later is compared with the ensemble: its 80 % band should cover 80 % for every k,
and its spread should equal its error. Where coverage falls with k, the latent state forgets what
matters later; where it is wrong at k = 1 already, the transition does not fit.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from ..calibration import LEVELS, Calibration, calibrate
from ..data.dataset import Dataset
from ..description import match_interval
from ..errors import InputError
from ..models import MacroModel
from ..models.rollout import Sizes, draw_noise
from ..seeding import numpy_generator

__all__ = ["MarkovTest", "chapman_kolmogorov"]

_BAND_80 = LEVELS.index(0.8)
_STARTS = 256
"""Frames, at random over trajectories and times, that the test starts from."""


@dataclass(frozen=True, eq=False)
class MarkovTest:
    """What k steps of the transition cover of the frames k later.

    Attributes:
        steps: Numbers of steps k, (K,).
        latent: Coverage of the 80 % bands of the latent coordinates, their mean, (K,).
        observables: Coverage of the 80 % bands of the observables, (K, m).
        spread_to_error: Spread over error of the latent coordinates, (K,).
        starts: How many frames were started from.
    """

    steps: tuple[int, ...]
    latent: NDArray[np.float64]
    observables: NDArray[np.float64]
    spread_to_error: NDArray[np.float64]
    starts: int

    def __str__(self) -> str:
        """The coverage after each number of steps in a sentence."""
        found = ", ".join(
            f"{steps}: {covered:.0%}"
            for steps, covered in zip(self.steps, self.latent, strict=True)
        )
        return f"80 % bands of latent coordinates cover, by number of steps, {found}"

    def as_dict(self) -> dict[str, Any]:
        """Plain data for a file."""
        return {
            "steps": list(self.steps),
            "latent": self.latent.round(6).tolist(),
            "observables": self.observables.round(6).tolist(),
            "spread_to_error": self.spread_to_error.round(6).tolist(),
            "starts": self.starts,
        }

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "MarkovTest":
        """The result that `as_dict` turned into plain data."""
        return cls(
            steps=tuple(map(int, plain["steps"])),
            latent=np.array(plain["latent"], dtype=np.float64),
            observables=np.array(plain["observables"], dtype=np.float64),
            spread_to_error=np.array(plain["spread_to_error"], dtype=np.float64),
            starts=int(plain["starts"]),
        )


@torch.inference_mode()
def chapman_kolmogorov(
    model: MacroModel,
    data: Dataset,
    *,
    steps: Sequence[int] | None = None,
    members: int = 32,
    seed: int = 0,
) -> MarkovTest | None:
    """Compares k steps of the transition with the frames k later.

    Arguments:
        model: The model.
        data: Trajectories that it was not trained on.
        steps: Numbers of steps; by default 1, 2, 4 and so on up to half a trajectory.
        members: Members of each ensemble.
        seed: Governs starts and noise.

    Returns:
        The result; None for a deterministic transition, which has no spread, and where too many
        frames are missing.
    """
    data = data.thin(match_interval(model.description, data.description, whose="the model"))
    count, frames = data.y.shape[:2]
    if steps is None:
        steps = [2**n for n in range(frames.bit_length()) if 2**n <= max(1, frames // 2)]
    longest = max(steps, default=0)
    if not steps or min(steps) < 1 or longest >= frames:
        raise InputError(f"`steps` is {list(steps)}; give numbers from 1 to {frames - 1}")
    if not model.stochastic:
        return None
    generator = numpy_generator(seed, "markov")
    places = generator.permutation(count * (frames - longest))
    run, frame = np.unravel_index(places, (count, frames - longest))
    if data.present is not None:
        places = places[np.all([data.present[run, frame + k] for k in (0, *steps)], axis=0)]
    if not len(places):
        return None
    run, frame = np.unravel_index(np.sort(places[:_STARTS]), (count, frames - longest))
    sizes = Sizes(len(run), members, longest, data.y.shape[2])
    state = model.start_arrays(data.x[run, frame], data.y[run, frame])
    state, latent_dim = state.repeat_interleave(members, dim=0), model.spec.latent_dim
    found: dict[int, tuple[Any, ...]] = {}
    time = 0
    for block in draw_noise(sizes, model.transition.noise_dim, seed=seed, states=slice(None)):
        for noise in block.to(state.device, state.dtype):
            state, time = model.transition(state, noise), time + 1
            if time not in steps:
                continue
            x, y = data.x[run, frame + time], data.y[run, frame + time]
            ahead = model.start_arrays(x, y)[:, :latent_dim].cpu().numpy()
            latent = _compare(state[:, :latent_dim].cpu().numpy(), ahead)
            macro = _compare(model.read(state).cpu().numpy(), y)
            ratio = np.sqrt((latent.spread**2).mean() / (latent.error**2).mean())
            covered = latent.coverage[_BAND_80].mean(), macro.coverage[_BAND_80, 0]
            found[time] = (*covered, float(ratio))
    covered, observed, ratios = zip(*(found[k] for k in sorted(found)), strict=True)
    return MarkovTest(
        steps=tuple(sorted(found)),
        latent=np.array(covered),
        observables=np.stack(observed),
        spread_to_error=np.array(ratios),
        starts=len(run),
    )


def _compare(members: NDArray[Any], truth: NDArray[Any]) -> Calibration:
    """Ensembles at one time, (B N, d), beside what was there, (B, d)."""
    samples = members.reshape(len(truth), -1, truth.shape[1])
    # Values take the place of the second of two frames; each coordinate has its own scale.
    ensemble, path = (np.stack([y, y], axis=2) for y in (samples, truth[:, None]))
    scale = np.maximum(truth.std(axis=0), np.finfo(np.float32).tiny)
    symbols = [str(number) for number in range(truth.shape[1])]
    return calibrate(ensemble, path, np.array([0.0, 1.0]), symbols, scale=scale)
