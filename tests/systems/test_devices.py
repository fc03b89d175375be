"""Devices: a GPU for one call at a time, and plain refusals."""

import threading
import time

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.systems import SIRS, Mixing
from tampl.systems.devices import Device, gpu


def test_one_call_at_a_time_has_the_gpu():
    inside, most = [], []

    def kernel(name):
        inside.append(name)
        time.sleep(0.01)
        most.append(len(inside))
        inside.remove(name)

    run = gpu("walk-cuda-1", 4, np.float32, lambda: kernel).run
    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_a_kernel_that_is_never_called_is_never_loaded():
    gpu("walk-cuda-1", 4, np.float32, lambda: pytest.fail("loaded"))


def require_moon():
    raise InputError("there is no moon")


@pytest.fixture
def mixing(monkeypatch):
    """A system with two devices, of which only the first is there."""
    devices = {
        "cpu": Device("walk-numpy-1", 1, np.float64, print),
        "moon": Device("walk-moon-1", 9, np.float32, print, require_moon),
    }
    monkeypatch.setattr(Mixing, "devices", devices)
    return Mixing()


def test_a_device_has_a_kernel_and_a_batch(mixing, monkeypatch):
    assert (mixing.kernel, mixing.batch) == ("walk-numpy-1", 1)
    assert mixing.on("cpu") == mixing
    with pytest.raises(InputError, match="there is no moon"):
        mixing.on("moon")
    monkeypatch.setitem(mixing.devices, "moon", Device("walk-moon-1", 9, np.float32, print))
    there = mixing.on("moon")
    assert (there.kernel, there.batch) == ("walk-moon-1", 9) and mixing.batch == 1


def test_what_is_not_there_is_refused(mixing):
    message = r"^`device` is 'cuda'; mixing has kernels for cpu and moon: choose one"
    with pytest.raises(InputError, match=message):
        mixing.on("cuda")
    with pytest.raises(
        InputError, match=r"^`device` is 'cuda'; sirs has kernels for the CPU only"
    ):
        SIRS().on("cuda")
