"""The GPU's trajectories against the CPU's, on a GPU or in numba's simulator.

Without a GPU, one test runs this file again in a process of its own in which the simulator is on.
"""

import os
import subprocess
import sys

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.seeding import kernel_words
from tampl.systems.kernels import lennard_jones as cpu
from tampl.systems.kernels.pair_forces import Fluid, pair_table
from tampl.systems.kernels_cuda import lennard_jones as gpu
from tampl.systems.kernels_cuda.runtime import cuda

AVAILABLE = cuda.is_available()
needs_gpu = pytest.mark.skipif(not AVAILABLE, reason="no GPU; runs in the simulator instead")
CUTOFF, BOX = 2.5, 4.0
EPSILON = [[0.5, 0.7, 0.6], [0.7, 0.6, 0.5], [0.6, 0.5, 0.4]]
SIGMA = [[1.0, 0.9, 0.9], [0.9, 0.9, 0.8], [0.9, 0.8, 0.7]]
PAIRS = pair_table(EPSILON, SIGMA, CUTOFF)


def start(count=9, runs=2, box=BOX):
    """Particles on jittered lattices, (n, N, 2), and three random types."""
    generator = np.random.default_rng(1)
    edge = int(np.ceil(np.sqrt(count)))
    grid = np.stack(np.meshgrid(*2 * [np.arange(edge)]), axis=-1).reshape(-1, 2)[:count]
    jitter = generator.uniform(-0.1, 0.1, (runs, count, 2))
    types = generator.integers(0, 3, (runs, count)).astype(np.uint8)
    return (grid + 0.5 + jitter) * box / edge, types


def run(
    module, positions, types, *, box=BOX, cutoff=CUTOFF, frames=3, every=25, dt=0.002, first=0
):
    runs = len(positions)
    words = np.stack([kernel_words(0, "run", n) for n in range(runs)])
    out, energies = np.empty((runs, frames, *positions.shape[1:])), np.empty((runs, frames))
    fluid, schedule = Fluid(PAIRS, cutoff, box), cpu.Schedule(4.0, dt, every)
    module.run_trajectories(positions, types, words, fluid, schedule, out, energies, first)
    return out, energies


@pytest.mark.skipif(AVAILABLE, reason="the tests below have run")
def test_all_of_this_file_in_the_simulator():
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", __file__]
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout


@pytest.mark.skipif(AVAILABLE, reason="there is a GPU")
def test_a_machine_without_a_gpu_is_told_what_to_do():
    with pytest.raises(InputError, match=r"tampl\[cuda\]"):
        run(gpu, *start())


@needs_gpu
def test_fifty_steps_agree_with_the_cpu_to_single_precision():
    positions, types = start()
    out, energies = run(gpu, positions, types, dt=0.004)
    expected, expected_energies = run(cpu, positions, types, dt=0.004)
    assert np.array_equal(out[:, 0], positions)
    assert np.abs(out - expected).max() < 3e-6
    assert np.abs(energies - expected_energies).max() < 2e-5
    # In this time lists were made anew, and only a wall changes a velocity by 1 in one step.
    assert np.hypot(*(out[:, 2] - out[:, 0]).T).max() > 0.25
    velocity = np.diff(run(cpu, positions, types, frames=51, every=1, dt=0.004)[0], axis=1) / 0.004
    assert np.abs(np.diff(velocity, axis=1)).max() > 1


@needs_gpu
@pytest.mark.parametrize(
    ("name", "value"),
    [("_FRAME_BYTES", 1), ("fits_shared", lambda n, n_types: False)],
    ids=["one frame a launch", "lists in global memory"],
)
def test_launches_and_memory_do_not_change_a_bit(name, value, monkeypatch):
    whole = run(gpu, *start(), frames=3, every=4)
    monkeypatch.setattr(gpu, name, value)
    assert all(map(np.array_equal, whole, run(gpu, *start(), frames=3, every=4)))


@needs_gpu
def test_a_list_that_overflows_is_reported():
    positions, types = start(count=40, runs=1, box=8.0)
    with pytest.raises(InputError, match=r"run 7 has a particle with 39 neigh.*room for 32"):
        run(gpu, positions, types, box=8.0, cutoff=12.0, frames=2, every=1, first=7)


@needs_gpu
@pytest.mark.parametrize("dt", [0.1, 1e9])
def test_a_blow_up_is_reported_with_run_step_and_energy(dt):
    with pytest.raises(InputError, match=r"run [78] blew up at step \d+: its energy went from"):
        run(gpu, *start(), frames=2, every=4, dt=dt, first=7)


@needs_gpu
def test_wrong_input_is_refused():
    with pytest.raises(InputError, match=r"1025 particles.*up to 1024.*'cpu'"):
        run(gpu, *start(count=1025, runs=1, box=50.0), box=50.0)
    positions, types = start()
    positions[1, 3] = positions[1, 4]
    with pytest.raises(InputError, match="3 and 4 of configuration 1"):
        run(gpu, positions, types)
