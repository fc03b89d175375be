"""Pairs of several lags: which frames they are of, what a transition is told, what is refused."""

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl import Dataset, Vector
from tampl.errors import InputError
from tampl.methods import Tampl, TamplPlus
from tampl.methods.tampl import Ahead, MapFit, Refit
from tampl.models import ModelSpec
from tampl.models.transitions import FlowTransitionSpec
from tampl.seeding import ambient_seed
from tampl.training import Losses, OptimiserSpec, Stage, Trainer, TrainingSpec, Turn
from tampl.training.frames import Frames

FRAMES = 12
SPEC = ModelSpec.model_validate(
    {
        "latent_dim": 1,
        "encoder": {"name": "linear"},
        "transition": {"name": "flow", "hidden": [16, 16], "steps": 2},
        "readout": {"name": "mlp", "hidden": [8]},
    }
)


def make_numbered(runs=6, holes=()):
    """Frames whose macrostate is their number, 1000 more in each trajectory."""
    y = 1000.0 * np.arange(runs)[:, None] + np.arange(FRAMES)
    present = np.ones(y.shape, dtype=bool)
    for run, frame in holes:
        present[run, frame] = False
    y = np.where(present, y, np.nan)[..., None]
    x = np.random.default_rng(0).normal(size=(runs, FRAMES, 2))
    return Dataset(x, y, microstate=Vector(size=2), present=present)


def make_trainer(data, lags, **changes):
    """A trainer of one stage that moves nothing by its loss, and looks at macrostates alone."""
    training = TrainingSpec.model_validate({"epochs": 1, "batch_size": 12} | changes)
    frames = Frames.load(
        data,
        data.statistics,
        lag=training.lag,
        partitions=training.partitions,
        dtype=torch.float64,
    )
    with ambient_seed(0, "weights"):
        modules = Tampl().modules(SPEC, data.description).to(torch.float64)
    seen = []

    def look(modules, batch):
        seen.append((batch["y"], batch["y_next"], batch.noise.get("lag")))
        return Losses(0 * modules.readout(batch["y"]).sum(), {})

    stage = Stage(
        name="look",
        moves=("readout",),
        needs=frozenset({"y", "y_next"}),
        loss=look,
        draw=lambda modules, count, generator: {},
        optimiser=OptimiserSpec(),
        lags=lags,
    )
    trainer = Trainer((Turn((stage,), 1),), modules, frames=frames, training=training)
    return trainer, stage, seen


def find_numbers(data, seen):
    """Frame numbers at both ends of all pairs that were seen, and the number of their lag."""
    unit = data.statistics.y
    ends = [torch.cat([each[k] for each in seen]).numpy() for k in (0, 1)]
    first, last = (np.rint(end * unit.std + unit.mean).astype(int)[:, 0] for end in ends)
    return first, last, torch.cat([each[2] for each in seen]).numpy()


