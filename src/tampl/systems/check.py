"""The contract of a system as a function that anyone who writes one can run.

`check_system` simulates a few trajectories and holds them against the promises of
`tampl.system.System`: bytes follow from words alone, macrostates are observed microstates,
closures start where the trajectory does.
"""

import numpy as np
from numpy.typing import NDArray

from ..description import Description
from ..errors import InputError
from ..seeding import kernel_words, numpy_generator
from ..system import InitialState, Simulated, System

__all__ = ["check_system"]

_STATES, _MEMBERS = 2, 2
_TOLERANCE = 1e-9


def check_system(system: System, seed: int = 0) -> None:
    """Raises `AssertionError` or `InputError`, naming the rule, where a system breaks one.

    Arguments:
        system: The system, small enough to simulate a dozen trajectories of.
        seed: Seed of the initial states and words tried.

    Example:
        >>> from tampl.systems import SIRS
        >>> check_system(SIRS(size=8, frames=4))
    """
    initial = _check_initial(system, seed)
    _check_initial_states(system, seed)
    _check_devices(system)
    words = np.stack(
        [[kernel_words(seed, "run", n, m) for m in range(_MEMBERS)] for n in range(_STATES)]
    )
    _check_description(system.description)
    runs = system.simulate(initial, words[:, 0])
    _check_runs(system, runs, initial)
    _check_randomness(system, runs, initial, words)
    _check_ensemble(system, runs, initial, words)
    _check_faults(system, runs)
    _check_closures(system, initial)


def _require(condition: bool | np.bool_, rule: str) -> None:
    if not condition:
        raise AssertionError(f"a system must meet this rule and does not: {rule}")


def _check_initial(system: System, seed: int) -> NDArray[np.generic]:
    states = [system.initial(numpy_generator(seed, "initial", n)) for n in range(_STATES)]
    again = system.initial(numpy_generator(seed, "initial", 0))
    _require(
        again.label == states[0].label and _same_bytes(again.microstate, states[0].microstate),
        "`initial` gives the same state for the same generator",
    )
    kind = system.description.microstate
    for state in states:
        _require(state.microstate.shape == kind.shape, "`initial` gives one microstate")
        _require(state.microstate.dtype == kind.dtype, "`initial` gives the stored type")
        kind.check(state.microstate, "what `initial` gives")
    return np.stack([state.microstate for state in states])


def _check_initial_states(system: System, seed: int) -> None:
    def draw(indices: range) -> list[InitialState]:
        generators = [numpy_generator(seed, "initial", n) for n in indices]
        return system.initial_states("train", generators, start=indices.start)

    states = draw(range(_STATES))
    _require(len(states) == _STATES, "`initial_states` gives one state for each generator")
    alone = draw(range(_STATES - 1, _STATES))[0]
    _require(
        alone.label == states[-1].label and _same_bytes(alone.microstate, states[-1].microstate),
        "`initial_states` gives the same state for the same index, whatever is drawn beside it",
    )


def _check_devices(system: System) -> None:
    _require(system.batch >= 1, "`batch` is at least 1")
    _require(
        system.on("cpu").description == system.description,
        "`on` keeps the description, on the CPU at least",
    )
    try:
        system.on("abacus")
    except InputError:
        return
    _require(False, "`on` refuses devices without kernels by `InputError`")


def _check_description(description: Description) -> None:
    again = Description.model_validate_json(description.model_dump_json())
    _require(again == description, "`description` survives a round trip through JSON")


def _check_runs(system: System, runs: Simulated, initial: NDArray[np.generic]) -> None:
    description = system.description
    shape = (len(initial), description.frames)
    _require(
        runs.microstates.shape == (*shape, *description.microstate.shape),
        "`simulate` gives microstates of shape (n, F, *shape)",
    )
    _require(
        runs.macrostates.shape == (*shape, len(description.observables)),
        "`simulate` gives macrostates of shape (n, F, m)",
    )
    description.microstate.check(runs.microstates, "what `simulate` gives")
    _require(
        _same_bytes(runs.microstates[:, 0], initial), "the first frame is the initial microstate"
    )
    _require(
        np.array_equal(runs.macrostates, system.observe(runs.microstates)),
        "the macrostates of `simulate` are `observe` of its microstates",
    )


def _check_randomness(
    system: System, runs: Simulated, initial: NDArray[np.generic], words: NDArray[np.uint64]
) -> None:
    alone = system.simulate(initial[:1], words[:1, 0])
    _require(
        _same_bytes(alone.microstates[0], runs.microstates[0]),
        "the same words give the same bytes, whatever runs beside them",
    )
    other = system.simulate(initial[:1], words[:1, 1])
    _require(
        not _same_bytes(other.microstates[0], runs.microstates[0]),
        "different words give different trajectories",
    )


def _check_ensemble(
    system: System, runs: Simulated, initial: NDArray[np.generic], words: NDArray[np.uint64]
) -> None:
    members = system.ensemble(initial, words)
    _require(
        members.shape == (*words.shape[:2], *runs.macrostates.shape[1:]),
        "`ensemble` gives macrostates of shape (n, N, F, m)",
    )
    _require(
        np.array_equal(members[:, 0], runs.macrostates),
        "`ensemble` gives the macrostates that `simulate` gives for the same words",
    )


def _check_faults(system: System, runs: Simulated) -> None:
    faults = system.faults(runs.macrostates)
    _require(faults is None, f"`faults` finds none in simulated macrostates, but: {faults}")
    unknown = np.full_like(runs.macrostates, np.nan)
    _require(system.faults(unknown) is not None, "`faults` finds macrostates that are NaN")


def _check_closures(system: System, initial: NDArray[np.generic]) -> None:
    start = system.observe(initial)
    shape = (len(initial), system.description.frames, start.shape[-1])
    for name, closure in system.closures().items():
        macrostates = closure(initial)
        _require(macrostates.shape == shape, f"closure {name!r} gives shape (n, F, m)")
        _require(np.isfinite(macrostates).all(), f"closure {name!r} is finite")
        _require(
            np.allclose(macrostates[:, 0], start, rtol=_TOLERANCE, atol=_TOLERANCE),
            f"closure {name!r} starts at `observe` of the initial microstate",
        )


def _same_bytes(a: NDArray[np.generic], b: NDArray[np.generic]) -> bool:
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()
