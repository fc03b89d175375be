"""Random numbers inside CUDA kernels: the counter-based generator Philox 4x32 with ten rounds.

A number is a function of a 128-bit counter and a 64-bit key, here of the step, the bead and the
chain's words, so that no state is kept and a chain's noise does not depend on the launches its run
is cut into. Words of 32 bits are held in 64-bit integers, whose products need no high half.

References:
    Salmon, Moraes, Dror and Shaw, Parallel random numbers: as easy as 1, 2, 3, Proc. SC11 (2011).
"""

import numpy as np
from numpy.typing import NDArray

__all__ = ["philox", "split_words"]

# Every constant is a uint64 because numba promotes uint64 mixed with int64 to float64.
_MULTIPLY_0, _MULTIPLY_1 = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_WEYL_0, _WEYL_1 = np.uint64(0x9E3779B9), np.uint64(0xBB67AE85)
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


def philox(
    c0: np.uint64, c1: np.uint64, c2: np.uint64, c3: np.uint64, k0: np.uint64, k1: np.uint64
) -> tuple[np.uint64, np.uint64]:
    """Turns a counter c and a key k of 32-bit words into two words of 64 random bits."""
    for _ in range(10):
        product_0, product_1 = c0 * _MULTIPLY_0, c2 * _MULTIPLY_1
        c0, c1 = (product_1 >> _HALF) ^ c1 ^ k0, product_1 & _LOW
        c2, c3 = (product_0 >> _HALF) ^ c3 ^ k1, product_0 & _LOW
        k0, k1 = (k0 + _WEYL_0) & _LOW, (k1 + _WEYL_1) & _LOW
    return c0 | (c1 << _HALF), c2 | (c3 << _HALF)


def split_words(words: NDArray[np.uint64]) -> NDArray[np.uint64]:
    """Folds four 64-bit words per chain, (n, 4), into c2, c3, k0 and k1 of 32 bits, (n, 4)."""
    counter, key = words[:, 0] ^ words[:, 2], words[:, 1] ^ words[:, 3]
    return np.stack([counter & _LOW, counter >> _HALF, key & _LOW, key >> _HALF], axis=-1)
