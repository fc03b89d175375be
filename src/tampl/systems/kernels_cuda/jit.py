"""How the functions of this folder are compiled, on a GPU and in numba's simulator of one."""

from collections.abc import Callable
from typing import Any

from numba import config

from . import runtime

__all__ = ["cuda", "device", "kernel"]

# numba types what kernels call as it looks on the host, where it cannot be called.
cuda: Any = runtime.cuda

# The simulator runs plain Python and knows none of the compiler's options.
_SIMULATED = bool(getattr(config, "ENABLE_CUDASIM", False))


def device(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compiles a function that kernels call and that is put into them.

    Its comparisons see NaN as they should, which those of a kernel need not.
    """
    options = {} if _SIMULATED else {"forceinline": True}
    return cuda.jit(function, device=True, **options)


def kernel(registers: int) -> Callable[[Callable[..., Any]], Any]:
    """Compiles a kernel with fast arithmetic whose threads have at most so many registers."""
    options = {} if _SIMULATED else {"max_registers": registers, "fastmath": True}
    return lambda function: cuda.jit(function, **options)
