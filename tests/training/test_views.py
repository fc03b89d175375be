"""Training on frames that symmetries move: which view a stage sees, and what stays the same."""

from dataclasses import replace

import pytest
import torch

from tampl.errors import InputError
from tampl.methods import METHODS, Jld, Tampl
from tampl.training.frames import Views

ALL = ("shift", "flip", "transpose")


def counts(frames):
    """How many sites of each frame are in each state, (n_frames, states)."""
    sites = frames.stored.flatten(1).long()
    return torch.stack([(sites == state).sum(dim=1) for state in range(3)], dim=1)


def test_views_differ_by_part_and_leave_the_simulated_frames_alone(bench):
    simulated = bench.frames.stored.clone()
    views = Views(bench.frames, bench.training(symmetries=ALL))
    seen = []
    for part in (0, 1, 0):
        views.show(part)
        seen.append(views.frames.stored.clone())
        assert torch.equal(counts(views.frames), counts(bench.frames))
    assert torch.equal(seen[0], seen[2]) and not torch.equal(seen[0], seen[1])
    assert torch.equal(bench.frames.stored, simulated)


def test_all_frames_of_a_trajectory_are_moved_alike(bench):
    """Where two frames agree, their images do, since one motion takes both."""
    views = Views(bench.frames, bench.training(symmetries=ALL))
    views.show(3)

    def unchanged(frames):
        """Sites that a frame shares with the next, for all frames of all trajectories."""
        runs = frames.stored.unflatten(0, (-1, frames.length))
        return (runs[:, 1:] == runs[:, :-1]).flatten(2).sum(dim=2)

    assert torch.equal(unchanged(views.frames), unchanged(bench.frames))


def test_without_symmetries_nothing_is_copied(bench):
    assert Views(bench.frames, bench.training()).frames is bench.frames


def test_tampl_keeps_the_view_from_a_transition_to_the_next_representation(bench):
    """The cache is made where the view changes, so both are those of the same frames."""
    trainer = bench.trainer(Tampl(), bench.training(symmetries=ALL))
    views = []
    for _ in range(2):
        for stage in trainer.schedule[trainer.epoch]:
            trainer.run_stage(stage)
            views.append(trainer.frames.stored.clone())
        trainer.epoch += 1
    first, second, third, fourth = views
    assert torch.equal(second, third)
    assert not torch.equal(first, second) and not torch.equal(third, fourth)


def test_the_cache_is_that_of_the_frames_seen(bench):
    trainer = bench.trainer(Tampl(), bench.training(symmetries=ALL))
    representation, transition = trainer.schedule[0]
    trainer.run_stage(representation)
    z = trainer.first_batch(transition)["z"]
    cache = trainer._cache
    torch.testing.assert_close(cache, trainer._encode())
    assert any(torch.equal(z[0], row) for row in cache)


def test_a_joint_method_sees_another_view_each_epoch(bench):
    trainer = bench.trainer(Jld(), bench.training(symmetries=ALL))
    seen = []
    for _ in range(2):
        trainer.run_epoch()
        seen.append(trainer.frames.stored.clone())
    assert not torch.equal(*seen)


@pytest.mark.parametrize("name", METHODS)
def test_every_method_trains_and_resumes_on_moved_frames(bench, name):
    training = bench.training(symmetries=ALL, epochs=2)
    method = METHODS[name]
    whole, begun, resumed = (bench.trainer(method, training) for _ in range(3))
    for _ in whole.schedule:
        whole.run_epoch()
    begun.run_epoch()
    resumed.load(1, {key: value.clone() for key, value in begun.tensors().items()})
    for _ in whole.schedule[1:]:
        resumed.run_epoch()
    for key, value in whole.tensors().items():
        assert torch.equal(value, resumed.tensors()[key]), key


def test_symmetries_that_a_microstate_does_not_have_are_refused(bench):
    wide = bench.frames.microstate.model_copy(update={"width": 9})
    frames = replace(bench.frames, microstate=wide)
    with pytest.raises(InputError, match=r"`training\.symmetries` has 'transpose'.* flip, shift"):
        Views(frames, bench.training(symmetries=["transpose"]))
