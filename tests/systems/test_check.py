"""The shipped contract: every registered system meets it, and each breach is named."""

from collections.abc import Callable

import numpy as np
import pytest
from pydantic import Field

from tampl.errors import InputError
from tampl.system import InitialState, Simulated
from tampl.systems import SIRS, SYSTEMS, check_system, find_system_class

SMALL = {
    "mixing": {"particles": 8, "box": 6.0, "frames": 4, "equilibration": 50},
    "polymer": {"beads": 6, "flow": 0.3, "interval": 0.05, "frames": 4, "regimes": False},
    "sirs": {"size": 8, "frames": 5},
}


class Broken(SIRS):
    """A system that one function spoils: `spoil(name, result)` for each method's result."""

    spoil: Callable = Field(exclude=True)

    def initial(self, generator):
        return self.spoil("initial", super().initial(generator))

    def initial_states(self, split, generators, *, start=0):
        states = super().initial_states(split, generators, start=start)
        return self.spoil("initial_states", states)

    def on(self, device):
        return self if self.spoil("on", device) is None else super().on(device)

    @property
    def batch(self):
        return self.spoil("batch", 1)

    def simulate(self, microstates, words):
        return self.spoil("simulate", super().simulate(microstates, words))

    def ensemble(self, microstates, words):
        return self.spoil("ensemble", super().ensemble(microstates, words))

    def faults(self, macrostates):
        return self.spoil("faults", super().faults(macrostates))

    def closures(self):
        return {
            name: lambda x, f=f: self.spoil("closure", f(x))
            for name, f in super().closures().items()
        }

    @property
    def description(self):
        return self.spoil("description", super().description)


def spoil_with(method, change):
    return lambda name, result: change(result) if name == method else result


def shift_frames(runs):
    shifted = np.roll(runs.microstates, 1, axis=1)
    return Simulated(shifted, np.roll(runs.macrostates, 1, axis=1))


def forget_words(runs):
    still = np.repeat(runs.microstates[:, :1], runs.microstates.shape[1], axis=1)
    return Simulated(still, np.repeat(runs.macrostates[:, :1], still.shape[1], axis=1))


def outnumber(runs):
    """Bytes that depend on what runs beside them."""
    microstates = runs.microstates.copy()
    microstates[:, -1, 0, 0] = len(microstates)
    counts = np.stack([(microstates == a).sum(axis=(-2, -1)) for a in range(3)], axis=-1)
    return Simulated(microstates, counts / 64)


BREACHES = [
    ("initial", lambda s: InitialState(s.microstate, str(np.random.rand())), "same generator"),
    ("initial", lambda s: InitialState(s.microstate.astype(int), s.label), "stored type"),
    ("initial", lambda s: InitialState(s.microstate[None], s.label), "one microstate"),
    ("initial_states", lambda states: states[:1], "one state for each generator"),
    ("initial_states", lambda states: states[::-1], "same index"),
    ("on", lambda _: None, "refuses devices"),
    ("batch", lambda _: 0, "`batch`"),
    ("simulate", lambda r: Simulated(r.microstates[:, 1:], r.macrostates), r"\(n, F, \*shape\)"),
    ("simulate", lambda r: Simulated(r.microstates, r.macrostates[..., :2]), r"\(n, F, m\)"),
    ("simulate", shift_frames, "first frame"),
    ("simulate", lambda r: Simulated(r.microstates, r.macrostates + 1e-6), "`observe`"),
    ("simulate", outnumber, "same words give the same bytes"),
    ("simulate", forget_words, "different words"),
    ("ensemble", lambda y: y[:, :1], r"\(n, N, F, m\)"),
    ("ensemble", lambda y: y[:, ::-1], "`simulate` gives for the same words"),
    ("faults", lambda _: "all is wrong", "all is wrong"),
    ("faults", lambda _: None, "NaN"),
    ("closure", lambda y: y[:, 1:], "shape"),
    ("closure", lambda y: y * np.nan, "finite"),
    ("closure", lambda y: y + 1e-3, "starts at"),
    (
        "description",
        lambda d: d.model_copy(update={"parameters": {"clusters": (1, 2)}}),
        "JSON",
    ),
]


def test_every_system_has_a_small_version_to_check():
    assert SMALL.keys() == SYSTEMS.keys()


@pytest.mark.parametrize("name", SYSTEMS)
def test_registered_systems_meet_the_contract(name):
    check_system(find_system_class(name)(**SMALL[name]))


def test_an_unspoilt_system_passes():
    check_system(Broken(**SMALL["sirs"], spoil=lambda _, result: result))


@pytest.mark.parametrize(("method", "change", "rule"), BREACHES)
def test_breaches_are_named(method, change, rule):
    with pytest.raises(AssertionError, match=rule):
        check_system(Broken(**SMALL["sirs"], spoil=spoil_with(method, change)))


def test_initial_states_of_an_unknown_kind_are_refused():
    def change(state):
        return InitialState(state.microstate + np.uint8(7), state.label)

    with pytest.raises(InputError, match="`initial`"):
        check_system(Broken(**SMALL["sirs"], spoil=spoil_with("initial", change)))
