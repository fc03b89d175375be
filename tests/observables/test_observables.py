"""How observables are found, applied and described, and one's own functions."""

import numpy as np
import pytest

import tampl
from tampl import Image, InputError, Lattice, Particles, Vector
from tampl.observables import (
    OBSERVABLES,
    FunctionMap,
    Magnetisation,
    ObservableMap,
    describe_observables,
    find_observable,
    known_observables,
    observe,
    register_observable,
)

BOARD = Lattice(height=4, width=5, states=2)
FRAMES = np.random.default_rng(0).integers(2, size=(3, 6, 4, 5))
MODULE = """
from tampl.observables import Magnetisation, ObservableMap
half = 0.5
def width(frame):
    return frame[:, 0].mean()
def place(frame, kind):
    positions, types = kind.decode(frame)
    return positions.max()
def late(frame):
    if frame[0, 0]:
        raise ZeroDivisionError("nothing\\nthere")
    return 1
def pair(frame):
    return frame[0]
def word(frame):
    return "wide"
def nowhere(frame):
    return float("nan")
class Mine(Magnetisation):
    pass
ready = Magnetisation(symbol="m")
"""


@pytest.fixture
def module(tmp_path, monkeypatch):
    """A user's module in the current folder."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delitem(__import__("sys").modules, "mine_of_test", raising=False)
    (tmp_path / "mine_of_test.py").write_text(MODULE)
    yield "mine_of_test"
    __import__("sys").modules.pop("mine_of_test", None)


def test_every_map_of_the_package_describes_what_it_gives():
    generator = np.random.default_rng(0)
    kinds = {
        Lattice: (BOARD, FRAMES[0]),
        Image: (Image(height=4, width=5), generator.integers(256, size=(3, 4, 5))),
        Vector: (Vector(size=6), generator.normal(size=(3, 6))),
    }
    box = Particles(count=9, types=1, box=5.0)
    kinds[Particles] = (box, box.encode(generator.uniform(0, 5, (3, 9, 2)), np.ones(9, int)))
    given = {"largest-cluster": ":reach=1", "cluster-count": ":reach=1"}
    for name, map_ in OBSERVABLES.items():
        assert map_.__doc__ and name == map_.model_fields["name"].default
        for type_, (kind, frames) in kinds.items():
            text = name + (given.get(name, "") if type_ is Particles else "")
            if type_ not in map_.kinds:
                with pytest.raises(InputError, match=f"`{name}` applies to"):
                    find_observable(text).observe(frames, kind)
                continue
            found = find_observable(text)
            y, described = found.observe(frames, kind), found.describe(kind)
            assert y.shape == (len(frames), len(described)) and y.dtype == np.float64
            for values, known in zip(y.T, described, strict=True):
                low = -np.inf if known.lower is None else known.lower
                high = np.inf if known.upper is None else known.upper
                assert (values >= low - 1e-12).all() and (values <= high + 1e-12).all()


def test_arrays_become_macrostates_for_a_data_set():
    texts = ["magnetisation", "fractions", find_observable("fraction:symbol=up"), mean_of_a_row]
    y = tampl.observe(FRAMES, texts, microstate=BOARD)
    assert y.shape == (3, 6, 5)
    np.testing.assert_allclose(y[..., 0], 2 * FRAMES.mean(axis=(2, 3)) - 1)
    np.testing.assert_allclose(y[..., 4], FRAMES[:, :, 0].mean(axis=2))
    data = tampl.Dataset(
        FRAMES, y, observables=describe_observables(texts, BOARD), microstate=BOARD
    )
    assert [o.symbol for o in data.description.observables] == ["M", "f0", "f1", "up",
                                                                "mean_of_a_row"]  # fmt: skip


def mean_of_a_row(frame):
    return frame[0].mean()


def test_equal_symbols_are_numbered():
    texts = ["density:x=0..0.5", "density:x=0.5..1", "density:symbol=left"]
    assert [o.symbol for o in describe_observables(texts, BOARD)] == ["rho", "rho_2", "left"]


def test_blocks_give_what_the_whole_gives_and_large_frames_are_cut():
    found = find_observable("ising-energy")
    whole = found.observe(FRAMES[0], BOARD)
    np.testing.assert_array_equal(found.observe(iter(FRAMES[0, :, None]), BOARD), whole)
    many = np.zeros((3, 1000, 1000), np.uint8)
    kind = Lattice(height=1000, width=1000, states=2)
    assert find_observable("fraction").observe(many, kind).shape == (3, 1)


def test_a_users_function_is_given_the_frame_and_the_kind_if_it_wants(module):
    width = find_observable(f"{module}:width")
    assert isinstance(width, FunctionMap)
    y = width.observe(FRAMES[0], BOARD)
    np.testing.assert_allclose(y[:, 0], FRAMES[0, :, :, 0].mean(axis=1))
    assert describe_observables(f"{module}:width", BOARD)[0].symbol == "width"
    box = Particles(count=2, types=1, box=5.0)
    frames = box.encode(np.array([[[1.0, 4.0], [2.0, 3.0]]]), np.ones(2, int))
    place = find_observable(f"{module}:place").observe(frames, box)
    assert place == pytest.approx(4.0, abs=1e-3)
    assert find_observable(f"{module}:ready") == Magnetisation(symbol="m")
    assert type(find_observable(f"{module}:Mine")).__name__ == "Mine"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("late", r"`mine_of_test:late` raises ZeroDivisionError in frame 4: nothing there$"),
        ("pair", r"`mine_of_test:pair` returns a value of shape \(5,\) in frame 0"),
        ("word", r"returns a value 'wide' in frame 0; it must return one finite number"),
        ("nowhere", r"returns a value nan in frame 0"),
        ("half", r"mine_of_test has no function 'half'; its functions are late, nowhere, pair"),
        ("missing", r"has no function 'missing'"),
    ],
)
def test_what_is_wrong_with_a_users_function_is_one_line(module, name, words):
    frames = np.zeros((6, 4, 5), int)
    frames[4:, 0, 0] = 1
    with pytest.raises(InputError, match=words):
        # In blocks: frames are counted from the first of the trajectory.
        find_observable(f"{module}:{name}").observe((frames[:3], frames[3:]), BOARD)


def test_a_trajectory_is_named_where_a_function_fails(module):
    frames = np.zeros((3, 6, 4, 5), int)
    frames[2, 1, 0, 0] = 1
    with pytest.raises(InputError, match=r"^trajectory 2: `mine_of_test:late` raises .* frame 1"):
        observe(frames, f"{module}:late", microstate=BOARD)


def test_a_module_that_is_not_there_or_broken_is_one_line(module, tmp_path):
    with pytest.raises(InputError, match="there is no module 'not_there'"):
        find_observable("not_there:f")
    (tmp_path / "broken_of_test.py").write_text("1 / 0")
    with pytest.raises(InputError, match="its module raises ZeroDivisionError"):
        find_observable("broken_of_test:f")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("magnetization", "`observable` is 'magnetization'; choose one of fraction, fractions"),
        ("density:x", "choose one of|after the colon come settings|there is no module"),
        ("density:x=0..1,x=0..1", "after the colon come settings such as key=value, each once"),
        ("density:=3", "after the colon come settings"),
        ("density:name=fraction", "after the colon come settings"),
        ("density:w=3", "unknown key `w`; its settings are symbol, x, y, z, state, type, unit"),
        ("density:x=a..b", "`x.0` is 'a'"),
        ("fraction:state=one", "`state` is 'one'"),
        ("ising-energy:periodic=perhaps", "`periodic` is 'perhaps'"),
        (7, "`observable` is 7"),
        ("", "`observable` is ''"),
    ],
)
def test_wrong_texts_are_one_line(text, words):
    with pytest.raises(InputError, match=words) as caught:
        find_observable(text)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("x", "observables", "words"),
    [
        (FRAMES[0], "fraction", r"`x` has shape \(6, 4, 5\); trajectories of lattices"),
        (FRAMES, [], "`observables` is empty"),
        (FRAMES + 1, "fraction", "trajectory 0: `frames` has a site in state 2"),
        (FRAMES, "radius-of-gyration", "applies to chain and vector, and the microstates are"),
    ],
)
def test_wrong_arrays_are_one_line(x, observables, words):
    with pytest.raises(InputError, match=words):
        observe(x, observables, microstate=BOARD)
    with pytest.raises(InputError, match="`microstate` is 'lattice'; give a kind"):
        observe(x, "fraction", microstate="lattice")


def test_empty_frames_and_frames_of_other_axes_are_refused():
    for frames, words in ((FRAMES[0, :0], "`frames` is empty"), (FRAMES[0, 0], "has shape")):
        with pytest.raises(InputError, match=words):
            find_observable("fraction").observe(frames, BOARD)


def test_absent_frames_have_no_observables():
    present = np.ones((3, 6), bool)
    present[1, 2:] = False
    y = observe(FRAMES, ["magnetisation", "fraction"], microstate=BOARD, present=present)
    assert np.isnan(y[~present]).all() and np.isfinite(y[present]).all()
    with pytest.raises(InputError, match=r"`present` has shape \(6,\)"):
        observe(FRAMES, "fraction", microstate=BOARD, present=present[0])


def test_a_map_that_says_less_than_it_gives_is_refused():
    class Two(Magnetisation):
        def begin(self, kind):
            return lambda stored: np.zeros((len(stored), 2))

    with pytest.raises(InputError, match="describes 1 observables"):
        observe(FRAMES, Two(), microstate=BOARD)


def test_a_map_from_outside_is_known_by_its_name():
    from typing import ClassVar, Literal

    class Corner(ObservableMap):
        """State of the first site."""

        name: Literal["corner"] = "corner"
        kinds: ClassVar = (Lattice,)

        def describe(self, kind):
            return (tampl.Observable(name="corner", symbol="c"),)

        def begin(self, kind):
            return lambda stored: stored[:, 0, 0]

    register_observable("corner", Corner)
    try:
        assert "corner" in known_observables()
        y = observe(FRAMES, "corner", microstate=BOARD)
        np.testing.assert_array_equal(y[..., 0], FRAMES[:, :, 0, 0])
        with pytest.raises(InputError, match="which another observable has"):
            register_observable("corner", type("Other", (Corner,), {}))
    finally:
        del OBSERVABLES["corner"]
