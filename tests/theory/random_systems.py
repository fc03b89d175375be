"""Random systems and realisations, well conditioned, for the properties of the linear theory."""

import numpy as np
from hypothesis import strategies as st

from tampl.theory.linear import LinearSystem, Realisation

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
