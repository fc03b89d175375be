"""The GPU's chains, run by numba's simulator, against the CPU's and the slow twin.

The simulator is chosen when numba is imported, so this file also is the script of a process of its
own, which saves what it ran.
"""

import os
import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from rods_twin import centred, leads_to, make_words, random_rods, step, string

from tampl.errors import InputError
from tampl.systems.kernels.coils import sample_coils
from tampl.systems.kernels.rods import PARTS, Motion, run_chains
from tampl.systems.kernels_cuda.philox import philox, split_words

STILL = Motion(flow=2.0, dt=5e-3, temperature=0.0)
IDEAL = STILL._replace(excluded=False)
NOISY = Motion(flow=2.0, dt=2e-3)
REFUSING = Motion(flow=0.5, dt=0.03)
COARSE = Motion(flow=0.0, dt=0.1)


def crowded():
    """Two chains whose beads overlap, but not by much, so that they push each other."""
    rods = random_rods(400, 7, seed=3)
    beads = np.array([string(u) for u in rods])
    i, j = np.triu_indices(8, 2)
    nearest = np.linalg.norm(beads[:, i] - beads[:, j], axis=-1).min(axis=1)
    return rods[(nearest > 0.85) & (nearest < 0.95)][:2]


def record(run, rods, motion, every, frames, **options):
    """Frames, last rods, steps done and steps refused of a run from copies of the rods."""
    last = rods.astype(float)
    out = np.empty((len(rods), frames, rods.shape[1] + 1, 3))
    counts = run(last, make_words(len(rods)), motion, every, out, **options)
    return out, last, *counts


def simulate(path):
    """Runs all cases and saves them; needs NUMBA_ENABLE_CUDASIM=1."""
    from tampl.systems.kernels_cuda import exclusion, rods

    # Threads of the simulator wait for each other at every barrier.
    sys.setswitchinterval(1e-6)
    cases, seen = {}, []
    coils = sample_coils(make_words(2), 6)
    cases["still"] = record(rods.run_chains, crowded(), STILL, 4, 3)
    cases["ideal"] = record(rods.run_chains, crowded(), IDEAL, 4, 2)
    rods._RESTRING = 2
    cases["noisy"] = record(rods.run_chains, coils, NOISY, 3, 4, progress=seen.append)
    cases["refusing"] = record(rods.run_chains, coils, REFUSING, 1, 41)
    rods._LAUNCH_EACH = 6
    cases["cut"] = record(rods.run_chains, coils, NOISY, 3, 4, progress=seen.append)
    cases["coarse"] = record(rods.run_chains, coils, COARSE, 2, 5)
    exclusion._KEPT = np.uint64(0)
    cases["full"] = record(rods.run_chains, crowded(), STILL, 4, 2)
    saved = {f"{name}_{k}": part for name, case in cases.items() for k, part in enumerate(case)}
    np.savez(path, seen=seen, **saved)


@pytest.fixture(scope="module")
def simulated(tmp_path_factory):
    path = tmp_path_factory.mktemp("rods") / "cases.npz"
    environment = {**os.environ, "NUMBA_ENABLE_CUDASIM": "1"}
    subprocess.run([sys.executable, __file__, str(path)], env=environment, check=True)
    with np.load(path) as saved:
        arrays = dict(saved)
    return lambda name: (
        arrays[name] if name in arrays else [arrays[f"{name}_{k}"] for k in range(4)]
    )


@pytest.mark.parametrize(("name", "motion"), [("still", STILL), ("ideal", IDEAL)])
def test_without_noise_frames_equal_the_cpus(simulated, name, motion):
    out, last, done, refused = simulated(name)
    expected, rods, steps, _ = record(run_chains, crowded(), motion, 4, out.shape[1])
    assert np.array_equal(done, steps) and not refused.any()
    np.testing.assert_allclose(out, expected, atol=3e-5)
    np.testing.assert_allclose(last, rods, atol=3e-5)


def test_excluded_volume_matters_in_that_comparison(simulated):
    assert np.abs(simulated("still")[0][:, 1] - simulated("ideal")[0][:, 1]).max() > 1e-2


