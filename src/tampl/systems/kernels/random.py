"""Random numbers inside compiled kernels: the generator xoshiro256++.

The state is four 64-bit words s_0 ... s_3, not all zero, held in a `uint64[4]` array that every
draw changes in place. One step returns rotl(s_0 + s_3, 23) + s_0 and applies a linear map of
period 2^256 - 1. Nothing is global, so a kernel's draws depend on its words alone.

Changing a function here does not renew numba's cache of the kernels that inlined it: change the
version in `System.kernel` and clear `__pycache__` as well.

References:
    Blackman and Vigna, Scrambled linear pseudorandom number generators, ACM Trans. Math. Softw. 47
    (2021), https://arxiv.org/abs/1805.01407.
"""

import numpy as np
from numba import njit
from numpy.typing import NDArray

__all__ = ["draw_integer", "draw_normals", "draw_uniform", "draw_word"]

# Every constant is a uint64 because numba promotes uint64 mixed with int64 to float64.
_ONE, _SHIFT_1, _ROTATE_1, _ROTATE_3 = (np.uint64(k) for k in (1, 17, 23, 45))
_DROP, _HALF, _BITS = np.uint64(11), np.uint64(32), np.uint64(64)
_UNIT = 2.0**-53


@njit(nogil=True, cache=True)
def _rotate(word: np.uint64, by: np.uint64) -> np.uint64:
    return (word << by) | (word >> (_BITS - by))


@njit(nogil=True, cache=True)
def draw_word(state: NDArray[np.uint64]) -> np.uint64:
    """Draws 64 random bits and advances `state`, shape (4,), in place."""
    result = _rotate(state[0] + state[3], _ROTATE_1) + state[0]
    shifted = state[1] << _SHIFT_1
    state[2] ^= state[0]
    state[3] ^= state[1]
    state[1] ^= state[2]
    state[0] ^= state[3]
    state[2] ^= shifted
    state[3] = _rotate(state[3], _ROTATE_3)
    return result


@njit(nogil=True, cache=True)
def draw_uniform(state: NDArray[np.uint64]) -> float:
    """Draws a multiple of 2^-53 uniformly from (0, 1]; zero is left out so that log is finite."""
    return ((draw_word(state) >> _DROP) + _ONE) * _UNIT


@njit(nogil=True, cache=True)
def draw_integer(state: NDArray[np.uint64], bound: int) -> np.int64:
    """Draws an integer from 0 to `bound` - 1, for a bound from 1 to 2^32.

    The high half of a word is scaled by the bound. Probabilities are off by at most 2^-32 in
    absolute value: with 4 x 10^4 outcomes that is 10^-5 of the probability of one.
    """
    return np.int64(((draw_word(state) >> _HALF) * np.uint64(bound)) >> _HALF)


@njit(nogil=True, cache=True)
def draw_normals(state: NDArray[np.uint64]) -> tuple[float, float]:
    """Draws two independent standard normal numbers from two uniforms (Box and Muller 1958).

    A uniform is at least 2^-53, so none is larger than 8.6; normals beyond have probability 1e-17.
    """
    radius = np.sqrt(-2.0 * np.log(draw_uniform(state)))
    angle = 2.0 * np.pi * draw_uniform(state)
    return radius * np.cos(angle), radius * np.sin(angle)
