"""Data sets of arrays: kinds that are recognised, splits without leaks, ensembles, refusals."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl import Dataset, InputError, Observable, Particles
from tampl.microstates import Image, Lattice, Vector

RNG = np.random.default_rng(0)
Y = RNG.normal(size=(6, 5, 2))


def dataset(x, y=Y, **options):
    return Dataset(x, y, **{"interval": 0.5, **options})


@pytest.mark.parametrize(
    ("x", "kind"),
    [
        (RNG.integers(0, 3, (6, 5, 8, 10)), Lattice(height=8, width=10, states=3)),
        (
            RNG.integers(0, 3, (6, 5, 8, 10)).astype(np.uint8),
            Lattice(height=8, width=10, states=3),
        ),
        (RNG.random((6, 5, 8, 8)) > 0.5, Lattice(height=8, width=8, states=2)),
        (RNG.integers(0, 256, (6, 5, 8, 10)).astype(np.uint8), Image(height=8, width=10)),
        (255 * RNG.integers(0, 2, (6, 5, 8, 9)).astype(np.uint8), Image(height=8, width=9)),
        (RNG.normal(size=(6, 5, 7)), Vector(size=7)),
        (RNG.integers(0, 1000, (6, 5, 7)), Vector(size=7)),
    ],
    ids=["integers", "bytes", "booleans", "pictures", "black and white", "numbers", "counts"],
)
def test_the_kind_of_microstate_is_recognised_and_said(x, kind, capsys):
    data = dataset(x)
    assert data.description.microstate == kind
    assert kind.in_words in capsys.readouterr().err
    assert data.x.dtype == kind.dtype and np.array_equal(data.x, x)


def test_a_kind_that_is_given_is_taken_and_nothing_is_said(capsys):
    x = RNG.integers(0, 3, (6, 5, 8, 8)).astype(np.uint8)
    assert dataset(x, microstate=Image(height=8, width=8)).description.microstate.kind == "image"
    gas = Particles(count=4, types=2, box=3.0)
    stored = gas.encode(3 * RNG.random((6, 5, 4, 2)), np.array([1, 1, 2, 2]))
    assert dataset(stored, microstate=gas).x.shape == (6, 5, 4, 3)
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize(
    ("x", "words"),
    [
        (RNG.normal(size=(6, 5, 8, 8)), "for pictures give bytes"),
        (RNG.integers(0, 1000, (6, 5, 8, 8)), "give `microstate`"),
        (
            RNG.integers(0, 2, (6, 5, 8, 8)) * 2 - 1,
            r"number the states of a lattice from 0: np.unique",
        ),
        (RNG.normal(size=(6, 4, 7)), r"agree in their first two axes"),
        (RNG.normal(size=(6, 5)), r"agree in their first two axes"),
        (np.full((6, 5, 2), np.nan), "`x` must be finite; it holds nan at \\(0, 0, 0\\)"),
        (np.full((6, 5, 2), "a"), "no kind of microstate"),
    ],
    ids=["fields", "large", "spins", "frames", "flat", "nan", "text"],
)
def test_microstates_of_no_kind_are_refused_with_a_remedy(x, words):
    with pytest.raises(InputError, match=words):
        dataset(x)


@pytest.mark.parametrize(
    ("y", "options", "words"),
    [
        (np.where(np.arange(2) == 1, np.nan, Y), {}, "trajectory 0, frame 0, observable 1"),
        (Y[:, :1], {}, "two frames at least"),
        (Y[:0], {}, "one trajectory"),
        (Y.astype(complex), {}, "must hold real numbers"),
        (Y, {"observables": ["a"]}, "`observables` has 1 entries; `y` has 2"),
        (Y, {"observables": ["a", "a"]}, "a symbol that no other has"),
        (Y, {"interval": 0.0}, "`interval` is 0.0"),
        (Y, {"interval": float("nan")}, "`interval` is nan"),
        (Y, {"labels": ["a"]}, "1 entries for 6 trajectories"),
    ],
)
def test_wrong_macrostates_and_options_are_refused(y, options, words):
    with pytest.raises(InputError, match=words):
        dataset(np.zeros((*y.shape[:2], 3)), y, **options)


@pytest.mark.parametrize(
    "kind", ["lattice", Vector, Vector(size=5), Lattice(height=3, width=1, states=2)]
)
def test_kinds_that_do_not_fit_the_frames_are_refused(kind):
    with pytest.raises(InputError, match=r"`microstate` is|`x` has shape"):
        dataset(RNG.normal(size=(6, 5, 3, 1))[..., 0], microstate=kind)
    with pytest.raises(InputError, match="`x` has shape"):
        dataset(RNG.normal(size=(6, 5, 4, 3)), microstate=Vector(size=3))


def test_observables_have_names_symbols_and_units():
    x = RNG.normal(size=(6, 5, 3))
    named = dataset(x, observables=["S", Observable(name="energy", symbol="U", unit="J")])
    assert [o.symbol for o in named.description.observables] == ["S", "U"]
    assert [o.symbol for o in dataset(x).description.observables] == ["y1", "y2"]
    alone = dataset(x, Y[..., 0])
    assert alone.y.shape == (6, 5, 1) and alone.description.times.tolist() == [0, 0.5, 1, 1.5, 2]


@settings(max_examples=40, deadline=None)
@given(
    states=st.integers(3, 12),
    runs=st.integers(1, 3),
    seed=st.integers(0, 100),
    first=st.floats(0.3, 0.6),
)
def test_parts_of_a_split_share_no_initial_state_and_lose_no_trajectory(states, runs, seed, first):
    x = np.repeat(np.arange(states, dtype=float), runs)[:, None, None] + np.zeros((1, 2, 1))
    y = np.arange(states * runs, dtype=float)[:, None, None] + np.zeros((1, 2, 1))
    data = Dataset(x, y, microstate=Vector(size=1))
    parts = data.split(first, 1 - first, seed=seed)
    seen = [set(part.x[:, 0, 0]) for part in parts]
    assert not seen[0] & seen[1] and sum(map(len, seen)) == states
    assert sorted(np.concatenate([part.y[:, 0, 0] for part in parts])) == list(y[:, 0, 0])
    again = data.split(first, 1 - first, seed=seed)
    assert all(np.array_equal(a.y, b.y) for a, b in zip(parts, again, strict=True))


@pytest.mark.parametrize(
    "fractions", [(), (0.5, 0.6), (0.0, 1.0), (-0.1,), (0.99, 0.01), ((0.8, 0.2),)]
)
def test_impossible_fractions_are_refused(fractions):
    with pytest.raises(InputError, match="fraction"):
        dataset(RNG.normal(size=(6, 5, 3))).split(*fractions)


def test_trajectories_from_one_initial_state_are_an_ensemble():
    x = RNG.normal(size=(6, 5, 3))
    x[:, 0] = x[[0, 1, 0, 1, 0, 1], 0]
    found = dataset(x, labels=list("ababab")).references
    assert found.y.shape == (2, 3, 5, 2)
    np.testing.assert_array_equal(found.x, x[:2, 0])
    np.testing.assert_array_equal(found.y[1], Y[1::2])
    assert found.labels.tolist() == ["a", "b"]
    # As many for each as the one with the fewest has, and each for itself where that is one.
    x[4, 0] = x[1, 0]
    assert dataset(x).references.y.shape == (2, 2, 5, 2)
    x[2, 0] = x[1, 0]
    assert dataset(x).references.y.shape == (6, 1, 5, 2)


def test_statistics_are_those_of_all_frames():
    x = RNG.normal(size=(6, 5, 3)) * [1.0, 10.0, 0.0] + [0.0, 5.0, 7.0]
    found = dataset(x).statistics
    np.testing.assert_allclose(found.y.mean, Y.mean(axis=(0, 1)))
    np.testing.assert_allclose(found.x.std[:2], x.std(axis=(0, 1))[:2])
    assert found.x.std[2] == 1  # what never varies is shifted only
    np.testing.assert_allclose(found.mean_trajectory, Y.mean(axis=0))
    assert dataset(RNG.integers(0, 3, (6, 5, 8, 8))).statistics.x is None
