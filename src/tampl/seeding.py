"""One integer seed, many named and independent streams.

A stream is addressed by names, never by the order of calls: `stream(seed, "train", 3, "noise")` is
the same whatever was drawn before it, on however many workers. Every stochastic function of the
package takes a generator or the words made here.
"""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from operator import index

import numpy as np
import torch

from .errors import InputError

__all__ = ["ambient_seed", "kernel_words", "numpy_generator", "stream", "torch_generator"]


def stream(seed: int, *names: str | int) -> np.random.SeedSequence:
    """Derives the seed sequence of a named stream.

    Arguments:
        seed: The seed of the run or of the data, a non-negative integer.
        names: The address of the stream, e.g. `"train", 17, "run"`.

    Example:
        >>> a, b = stream(0, "train", 1), stream(0, "train", 2)
        >>> a.generate_state(1)[0] == b.generate_state(1)[0]
        np.False_
    """
    if seed < 0:
        raise InputError(f"`seed` is {seed}; a seed is an integer of at least 0")
    # NumPy's integers print differently from Python's and must not address another stream.
    plain = tuple(name if isinstance(name, str) else index(name) for name in names)
    address = hashlib.sha256(repr(plain).encode()).digest()
    return np.random.SeedSequence([seed, *np.frombuffer(address, dtype="<u4").tolist()])


def numpy_generator(seed: int, *names: str | int) -> np.random.Generator:
    """A NumPy generator on the named stream."""
    return np.random.Generator(np.random.PCG64(stream(seed, *names)))


def torch_generator(
    seed: int, *names: str | int, device: torch.device | str = "cpu"
) -> torch.Generator:
    """A torch generator on the named stream."""
    generator = torch.Generator(device=device)
    # torch takes one 64-bit word; the top bit is dropped because it refuses negative seeds.
    generator.manual_seed(int(stream(seed, *names).generate_state(1, np.uint64)[0] >> 1))
    return generator


def kernel_words(seed: int, *names: str | int) -> np.ndarray:
    """Four 64-bit words that start the generator of a compiled kernel, shape (4,)."""
    return stream(seed, *names).generate_state(4, np.uint64)


@contextmanager
def ambient_seed(seed: int, *names: str | int) -> Iterator[None]:
    """Puts torch's global generator on the named stream, and back afterwards.

    Only for what takes no generator, such as the initial weights of torch's own layers.
    """
    with torch.random.fork_rng(devices=[]):
        torch.random.manual_seed(torch_generator(seed, *names).initial_seed())
        yield
