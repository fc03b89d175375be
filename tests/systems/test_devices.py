"""Devices: a GPU for one call at a time, and plain refusals."""

import threading
import time

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.systems import SIRS
from tampl.systems.devices import Device, on_gpu, refuse_absent_device


def test_one_call_at_a_time_has_the_gpu():
    inside, most = [], []

    def kernel(name):
        inside.append(name)
        time.sleep(0.01)
        most.append(len(inside))
        inside.remove(name)

    run = on_gpu(lambda: kernel)
    threads = [threading.Thread(target=run, args=(n,)) for n in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == [1, 1, 1, 1]


def test_a_kernel_that_is_never_called_is_never_loaded():
    on_gpu(lambda: pytest.fail("loaded"))


def test_what_is_not_there_is_refused():
    devices = {"cpu": Device("walk-numpy-1", 1, np.float64, print)}
    refuse_absent_device("cpu", devices, system="walk")
    with pytest.raises(InputError, match=r"^`device` is 'cuda'; walk has kernels for cpu: choose"):
        refuse_absent_device("cuda", devices, system="walk")
    with pytest.raises(
        InputError, match=r"^`device` is 'cuda'; sirs has kernels for the CPU only"
    ):
        SIRS().on("cuda")
