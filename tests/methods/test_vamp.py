"""VAMP: the score against deeptime's, the fitted transition against plain least squares."""

import warnings

import numpy as np
import pytest
import scipy.linalg
import torch

from tampl.methods import Vamp
from tampl.methods.vamp import fit_affine, vamp2_score

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # of an import that is not ours
    from deeptime.decomposition import VAMP
    from deeptime.decomposition.deep import vamp_score

CASES = ("random", "correlated", "nearly singular")


def pairs(case, count=400, dim=4):
    """Latent pairs: independent ones, those of a linear process, those of deficient rank."""
    generator = np.random.default_rng(3)
    z = generator.normal(size=(count, dim)) + 5
    if case == "random":
        return torch.from_numpy(z), torch.from_numpy(generator.normal(size=(count, dim)))
    mixing = generator.normal(size=(dim, dim))
    if case == "nearly singular":
        mixing[:, -1] = mixing[:, 0] + 1e-4 * mixing[:, 1]
    z = z @ mixing
    rotation = scipy.linalg.expm(0.3 * (lambda a: a - a.T)(generator.normal(size=(dim, dim))))
    z_next = 0.9 * z @ rotation + 0.1 * generator.normal(size=z.shape) + 1
    return torch.from_numpy(z), torch.from_numpy(z_next)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("epsilon", [1e-6, 1e-2])
def test_score_equals_deeptime_s(case, epsilon):
    z, z_next = pairs(case)
    expected = vamp_score(z, z_next, method="VAMP2", epsilon=epsilon, mode="regularize")
    assert vamp2_score(z, z_next, epsilon=epsilon).item() == pytest.approx(
        expected.item(), rel=1e-6
    )


@pytest.mark.parametrize("case", CASES[:2])
def test_score_equals_that_of_deeptime_s_linear_estimator(case):
    """Another way to the same number: singular values of the whitened Koopman operator."""
    z, z_next = pairs(case)
    model = VAMP(epsilon=1e-12).fit_fetch((z.numpy(), z_next.numpy()))
    # That estimator counts n, ours n - 1: the factor drops out of whitened covariances.
    assert vamp2_score(z, z_next, epsilon=1e-12).item() == pytest.approx(model.score(2), rel=1e-6)


def test_score_gradient_equals_deeptime_s():
    z, z_next = pairs("correlated")
    gradients = []
    for score in (
        lambda a, b: vamp2_score(a, b, epsilon=1e-6),
        lambda a, b: vamp_score(a, b, method="VAMP2", epsilon=1e-6, mode="regularize"),
    ):
        leaves = [value.clone().requires_grad_() for value in (z, z_next)]
        gradients.append(torch.autograd.grad(score(*leaves), leaves))
    torch.testing.assert_close(*gradients, rtol=1e-5, atol=1e-9)


def test_score_of_a_deterministic_linear_map_is_the_highest():
    z, _ = pairs("random")
    assert vamp2_score(z, 2 * z + 1, epsilon=1e-12).item() == pytest.approx(1 + z.shape[1])


def test_gradient_is_finite_where_eigenvalues_meet():
    """An isotropic batch: eigenvectors are not unique there, and their gradients diverge."""
    z = torch.cat([torch.eye(3), -torch.eye(3)]).double().requires_grad_()
    (gradient,) = torch.autograd.grad(vamp2_score(z, 0.5 * z.flip(0), epsilon=1e-6), z)
    assert gradient.isfinite().all()


@pytest.mark.parametrize("case", CASES)
def test_fitted_map_equals_least_squares(case):
    """The normal affine regression, with a column of ones, by scipy."""
    z, z_next = pairs(case)
    design = np.column_stack([z.numpy(), np.ones(len(z))])
    expected, *_ = scipy.linalg.lstsq(design, z_next.numpy())
    k, b = fit_affine(z, z_next)
    np.testing.assert_allclose(k.numpy(), expected[:-1].T, rtol=1e-6, atol=1e-6)
    np.testing.assert_allclose(b.numpy(), expected[-1], rtol=1e-6, atol=1e-6)


def test_transition_is_the_fit_over_all_training_pairs(bench):
    trainer = bench.trainer(Vamp(), bench.training(epochs=2))
    trainer.run_epoch()
    identity = trainer.modules.transition.network.weight.clone()
    assert torch.equal(identity, torch.eye(3, dtype=identity.dtype))
    trainer.run_epoch()
    with torch.no_grad():
        z = trainer.modules.encoder(bench.frames.x(torch.arange(len(bench.frames)))).numpy()
    index = bench.frames.pairs.numpy()
    design = np.column_stack([z[index], np.ones(len(index))])
    expected, *_ = scipy.linalg.lstsq(design, z[index + 1])
    network = trainer.modules.transition.network
    fitted = np.column_stack([network.weight.detach(), network.bias.detach()])
    np.testing.assert_allclose(fitted, expected.T, rtol=1e-6, atol=1e-6)
    # The readout's turn leaves embedding and transition alone.
    trainer.run_epoch()
    assert torch.equal(network.weight, torch.from_numpy(fitted[:, :-1].copy()))


def test_training_raises_the_score(bench):
    trainer = bench.trainer(Vamp(), bench.training(epochs=8, batch_size=30))
    scores = [trainer.run_epoch().losses["score"]["vamp2"] for _ in range(8)]
    assert scores[-1] > scores[0] and scores[-1] < 4


def test_model_is_deterministic(bench):
    model = bench.model(bench.modules(Vamp()))
    assert not model.stochastic