def noise(words, t, beads, parts_left=0):
    """What bead after bead gets in step t or a part of it, from a chain's words (4,), (B, 3)."""
    bead, rest = np.arange(beads, dtype=np.uint64), split_words(words[None])[0]
    bead += np.uint64(2**16 * parts_left)
    return centred(philox(np.full(beads, t // 2, np.uint64), bead, *rest)[t % 2])


def test_with_noise_every_frame_equals_the_slow_twins(simulated):
    out, last, done, refused = simulated("noisy")
    coils, words = sample_coils(make_words(2), 6), make_words(2)
    assert done.tolist() == [9, 9] and not refused.any()
    for chain, rods in enumerate(coils):
        for t in range(9):
            rods = step(rods, noise(words[chain], t, 6), NOISY)
            if t % 3 == 2:
                np.testing.assert_allclose(out[chain, t // 3 + 1], string(rods), atol=1e-4)
        np.testing.assert_allclose(last[chain], rods, atol=1e-4)


def test_a_refused_step_is_taken_again_in_parts_and_leaves_the_others_their_noise(simulated):
    out, _, done, refused = simulated("refusing")
    words, part, found = make_words(2), REFUSING._replace(dt=REFUSING.dt / PARTS), []
    for chain, states in enumerate(np.diff(out, axis=2)):
        for t, (before, after) in enumerate(pairwise(states)):
            if not leads_to(after, before, [noise(words[chain], t, 6)], REFUSING):
                noises = [noise(words[chain], t, 6, left) for left in range(PARTS, 0, -1)]
                assert leads_to(after, before, noises, part)
                found.append((chain, t))
    assert done.tolist() == [40, 40]
    assert refused.tolist() == [sum(chain == k for chain, _ in found) for k in range(2)]
    # The bits of an odd step are drawn with those of the even one before it.
    assert {t % 2 for _, t in found} == {0, 1}


def test_launches_do_not_show(simulated):
    for whole, cut in zip(simulated("noisy"), simulated("cut"), strict=True):
        assert np.array_equal(whole, cut)
    assert simulated("seen").tolist() == [4, 3, 4]


def test_rods_keep_their_length(simulated):
    for name in ("still", "noisy", "refusing", "coarse"):
        assert np.abs(np.linalg.norm(simulated(name)[1], axis=-1) - 1).max() < 6e-6


def test_a_full_list_changes_nothing(simulated):
    np.testing.assert_allclose(simulated("full")[0], simulated("still")[0][:, :2], atol=1e-6)


def test_a_chain_that_cannot_go_on_stops_for_good(simulated):
    out, _, done, refused = simulated("coarse")
    assert done.min() < 8
    assert (refused[done < 8] > 0).all()
    for chain, frames in enumerate(1 + done // 2):
        assert np.isfinite(out[chain, :frames]).all()
        assert np.isnan(out[chain, frames:]).all()


def test_more_beads_than_shared_memory_holds_are_refused():
    from tampl.systems.kernels_cuda import rods

    message = r"^`beads` is 405; a GPU takes chains of 2 to 404 beads: use device 'cpu'$"
    with pytest.raises(InputError, match=message):
        record(rods.run_chains, np.zeros((1, 404, 3)), STILL, 1, 2)


@pytest.mark.parametrize(
    ("counter", "key", "published"),
    [
        ([0] * 4, [0] * 2, [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([2**32 - 1] * 4, [2**32 - 1] * 2, [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            [0xA4093822, 0x299F31D0],
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_its_published_numbers(counter, key, published):
    low, high = philox(*(np.uint64(w) for w in counter + key))
    assert [int(w) for w in (low % 2**32, low >> 32, high % 2**32, high >> 32)] == published


def test_noise_is_uniform_and_independent():
    words = make_words(1)[0]
    draws = np.array([noise(words, t, 500) for t in range(40)])
    n = draws.size
    assert abs(draws.mean()) < 4 / np.sqrt(12 * n)
    # The squares of uniform numbers of unit width have mean 1/12 and variance 1/180.
    assert abs((draws**2).mean() - 1 / 12) < 4 / np.sqrt(180 * n)
    for a, b in [
        (draws[1:], draws[:-1]),
        (draws[:, 1:], draws[:, :-1]),
        (draws[..., 1:], draws[..., :-1]),
    ]:
        assert abs((a * b).mean()) < 4 / 12 / np.sqrt(a.size)
    other = noise(make_words(2)[1], 0, 500)
    assert abs((draws[0] * other).mean()) < 4 / 12 / np.sqrt(other.size)


if __name__ == "__main__":
    simulate(sys.argv[1])
