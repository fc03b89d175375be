"""Finite but absurd parameters are refused with one line; what stays within the bounds ends."""

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.seeding import kernel_words
from tampl.systems import SIRS, Mixing, Polymer

SMALL = {
    SIRS: {"size": 6, "frames": 3, "coverage": 0.2, "clusters": (1,)},
    Mixing: {"particles": 8, "box": 8.0, "frames": 3, "interval": 0.02, "equilibration": 5},
    Polymer: {"beads": 6, "interval": 0.01, "frames": 3, "width": 8, "regimes": False},
}
ABSURD = (1e308, 1e30, -1e308, 5e-324, 1e-30, 10**30, -(10**30), 10**4000)
NUMBERS = {
    SIRS: ("size", "beta", "gamma", "mu", "interval", "frames", "coverage"),
    Mixing: (
        *("particles", "box", "cutoff", "temperature", "dt", "interval", "frames"),
        *("equilibration", "friction", "reach"),
    ),
    Polymer: ("beads", "flow", "dt", "interval", "frames", "height", "width"),
}


def run(system):
    """A trajectory from a drawn state, the closures included."""
    state = system.initial(np.random.default_rng(0)).microstate[None]
    done = system.simulate(state, kernel_words(0, "bounds")[None])
    assert system.faults(done.macrostates) is None
    for closure in system.closures().values():
        assert np.isfinite(closure(state)).all()


@pytest.mark.parametrize(
    ("kind", "name"), [(kind, name) for kind, names in NUMBERS.items() for name in names]
)
@pytest.mark.parametrize("value", ABSURD, ids=lambda value: f"{str(value)[:6]}")
def test_an_absurd_number_is_refused_or_harmless(kind, name, value):
    try:
        system = kind(**{**SMALL[kind], name: value})
        run(system)
    except InputError as error:
        assert "\n" not in str(error)


@pytest.mark.parametrize(
    ("kind", "change", "words"),
    [
        (SIRS, {"interval": 1e308}, "`interval` is 1e"),
        (SIRS, {"beta": 1e308}, "`beta` is 1e"),
        (SIRS, {"beta": 1e6, "interval": 1e6}, "a trajectory would take about .* events"),
        (SIRS, {"size": 10**5}, "`size` is 100000"),
        (SIRS, {"frames": 10**12}, "`frames` is 10"),
        (Mixing, {"box": 1e5}, "`box` is 100000.0 .* take a smaller box"),
        (Mixing, {"epsilon": (1e300, 1.0, 1.0)}, "`epsilon.0` is 1e"),
        (Mixing, {"sigma": (1e-300, 1.0, 1.0)}, "`sigma.0` is 1e-300"),
        (Mixing, {"dt": 1e-300}, "`dt` is 1e-300"),
        (Mixing, {"dt": 1e-9, "interval": 1e5}, "would take about .* steps of a particle"),
        (Mixing, {"equilibration": 10**12}, "`equilibration`"),
        (Polymer, {"dt": 1e-9, "interval": 1e6}, "would take about .* steps of a bead"),
        (Polymer, {"flow": 1e308}, "`flow`"),
        (Polymer, {"width": 10**9}, "`width`"),
    ],
    ids=str,
)
def test_what_is_refused_says_why(kind, change, words):
    with pytest.raises(InputError, match=words):
        kind(**{**SMALL[kind], **change})


@pytest.mark.parametrize("kind", SMALL)
def test_the_defaults_and_the_small_are_within(kind):
    kind()
    run(kind(**SMALL[kind]))
