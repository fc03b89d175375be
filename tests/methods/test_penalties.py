"""SIGReg and VICReg: known values, gradients that push the right way, two ranks as one."""

import math

import pytest
import torch
from torch import multiprocessing
from torch.distributed import destroy_process_group, init_process_group

from tampl.methods.penalties import Sig, Vic, epps_pulley, vicreg_terms
from tampl.methods.vamp import vamp2_score
from tampl.training.stages import Batch, Latents

LATENT_DIM = 4


class Small:
    """All that a penalty asks of the modules."""

    class spec:
        latent_dim = LATENT_DIM


def penalise(penalty, z, seed=0):
    """The penalty of latent states that are the two ends of some pairs."""
    noise = penalty.draw(Small, len(z) // 2, torch.Generator().manual_seed(seed))
    return penalty.loss(Small, Latents(*z.tensor_split(2)), Batch({}, noise))


def normal(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


# SIGReg


def test_statistic_of_a_constant():
    """All states at 0: N int (1 - e^{-t^2/2})^2 e^{-t^2/2} dt in closed form."""
    expected = math.sqrt(2 * math.pi) - 2 * math.sqrt(math.pi) + math.sqrt(2 * math.pi / 3)
    value = epps_pulley(torch.zeros(7, 1, dtype=torch.float64))
    # The rule on [0, 5] leaves out what lies beyond, exp(-12.5) of it.
    assert value.item() == pytest.approx(7 * expected, rel=1e-3)


def test_statistic_of_a_gaussian_is_its_expectation():
    """E N |phi_N - phi|^2 = 1 - e^{-t^2}, so the mean is sqrt(2 pi) - sqrt(2 pi / 3)."""
    expected = math.sqrt(2 * math.pi) - math.sqrt(2 * math.pi / 3)
    values = epps_pulley(normal(200, 4000))
    error = values.std() / math.sqrt(len(values))
    assert abs(values.mean() - expected) < 4 * error + 1e-3


def test_statistic_sees_shift_scale_and_shape():
    base = normal(500, 50)
    gaussian = epps_pulley(base).mean()
    for other in (base + 0.5, 2 * base, 0.5 * base, base.sign()):
        assert epps_pulley(other).mean() > 5 * gaussian


def test_statistic_agrees_with_a_fine_quadrature():
    projections = 0.7 * normal(40, 3) + 0.2
    t = torch.linspace(-8, 8, 4001, dtype=torch.float64)
    phi = torch.exp(1j * projections[..., None] * t).mean(dim=0)
    gaussian = torch.exp(-(t**2) / 2)
    fine = 40 * torch.trapezoid((phi - gaussian).abs() ** 2 * gaussian, t, dim=-1)
    torch.testing.assert_close(epps_pulley(projections), fine, rtol=2e-2, atol=1e-4)


def test_directions_are_unit_and_new_every_time():
    penalty, generator = Sig(slices=32), torch.Generator().manual_seed(0)
    first, second = (penalty.draw(Small, 8, generator)["directions"] for _ in range(2))
    torch.testing.assert_close(first.norm(dim=0), torch.ones(32))
    assert not torch.equal(first, second)


# VICReg


def test_vicreg_of_a_constant():
    variance, covariance = vicreg_terms(torch.full((9, 3), 2.0, dtype=torch.float64))
    assert variance.item() == pytest.approx(1 - math.sqrt(1e-4))
    assert covariance == 0


def test_vicreg_of_a_wide_isotropic_batch_vanishes():
    variance, covariance = vicreg_terms(2 * normal(100_000, 3))
    assert variance == 0
    assert covariance < 1e-3


def test_vicreg_of_a_correlated_batch():
    """z = (a, a) with Var a = s^2: the off-diagonal sum is 2 s^4, over d = 2."""
    a = 1.5 * normal(50, 1)
    _, covariance = vicreg_terms(torch.cat([a, a], dim=1))
    assert covariance.item() == pytest.approx(a.var().item() ** 2)


# Both


@pytest.mark.parametrize("penalty", [Sig(), Vic()])
def test_gradient_opens_a_small_scale(penalty):
    """Descending the penalty of a shrunken batch widens it."""
    z = (0.05 * normal(256, LATENT_DIM)).requires_grad_()
    (gradient,) = torch.autograd.grad(penalise(penalty, z), z)
    radial = (gradient * (z - z.mean(dim=0))).sum()
    assert radial < 0


@pytest.mark.parametrize("penalty", [Sig(), Vic()])
def test_gradient_takes_correlations_away(penalty):
    """Of two equal coordinates, descending the penalty lowers the correlation."""
    a = normal(256, 2)
    z = torch.cat([a, a + 0.1 * normal(256, 2, seed=1)], dim=1).requires_grad_()
    value = penalise(penalty, z)
    assert value > penalise(penalty, normal(256, LATENT_DIM, seed=2))
    (gradient,) = torch.autograd.grad(value, z)
    stepped = (z - 1e-2 * gradient / gradient.norm() * z.norm()).detach()
    before, after = (torch.corrcoef(states.T)[0, 2] for states in (z.detach(), stepped))
    assert after < before


def value_and_gradient(z, weight):
    """Every batch statistic of an encoding z W, and the gradient with respect to W."""
    encoded = z @ weight
    lagged = encoded + 0.1 * z.roll(1, dims=1).sin()
    total = penalise(Sig(), encoded, seed=1) + penalise(Vic(), encoded)
    total = total + vamp2_score(encoded, lagged, epsilon=1e-6)
    (gradient,) = torch.autograd.grad(total, weight)
    return total.detach(), gradient


def run_rank(rank, address, results):
    init_process_group("gloo", init_method=address, rank=rank, world_size=2)
    z, weight = normal(30, LATENT_DIM), 0.3 * normal(LATENT_DIM, LATENT_DIM, seed=1)
    # Ranks may hold parts of different size.
    part = z[:11] if rank == 0 else z[11:]
    results[rank] = [t.tolist() for t in value_and_gradient(part, weight.requires_grad_())]
    destroy_process_group()


@pytest.mark.slow
def test_two_ranks_equal_one(tmp_path):
    context = multiprocessing.get_context("spawn")
    with context.Manager() as manager:
        results = manager.dict()
        address = f"file://{tmp_path / 'rendezvous'}"
        multiprocessing.spawn(run_rank, args=(address, results), nprocs=2)
        ranks = [[torch.tensor(t, dtype=torch.float64) for t in results[r]] for r in (0, 1)]
    z, weight = normal(30, LATENT_DIM), 0.3 * normal(LATENT_DIM, LATENT_DIM, seed=1)
    value, gradient = value_and_gradient(z, weight.requires_grad_())
    for rank_value, _ in ranks:
        torch.testing.assert_close(rank_value, value, rtol=1e-6, atol=1e-9)
    # Data-parallel training averages the gradients of its ranks.
    torch.testing.assert_close((ranks[0][1] + ranks[1][1]) / 2, gradient, rtol=1e-6, atol=1e-9)
