"""Windows and parts: what an epoch sees, each once, and from one sweep where that is allowed."""

import pytest
import torch

from tampl.errors import InputError
from tampl.methods import METHODS, Jld, Tampl
from tampl.training.frames import select, spans, steps_per_pass
from tampl.training.stages import Batch


def selection(bench, number=0, **changes):
    return select(bench.frames, bench.training(**changes), number)[0]


def trajectories_of(bench, index):
    return index // bench.frames.length


def test_windows_of_two_frames_are_all_pairs(bench):
    assert torch.equal(selection(bench).pairs, bench.frames.pairs)


@pytest.mark.parametrize("window", [2, 3, 4, 6])
def test_windows_hold_each_pair_once_at_most_and_stay_in_a_trajectory(bench, window):
    for number in range(5):
        chosen = selection(bench, number, window=window)
        pairs = chosen.pairs
        assert len(pairs.unique()) == len(pairs)
        assert torch.isin(pairs, bench.frames.pairs).all()
        frames = spans(chosen.starts, window).view(-1, window)
        homes = trajectories_of(bench, frames)
        assert (homes == homes[:, :1]).all()


def test_offsets_let_every_pair_have_its_turn(bench):
    """Five pairs in windows of two leave one out, each time another."""
    seen = torch.cat([selection(bench, number, window=3).pairs for number in range(20)])
    assert torch.equal(seen.unique(), bench.frames.pairs)


def test_a_fraction_is_a_share_at_random_and_the_same_for_the_same_number(bench):
    whole = selection(bench, window=3)
    part, again, other = (selection(bench, n, window=3, fraction=0.5) for n in (1, 1, 2))
    assert len(part.starts) == round(0.5 * len(whole.starts))
    assert torch.equal(part.starts, again.starts) and not torch.equal(part.starts, other.starts)


@pytest.mark.parametrize("window", [2, 3, 5])
def test_steps_are_those_of_a_pass(bench, window):
    settings = {"window": window, "fraction": 0.7, "batch_size": 8}
    training = bench.training(**settings)
    order = torch.Generator(bench.frames.stored.device).manual_seed(0)
    batches = list(selection(bench, **settings).batches(8, order))
    assert (
        len(batches)
        <= steps_per_pass(bench.frames, training, training.batch_size)
        <= len(batches) + 1
    )
    assert all(len(starts) * (window - 1) <= 8 for starts in batches)


def test_a_window_that_no_trajectory_holds_is_refused(bench):
    with pytest.raises(InputError, match=r"`training\.window` is 7; a trajectory has 6 frames"):
        bench.trainer(Tampl(), bench.training(window=7))


def test_encodings_of_windows_are_split_into_both_ends():
    z = torch.arange(12.0)[:, None]
    latents = Batch({}, {}, window=4).latents(z)
    assert latents.z.flatten().tolist() == [0, 1, 2, 4, 5, 6, 8, 9, 10]
    assert torch.equal(latents.z_next, latents.z + 1)


def test_joint_loss_of_windows_is_that_of_their_pairs(bench):
    """The same pairs once as windows of three frames, once as plain pairs."""
    method, losses = Jld(), []
    for window, starts in ((3, torch.tensor([0, 6])), (2, torch.tensor([0, 1, 6, 7]))):
        trainer = bench.trainer(method, bench.training(window=window))
        (stage,) = trainer.schedule[0]
        device = bench.frames.stored.device
        noise = stage.draw(trainer.modules, 4, torch.Generator(device).manual_seed(0))
        batch = trainer._gather(stage, starts.to(device), noise)
        losses.append(stage.loss(trainer.modules, batch).total)
    torch.testing.assert_close(*losses)


def windows_seen(trainer, epochs):
    """Starts of the windows of every pass, in order."""
    passes = []
    batches = trainer._batches

    def watched(stage):
        drawn = list(batches(stage))
        starts = torch.cat([starts for starts, *_ in drawn])
        passes.append(starts.sort().values.tolist())
        return iter(drawn)

    trainer._batches = watched
    for _ in range(epochs):
        trainer.run_epoch()
    return passes


def test_a_part_serves_a_transition_pass_and_the_next_representation_pass(bench):
    training = bench.training(epochs=3, fraction=0.5)
    first, second, third, fourth, fifth, sixth = windows_seen(bench.trainer(Tampl(), training), 3)
    assert second == third and fourth == fifth
    assert len({tuple(part) for part in (first, second, fourth, sixth)}) == 4


def test_a_joint_stage_sees_another_part_every_epoch(bench):
    first, second = windows_seen(bench.trainer(Jld(), bench.training(fraction=0.5)), 2)
    assert first != second


@pytest.mark.parametrize("name", ["tampl", "jld", "vamp", "two-stage-recon", "macro-only"])
def test_a_resumed_training_sees_the_same_parts(bench, name):
    training = bench.training(epochs=2, window=3, fraction=0.4)
    whole, half, rest = (bench.trainer(METHODS[name], training) for _ in range(3))
    for _ in whole.schedule:
        whole.run_epoch()
    half.run_epoch()
    rest.load(1, {key: value.clone() for key, value in half.tensors().items()})
    while rest.epoch < len(rest.schedule):
        rest.run_epoch()
    for key, value in whole.tensors().items():
        assert torch.equal(value, rest.tensors()[key]), key
