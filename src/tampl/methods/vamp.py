r"""VAMP: an embedding that evolves linearly as well as it can, then a readout on it.

With mean-free covariances C00, C0t, Ctt of (z_t, z_{t+1}), each with epsilon on its diagonal where
it is inverted, the score to maximise is

    VAMP-2 = 1 + || C00^{-1/2} C0t Ctt^{-1/2} ||_F^2 = 1 + || L0^{-1} C0t Lt^{-T} ||_F^2,

at most 1 + d. Cholesky's C = L L^T does for the square root, without eigenvectors, whose gradients
diverge where eigenvalues meet. Then the Koopman transition is the least-squares map

    z_{t+1} = K z_t + b

over all training pairs, affine because means were removed, and the readout is fitted on the frozen
embedding. The transition is deterministic: there is no distribution to compare.

References: Mardt et al., "VAMPnets for deep learning of molecular kinetics", Nature Communications
2018; Wu and Noe, "Variational approach for learning Markov processes", 2020.
"""

import torch
from pydantic import PositiveFloat
from torch import Tensor

from ..description import Description
from ..models import DeterministicTransition, ModelSpec, Modules
from ..models.transitions import LinearTransitionSpec
from ..training.ranks import sum_over_ranks
from ..training.settings import TrainingSpec
from ..training.stages import Batch, Latents, Losses, Stage, Turn, current_loss
from .base import Method

__all__ = ["Vamp", "fit_affine", "vamp2_score"]


class Vamp(Method):
    """VAMP-2 score, linear Koopman transition, readout on the frozen embedding.

    Attributes:
        epsilon: What is added to the diagonal of a covariance before it is inverted.
    """

    epsilon: PositiveFloat = 1e-6

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        affine = LinearTransitionSpec(name="linear", bias=True)
        return Modules.build(spec.model_copy(update={"transition": affine}), description)

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        score = Stage(
            name="score",
            moves=("encoder",),
            needs=frozenset({"x_window"}),
            loss=self._score_loss,
            draw=lambda modules, count, generator: {},
            optimiser=training.averaged,
        )
        readout = Stage(
            name="readout",
            moves=("readout",),
            needs=frozenset({"y", "z"}),
            loss=_readout_loss,
            draw=lambda modules, count, generator: {},
            optimiser=training.transition,
        )
        epochs = training.epochs
        return Turn((score,), epochs, finish=_fit_transition), Turn((readout,), epochs)

    def _score_loss(self, modules: Modules, batch: Batch) -> Losses:
        latents = batch.latents(modules.encoder(batch["x_window"]))
        score = vamp2_score(latents.z, latents.z_next, epsilon=self.epsilon)
        # What is missing to the highest score: the same gradient, and a loss that stays positive.
        return Losses(1 + latents.z.shape[1] - score, {"vamp2": score})


def vamp2_score(z: Tensor, z_next: Tensor, *, epsilon: float) -> Tensor:
    """The VAMP-2 score of latent pairs (n, d), in float64."""
    z, z_next = z.double(), z_next.double()
    count = sum_over_ranks(z.new_full((), len(z)))
    centred, centred_next = (v - sum_over_ranks(v.sum(dim=0)) / count for v in (z, z_next))
    c00, c0t, ctt = (
        sum_over_ranks(a.T @ b) / (count - 1).clamp_min(1)
        for a, b in ((centred, centred), (centred, centred_next), (centred_next, centred_next))
    )
    ridge = epsilon * torch.eye(z.shape[1], dtype=z.dtype, device=z.device)
    # Without a check of success, for which a GPU would wait: a failure shows as a loss of NaN.
    l0, lt = (torch.linalg.cholesky_ex(c + ridge).L for c in (c00, ctt))
    left = torch.linalg.solve_triangular(l0, c0t, upper=False)
    whitened = torch.linalg.solve_triangular(lt.T, left, upper=True, left=False)
    return 1 + whitened.square().sum()


def fit_affine(z: Tensor, z_next: Tensor) -> tuple[Tensor, Tensor]:
    """K and b of the least-squares map z_next = K z + b, in float64 on the CPU."""
    z, z_next = z.double().cpu(), z_next.double().cpu()
    mean, mean_next = z.mean(dim=0), z_next.mean(dim=0)
    # This driver takes an embedding of deficient rank too; the CPU alone has it.
    solution = torch.linalg.lstsq(z - mean, z_next - mean_next, driver="gelsd").solution
    k = solution.T
    return k, mean_next - k @ mean


@torch.no_grad()
def _fit_transition(modules: Modules, latents: Latents) -> None:
    assert isinstance(modules.transition, DeterministicTransition)
    k, b = fit_affine(latents.z, latents.z_next)
    for name, value in (("weight", k), ("bias", b)):
        modules.transition.network.get_parameter(name).copy_(value)


def _readout_loss(modules: Modules, batch: Batch) -> Losses:
    current = current_loss(modules, batch["z"], batch["y"])
    return Losses(current, {"cur": current})
