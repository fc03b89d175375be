"""Random systems and points for the properties of the linear theory, well conditioned.

Points are of three kinds: exact in nothing, exact realisations, closed models without the task.
"""

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from tampl.theory.linear import LinearSystem, Realisation, T, Weights
from tampl.theory.updates import Round

SEEDS = st.integers(0, 2**32 - 1)


def draw_system(rng, n, m, batch=()):
    root = np.eye(n) + 0.3 * rng.standard_normal((*batch, n, n)) / np.sqrt(n)
    return LinearSystem(
        rng.standard_normal((*batch, n, n)) / np.sqrt(n),
        rng.standard_normal((*batch, m, n)),
        root @ np.swapaxes(root, -1, -2) + 0.05 * np.eye(n),
    )


def draw_realisation(rng, n, m, d, batch=()):
    return Realisation(
        rng.standard_normal((*batch, d, n)),
        rng.standard_normal((*batch, m, d)),
        rng.standard_normal((*batch, d, d)) / np.sqrt(d),
    )


def draw_change(rng, d):
    """An invertible matrix with singular values between 1/2 and 2."""
    left, right = (np.linalg.qr(rng.standard_normal((d, d)))[0] for _ in range(2))
    return left @ np.diag(rng.uniform(0.5, 2.0, d)) @ right


@st.composite
def pairs(draw):
    """A system, a realisation of its size that is exact in nothing, and a random generator."""
    rng = np.random.default_rng(draw(SEEDS))
    n = draw(st.integers(1, 6))
    m, d = draw(st.integers(1, 3)), draw(st.integers(1, n))
    return draw_system(rng, n, m), draw_realisation(rng, n, m, d), rng


def examples(count):
    """Hypothesis settings for what is fast, however busy the machine is."""
    slow = [HealthCheck.too_slow]
    return settings(max_examples=count, deadline=None, suppress_health_check=slow)


def draw_covariance(rng, n, batch=()):
    root = np.eye(n) + 0.3 * rng.standard_normal((*batch, n, n)) / np.sqrt(n)
    return root @ T(root) + 0.05 * np.eye(n)


def draw_exact(rng, n, m, d, scale=1.0, strength=1.0, batch=()):
    """A system with an exact realisation, by A = B^+ K B + (I - B^+ B) M and C = D B.

    `scale` is that of the encoder, `strength` that of the dynamics.
    """
    B = scale * (np.eye(d, n) + 0.15 * rng.standard_normal((*batch, d, n)))
    D = np.eye(m, d) + 0.2 * rng.standard_normal((*batch, m, d))
    K = strength * rng.standard_normal((*batch, d, d)) / np.sqrt(d)
    M = strength * rng.standard_normal((*batch, n, n)) / np.sqrt(n)
    inverse = np.linalg.pinv(B)
    A = inverse @ K @ B + (np.eye(n) - inverse @ B) @ M
    return LinearSystem(A, D @ B, draw_covariance(rng, n, batch)), Realisation(B, D, K)


def draw_wrong(rng, n, m, d, scale=1.0):
    """A system with a closed model that has lost the task, by blocks in whitened coordinates."""
    Sigma = draw_covariance(rng, n)
    values, vectors = np.linalg.eigh(Sigma)
    root = vectors @ np.diag(np.sqrt(values)) @ vectors.T
    turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
    S, A = scale * draw_change(rng, d), rng.standard_normal((n, n)) / np.sqrt(n)
    A[:d, d:] = 0
    C = np.hstack([np.zeros((m, d)), rng.standard_normal((m, n - d))])
    inverse = np.linalg.inv(root)
    r = Realisation(
        S @ np.eye(d, n) @ turn.T @ inverse, np.zeros((m, d)), S @ A[:d, :d] @ np.linalg.inv(S)
    )
    return LinearSystem(root @ turn @ A @ turn.T @ inverse, C @ turn.T @ inverse, Sigma), r


def draw_symmetric_wrong(rng, kept, omitted, *, m=1, scale=1.0, isotropic=True):
    """The same with Sigma = I and a symmetric A of given spectra on the two subspaces."""
    d, n = len(kept), len(kept) + len(omitted)
    turn = np.linalg.qr(rng.standard_normal((n, n)))[0]
    A = turn @ np.diag([*kept, *omitted]) @ turn.T
    C = np.hstack([np.zeros((m, d)), rng.standard_normal((m, n - d))]) @ turn.T
    S = np.linalg.qr(rng.standard_normal((d, d)))[0] if isotropic else draw_change(rng, d)
    r = Realisation(np.eye(d, n) @ turn.T, np.zeros((m, d)), np.diag(kept)).change(scale * S)
    return LinearSystem((A + A.T) / 2, C, np.eye(n)), r


def draw_weights(rng):
    return Weights(cur=rng.uniform(0.3, 2.0), tr=rng.uniform(0.3, 2.0))


def perturb(rng, r, size):
    """A neighbour at distance `size` in the product Frobenius norm."""
    changes = [rng.standard_normal(M.shape) for M in (r.B, r.D, r.K)]
    norm = np.sqrt(sum(np.sum(change**2) for change in changes))
    U, V, W = (size / norm * change for change in changes)
    return Realisation(r.B + U, r.D + V, r.K + W)


def strengths(top):
    """Sizes of dynamics: none, or so large that no product of two leaves the normal numbers."""
    return st.just(0.0) | st.floats(1e-3, top)


@st.composite
def exact_pairs(draw, top=5):
    """A system, an exact realisation of full row rank, weights, and a generator."""
    rng = np.random.default_rng(draw(SEEDS))
    n = draw(st.integers(1, top))
    m, d = draw(st.integers(1, 3)), draw(st.integers(1, n))
    scale, strength = draw(st.floats(0.5, 3.0)), draw(strengths(1.0))
    return *draw_exact(rng, n, m, d, scale, strength), draw_weights(rng), rng


@st.composite
def wrong_pairs(draw, top=5):
    """A system, a closed model without the task, weights, and a generator."""
    rng = np.random.default_rng(draw(SEEDS))
    n = draw(st.integers(2, top))
    m, d = draw(st.integers(1, 3)), draw(st.integers(1, n - 1))
    return *draw_wrong(rng, n, m, d, draw(st.floats(0.5, 8.0))), draw_weights(rng), rng


def rounds(top=0.05):
    """Schedules of rounds of any shape."""
    sizes = st.floats(1e-3, top)
    return st.builds(
        Round,
        encoder_steps=st.integers(1, 4),
        transition_steps=st.integers(1, 4),
        mu_encoder=sizes,
        mu_transition=sizes,
    )
