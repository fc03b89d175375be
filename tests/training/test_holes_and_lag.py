"""Training on trajectories with missing frames, and with a lag longer than the frame interval."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl import Tampl, TamplPlus, Vector
from tampl.data import Dataset, Normalization, Statistics
from tampl.errors import InputError
from tampl.methods.base import make_trainer
from tampl.methods.defaults import complete_architecture, default_training
from tampl.training import TrainingSpec
from tampl.training.frames import Frames, select, spans

METHODS = [Tampl(), TamplPlus.model_validate({"refit": {"steps": 3}, "map": {"steps": 2}})]


def make_data(lengths, seed=0, **options):
    """Noisy circles, of which y is one coordinate."""
    rng = np.random.default_rng(seed)
    x = []
    for length in lengths:
        angle = rng.uniform(0, 6) + 0.5 * np.arange(length)
        circle = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        x.append(circle + 0.05 * rng.normal(size=(length, 2)))
    return Dataset(x, [states[:, :1] for states in x], microstate=Vector(size=2), **options)


def train(data, method=METHODS[0], statistics=None, **changes):
    """Weights after a short training."""
    small = {"encoder": {"name": "mlp", "hidden": [8]}, "readout": {"name": "mlp", "hidden": [8]}}
    transition = {"name": "flow", "hidden": [8], "steps": 2}
    spec = complete_architecture(data, latent_dim=2).model_copy()
    spec = type(spec).model_validate({**spec.model_dump(), **small, "transition": transition})
    training = TrainingSpec.model_validate({"epochs": 3, "batch_size": 6, **changes})
    trainer = make_trainer(
        method, data, architecture=spec, training=training, statistics=statistics
    )
    while trainer.epoch < len(trainer.schedule):
        trainer.run_epoch()
    return trainer.modules.state_dict()


def assert_same(first, second):
    assert first.keys() == second.keys()
    for name, value in first.items():
        assert torch.equal(value, second[name]), name


@pytest.mark.parametrize("method", METHODS)
def test_a_hole_is_the_end_of_one_trajectory_and_the_beginning_of_another(method):
    whole = make_data([7, 5])
    present = np.arange(7) < np.array([7, 5])[:, None]
    present[0, 3] = False
    holed = Dataset(whole.x, whole.y, microstate=Vector(size=2), present=present)
    parts = [(0, slice(0, 3)), (0, slice(4, 7)), (1, slice(0, 5))]
    cut = Dataset(
        [whole.x[part] for part in parts],
        [whole.y[part] for part in parts],
        microstate=Vector(size=2),
    )
    assert_same(train(holed, method), train(cut, method))


@pytest.mark.parametrize("method", METHODS)
def test_what_stands_in_missing_frames_changes_nothing(method):
    data = make_data([7, 4, 6])
    other = make_data([7, 4, 6])
    other.x[~other.present] = 1e6
    assert_same(train(data, method), train(other, method))


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("lag", [1, 4])
def test_one_lag_per_trajectory_is_the_thinned_data(method, lag):
    data = make_data([lag + 1] * 20)
    statistics = data.statistics
    lagged = train(data, method, statistics, lag=lag)
    thinned = train(data.thin(lag), method, statistics.thin(lag))
    # Rounding depends on which frames are encoded together.
    for name, value in lagged.items():
        torch.testing.assert_close(value, thinned[name], rtol=0, atol=1e-4)


@pytest.mark.parametrize("changes", [{"window": 3}, {"fraction": 0.5}, {"window": 4}])
def test_windows_and_fractions_train_with_holes_and_lag(changes):
    weights = train(make_data([12, 9, 16, 11]), lag=2, **changes)
    assert all(value.isfinite().all() for value in weights.values())


@settings(max_examples=60, deadline=None)
@given(
    present=st.lists(st.lists(st.booleans(), min_size=9, max_size=9), min_size=1, max_size=4),
    lag=st.integers(1, 5),
    window=st.integers(2, 5),
    offset=st.integers(0, 3),
)
def test_windows_are_those_of_a_slow_search(present, lag, window, offset):
    known = np.array(present)
    known[:, 0] = True
    x = np.random.default_rng(0).normal(size=(*known.shape, 1))
    data = Dataset(x, x, present=known, microstate=Vector(size=1))
    units = Normalization(np.zeros(1), np.ones(1))
    frames = Frames.load(data, Statistics(y=units, x=units), lag=lag)
    expected = []
    for run, row in enumerate(known):
        for t in range(9):
            place = t // lag - offset
            inside = [t + lag * k for k in range(window)]
            fits = place >= 0 and place % (window - 1) == 0 and inside[-1] < 9
            if fits and row[inside].all():
                expected.append(9 * run + t)
    assert frames.windows(window, offset).tolist() == expected
    assert torch.equal(frames.windows(2, 0), frames.pairs)
    assert len(frames.pairs) == data.count_pairs(lag)


def test_over_the_offsets_windows_see_every_pair():
    data = make_data([17, 17])
    frames = Frames.load(data, data.statistics, lag=3)
    training = TrainingSpec(epochs=1, window=3, lag=3)
    chosen = [select(frames, training, number)[0] for number in range(20)]
    seen = torch.cat([selection.pairs for selection in chosen]).unique()
    assert torch.equal(seen, frames.pairs)
    assert torch.equal(chosen[0].frames, spans(chosen[0].starts, 3, 3))


def test_a_lag_of_one_leaves_recipes_as_they_are():
    assert "lag" not in TrainingSpec(epochs=1).model_dump()
    assert TrainingSpec(epochs=1, lag=3).model_dump(mode="json")["lag"] == 3
    assert default_training(make_data([30] * 4), lag=5).lag == 5


@pytest.mark.parametrize("given", [{"lag": 3}, {"training": TrainingSpec(epochs=1, lag=3)}])
def test_a_model_steps_whole_lags(given):
    data = make_data([10, 7, 10, 10, 9], interval=0.5)
    epochs = {"epochs": 1} if "lag" in given else {}
    model = Tampl().fit(data, data, device="cpu", progress=False, **epochs, **given)
    assert model.description.interval == 1.5 and model.description.frames == 4
    np.testing.assert_allclose(
        model.mean_trajectory, data.statistics.mean_trajectory[::3], rtol=1e-12
    )
    assert model.forecast(data.x[:2, 0], progress=False).times.tolist() == [0, 1.5, 3, 4.5]


@pytest.mark.parametrize(
    ("lengths", "lag", "words"),
    [
        ([5, 5], 5, "`lag` is 5 and trajectories have 5 frames"),
        ([5, 3], 9, "choose a smaller lag"),
        ([5, 5], 0, "`lag` is 0; it must be at least 1"),
    ],
)
def test_a_lag_that_no_trajectory_holds_is_one_line(lengths, lag, words):
    data = make_data(lengths)
    with pytest.raises(InputError, match=words):
        Tampl().fit(data, data, lag=lag, device="cpu", progress=False)


def test_windows_that_no_trajectory_holds_are_refused():
    with pytest.raises(InputError, match=r"`training.window` is 4; .* 3 frames, 4 frames apart"):
        train(make_data([9, 9]), window=4, lag=4)
    holed = make_data([9, 9], present=[[True, True, False] * 3] * 2)
    with pytest.raises(InputError, match="9 frames at most, and some are missing"):
        train(holed, window=3)
