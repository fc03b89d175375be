from dataclasses import dataclass

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.evaluation.cases import Case, Cases, Curve, choose_cases, curve


@dataclass
class Affine:
    std: float = 1.0

    def standardize(self, y):
        return y / self.std


def make_cases(frames=4):
    generator = np.random.default_rng(0)
    draw = lambda: Curve(generator.random((frames, 3)), generator.random((frames, 3)))
    cases = tuple(
        Case(
            index=index,
            label=label,
            microstate=generator.integers(0, 3, (8, 8), dtype=np.uint8),
            reference=draw(),
            predictions={"tampl": draw(), "pair": Curve(generator.random((frames, 3)), None)},
        )
        for index, label in [(2, "K=1"), (7, "K=16 é/<b>")]
    )
    return Cases(np.arange(frames) * 0.5, ("S", "I", "R"), cases, (2, 7))


def assert_same(one, two):
    np.testing.assert_array_equal(one.mean, two.mean)
    assert (one.std is None) == (two.std is None)
    if one.std is not None:
        np.testing.assert_array_equal(one.std, two.std)


def test_round_trip(tmp_path):
    saved = make_cases()
    saved.save(tmp_path / "cases.npz")
    loaded = Cases.load(str(tmp_path / "cases.npz"))
    np.testing.assert_array_equal(loaded.times, saved.times)
    assert (loaded.symbols, loaded.twins) == (saved.symbols, saved.twins)
    for one, two in zip(saved.cases, loaded.cases, strict=True):
        assert (one.index, one.label) == (two.index, two.label)
        assert two.microstate.dtype == np.uint8
        np.testing.assert_array_equal(one.microstate, two.microstate)
        assert_same(one.reference, two.reference)
        assert list(one.predictions) == list(two.predictions)
        for name in one.predictions:
            assert_same(one.predictions[name], two.predictions[name])


def test_a_failed_write_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / "cases.npz"
    make_cases().save(path)
    before = path.read_bytes()
    broken = make_cases()
    # An array of objects cannot be written without pickle.
    object.__setattr__(broken.cases[1], "microstate", np.array([{}], dtype=object))
    with pytest.raises(ValueError):
        broken.save(path)
    assert path.read_bytes() == before
    assert [file.name for file in tmp_path.iterdir()] == ["cases.npz"]


def test_what_is_not_a_file_of_cases_is_refused(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        Cases.load(tmp_path / "none.npz")
    (tmp_path / "text.npz").write_text("hello")
    with pytest.raises(InputError, match="is no archive of arrays"):
        Cases.load(tmp_path / "text.npz")
    np.savez(tmp_path / "other.npz", format=np.array(99))
    with pytest.raises(InputError, match="format"):
        Cases.load(tmp_path / "other.npz")
    np.savez(tmp_path / "formats.npz", format=np.ones(2))
    with pytest.raises(InputError, match="format"):
        Cases.load(tmp_path / "formats.npz")
    np.savez(tmp_path / "short.npz", format=np.array(1))
    with pytest.raises(InputError, match="lacks 'index'"):
        Cases.load(tmp_path / "short.npz")


def test_case_finds_by_index():
    cases = make_cases()
    assert cases.case(7).label.startswith("K=16")
    with pytest.raises(InputError, match=r"\[2, 7\]"):
        cases.case(3)


def test_inconsistent_records_are_refused():
    cases = make_cases()
    with pytest.raises(InputError, match="reference of case 2"):
        Cases(cases.times[:2], cases.symbols, cases.cases, cases.twins)
    with pytest.raises(InputError, match=r"\[5\]"):
        Cases(cases.times, cases.symbols, cases.cases, (2, 5))


def test_curve_of_an_ensemble_and_of_a_trajectory():
    ensemble = np.random.default_rng(0).random((6, 4, 3))
    assert_same(curve(ensemble), Curve(ensemble.mean(0), ensemble.std(0, ddof=1)))
    assert_same(curve(ensemble[0]), Curve(ensemble[0], None))


def references_from(start, slope, members=3, frames=5):
    """Trajectories y = start + slope t with a spread that averages out over members."""
    t = np.arange(frames)[None, :, None]
    mean = np.asarray(start)[:, None, None] + np.asarray(slope)[:, None, None] * t
    spread = np.linspace(-1, 1, members)[None, :, None, None] * t[None]
    return mean[:, None] + spread


def test_first_of_each_label_in_natural_order():
    references = references_from([0.0] * 5, [0, 1, 2, 3, 4])
    first, twins = choose_cases(["K=16", "K=2", "K=16", "K=1", "K=2"], references, Affine())
    assert first == [3, 1, 0]
    assert twins == (0, 4)


def test_twins_coincide_at_first_and_differ_most_later():
    start, slope = [0.0, 1.0, 1.0 + 1e-9, 1.0, 5.0], [9.0, 0.0, 0.5, 0.2, -9.0]
    _, twins = choose_cases(["a"] * 5, references_from(start, slope), Affine(std=2.0))
    assert twins == (1, 2)


def test_without_coincidence_the_nearest_pair_is_taken():
    _, twins = choose_cases(
        ["a"] * 4, references_from([0.0, 1.0, 1.2, 4.0], [9.0, 0.0, 0.1, 3.0]), Affine()
    )
    assert twins == (1, 2)


def test_choose_cases_refuses_a_wrong_count():
    with pytest.raises(InputError, match="3 `labels`"):
        choose_cases(["a"] * 3, references_from([0.0, 1.0], [0.0, 1.0]), Affine())