@settings(max_examples=25, deadline=None)
@given(
    lags=st.sampled_from([(1, 3), (1, 2, 4), (1, 5)]),
    lag=st.sampled_from([1, 2]),
    window=st.sampled_from([2, 3]),
    fraction=st.sampled_from([1.0, 0.6]),
    partitions=st.sampled_from([1, 2]),
    order=st.sampled_from(["random", "blocks"]),
    holes=st.lists(st.tuples(st.integers(0, 5), st.integers(1, FRAMES - 1)), max_size=3),
)
def test_pairs_are_as_far_apart_as_they_are_told(
    lags, lag, window, fraction, partitions, order, holes
):
    if lag * lags[-1] * (window - 1) > FRAMES - 3:
        return
    data = make_numbered(holes=holes)
    changes = {"lag": lag, "window": window, "fraction": fraction, "order": order}
    try:
        trainer, stage, seen = make_trainer(data, lags, partitions=partitions, **changes)
    except InputError:  # so many frames are missing that a partition has no window
        assert holes
        return
    trainer.run_stage(stage)
    first, last, number = find_numbers(data, seen)
    assert (first // 1000 == last // 1000).all()
    assert np.array_equal(last - first, lag * np.array(lags)[number])
    assert (np.bincount(number) == len(number) // len(lags)).all()
    assert len(np.unique(np.stack([first, number]), axis=1).T) == len(first)


def test_an_epoch_has_no_more_pairs_for_several_lags():
    data, counts = make_numbered(runs=24), {}
    for lags in ((1,), (1, 2), (1, 2, 3)):
        trainer, stage, seen = make_trainer(data, lags)
        trainer.run_stage(stage)
        counts[lags] = sum(len(y) for y, *_ in seen)
        assert len(seen) == trainer.steppers["look"].total_steps
    assert counts[(1,)] == 24 * (FRAMES - 1)
    # The longest lag has the fewest windows, and the others no more than it.
    assert counts[(1, 2)] == 24 * (FRAMES - 2)
    assert counts[(1, 2, 3)] == 24 * (FRAMES - 3)


def make_flow(lags, draws=1):
    spec = FlowTransitionSpec(name="flow", hidden=(32, 32), draws=draws, lags=lags)
    with ambient_seed(0, "weights"):
        return spec.build(2)


def test_a_flow_knows_the_lag_of_a_pair():
    """z stays over one lag and turns over the other: only a flow that is told can learn both."""
    flow, generator = make_flow((1, 5)), torch.Generator().manual_seed(0)
    z = torch.randn(512, 2, generator=generator)
    lag = torch.arange(2).repeat_interleave(256)
    z_next = torch.where(lag[:, None] == 0, z, -z)
    optimiser = torch.optim.Adam(flow.parameters(), lr=5e-3)
    for _ in range(400):
        noise = flow.draw(512, generator)
        optimiser.zero_grad()
        flow.loss(z, z_next, noise | {"lag": lag}).backward()
        optimiser.step()
    with torch.no_grad():
        noise = flow.draw(512, generator)
        right, wrong = (float(flow.loss(z, z_next, noise | {"lag": n})) for n in (lag, 1 - lag))
        assert right < 0.2 * wrong
        # A forecast takes steps of the first lag.
        again = flow(z[:50], torch.randn(50, 2, generator=generator))
        assert (again - z[:50]).square().mean() < 0.1


def test_every_draw_of_a_pair_has_its_lag():
    flow, generator = make_flow((1, 4), draws=3), torch.Generator().manual_seed(0)
    z, z_next = torch.randn(2, 8, 2, generator=generator)
    noise, lag = flow.draw(8, generator), torch.arange(2).repeat_interleave(4)
    parts = []
    for number in range(2):
        rows = (lag == number).repeat(3)
        drawn = {name: values[rows] for name, values in noise.items()}
        mine = lag == number
        parts.append(flow.loss(z[mine], z_next[mine], drawn | {"lag": lag[mine]}))
    whole = flow.loss(z, z_next, noise | {"lag": lag})
    torch.testing.assert_close(whole, sum(parts) / 2)


def test_a_method_with_lags_fits_and_forecasts():
    data = make_numbered(runs=8)
    tampl = Tampl(lags=(1, 4))
    small = {"steps": 5, "batch_size": 8, "hidden": (8,)}
    for method in (tampl, TamplPlus(tampl=tampl, refit=Refit(**small), map=MapFit(**small))):
        model = method.fit(data, data, epochs=1, architecture=SPEC, device="cpu", progress=False)
        ahead = model.forecast(data.x[:2, 0], y0=data.y[:2, 0], horizon=3, members=4)
        assert np.isfinite(ahead.mean).all()


def test_a_forecast_of_tampl_plus_does_not_keep_the_lags():
    """The law is refitted on steps of one; only the first transition, which is dropped, knew."""
    modules = TamplPlus(tampl=Tampl(lags=(1, 4))).modules(SPEC, make_numbered().description)
    assert len(modules.anchor.marks) == 2
    assert len(modules.transition.flow.marks) == 1


@pytest.mark.parametrize("lags", [(2, 3), (1, 3, 2), (1, 1)])
def test_lags_that_do_not_begin_with_one_and_grow_are_refused(lags):
    with pytest.raises(InputError, match="must begin with 1"):
        Tampl(lags=lags)


def test_a_transition_that_knows_one_lag_is_refused():
    linear = SPEC.model_copy(update={"transition": SPEC.transition.__class__(name="flow")})
    spec = ModelSpec.model_validate(linear.model_dump() | {"transition": {"name": "linear"}})
    with pytest.raises(InputError, match="knows one lag"):
        Tampl(lags=(1, 2)).modules(spec, make_numbered().description)


def test_lags_are_set_by_the_method_alone():
    transition = SPEC.transition.model_copy(update={"lags": (1, 2)})
    spec, data = SPEC.model_copy(update={"transition": transition}), make_numbered()
    with pytest.raises(InputError, match="give `lags` to `tampl`"):
        Tampl().fit(data, data, epochs=1, architecture=spec, progress=False)


def test_lags_that_no_trajectory_or_no_batch_holds_are_refused():
    with pytest.raises(InputError, match=r"`training\.window` is 2; .* 12 frames apart"):
        make_trainer(make_numbered(), (1, FRAMES))
    with pytest.raises(InputError, match="a stage has 3 lags and a batch has 2 pairs"):
        make_trainer(make_numbered(), (1, 2, 3), batch_size=2)


def make_delayed(runs=60, delay=4):
    """x = (a, b), all noise, but that a is what b was some frames before; y is a."""
    generator = np.random.default_rng(0)
    b = generator.normal(size=(runs, FRAMES))
    a = np.concatenate([generator.normal(size=(runs, delay)), b[:, :-delay]], axis=1)
    return Dataset(np.stack([a, b], axis=-1), a[..., None], microstate=Vector(size=2))


@pytest.mark.parametrize("delay, told", [(4, True), (3, False)])
def test_what_shows_later_is_told_at_its_lag_and_at_no_other(delay, told):
    """Of lags 1 and 4: b decides y four frames later, or three, which no pair sees."""
    data = make_delayed(delay=delay)
    training = TrainingSpec.model_validate(
        {"epochs": 12, "batch_size": 24, "representation": {"learning_rate": 1e-2}}
    )
    frames = Frames.load(data, data.statistics, dtype=torch.float64)
    spec = SPEC.model_copy(update={"latent_dim": 2})
    method = Tampl(lags=(1, 4), lambda_ahead=1.0)
    with ambient_seed(0, "weights"):
        modules = method.modules(spec, data.description).to(torch.float64)
    trainer = Trainer(method.turns(training), modules, frames=frames, training=training)
    for _ in range(training.epochs):
        log = trainer.run_epoch()
    # Half of the pairs are one frame apart, where nothing is told of the noise of variance one.
    expected = 0.5 if told else 1.0
    assert log.losses["representation"]["ahead"] == pytest.approx(expected, abs=0.12)


def test_the_mean_of_a_pair_is_that_of_its_lag():
    with ambient_seed(0, "weights"):
        ahead = Ahead(2, 3, lags=2, hidden=(8,))
    z, lag = torch.randn(6, 2), torch.tensor([0, 1, 1, 0, 1, 0])
    means = ahead.mlp(z).reshape(6, 2, 3)
    torch.testing.assert_close(ahead(z, lag), means[torch.arange(6), lag])
    torch.testing.assert_close(ahead(z), means[:, 0])


def test_no_model_keeps_the_network_that_tells_ahead():
    tampl, description = Tampl(lags=(1, 4), lambda_ahead=1.0), make_numbered().description
    small = {"steps": 5, "batch_size": 8, "hidden": (8,)}
    plus = TamplPlus(tampl=tampl, refit=Refit(**small), map=MapFit(**small))
    for method in (tampl, plus):
        assert "ahead" in dict(method.modules(SPEC, description).named_children())
        data = make_numbered(runs=8)
        model = method.fit(data, data, epochs=1, architecture=SPEC, device="cpu", progress=False)
        assert not [name for name in model.state_dict() if "ahead" in name]


def test_the_weights_of_the_other_modules_are_the_same_with_and_without_it():
    description = make_numbered().description
    weights = []
    for tampl in (Tampl(), Tampl(lambda_ahead=1.0)):
        with ambient_seed(0, "weights"):
            found = tampl.modules(SPEC, description).state_dict()
        weights.append({name: w for name, w in found.items() if not name.startswith("ahead.")})
    torch.testing.assert_close(*weights, rtol=0, atol=0)
