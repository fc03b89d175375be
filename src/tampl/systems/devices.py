"""Where a system's trajectories are run: a kernel for the CPU, and perhaps one for a GPU."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from threading import Lock
from typing import Any, ClassVar, Self

import numpy as np
from pydantic import PrivateAttr

from ..errors import InputError
from ..system import System

__all__ = ["Device", "DeviceSystem", "gpu"]

# Calls come from several threads: while one has the GPU, others observe and write.
_gpu = Lock()


def _require_nothing() -> None:
    """Nothing is required of a machine that runs Python."""


def _require_gpu() -> None:
    from .kernels_cuda.runtime import require_gpu

    require_gpu()


@dataclass(frozen=True)
class Device:
    """A kernel and how it is best called.

    Attributes:
        kernel: Name and version of the kernel, which a store keeps.
        batch: How many trajectories to run at once.
        dtype: Precision of what it returns.
        run: The kernel itself.
        require: Raises `InputError` where the device is not there.
    """

    kernel: str
    batch: int
    dtype: type[np.floating[Any]]
    run: Callable[..., None]
    require: Callable[[], None] = _require_nothing


def gpu(
    kernel: str,
    batch: int,
    dtype: type[np.floating[Any]],
    load: Callable[[], Callable[..., None]],
) -> Device:
    """A GPU whose kernel is loaded when it is first called, and has the GPU for itself."""

    def run(*arguments: Any) -> None:  # noqa: ANN401
        kernel = load()
        with _gpu:
            kernel(*arguments)

    return Device(kernel, batch, dtype, run, _require_gpu)


class DeviceSystem(System):
    """A system with a kernel for each of several devices, "cpu" the first of them."""

    devices: ClassVar[Mapping[str, Device]]
    """The devices by name, such as "cuda"."""

    _device: str = PrivateAttr(default="cpu")

    @property
    def device(self) -> Device:
        """The device that trajectories are run on."""
        return self.devices[self._device]

    @property
    def kernel(self) -> str:
        return self.device.kernel

    @property
    def batch(self) -> int:
        return self.device.batch

    def on(self, device: str) -> Self:
        if device not in self.devices:
            raise InputError(
                f"`device` is {device!r}; {self.description.system} has kernels for "
                f"{' and '.join(self.devices)}: choose one"
            )
        self.devices[device].require()
        other = self.model_copy()
        other._device = device
        return other
