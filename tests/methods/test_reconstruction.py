"""Reconstruction: what the two methods train, when, and that no model keeps the decoder."""

import pytest
import torch

from tampl.errors import InputError
from tampl.methods import METHODS, Jld, JldRecon, Recon, TwoStageRecon


def state(trainer, name):
    module = trainer.modules.get_submodule(name)
    return {key: value.clone() for key, value in module.state_dict().items()}


def moved(trainer, name, before):
    after = state(trainer, name)
    return any(not torch.equal(after[key], before[key]) for key in before)


def test_the_autoencoder_comes_first_and_then_stays(bench):
    trainer = bench.trainer(TwoStageRecon(), bench.training(epochs=2))
    names = ("encoder", "decoder", "readout", "transition")
    for expected in [{"encoder", "decoder"}] * 2 + [{"readout", "transition"}] * 2:
        before = {name: state(trainer, name) for name in names}
        trainer.run_epoch()
        assert {name for name in names if moved(trainer, name, before[name])} == expected


def test_reconstruction_learns_the_states_of_the_sites(bench):
    """The loss falls below the entropy of the mean occupation, all that no encoder would give."""
    training = bench.training(epochs=40, representation={"learning_rate": 1e-2})
    trainer = bench.trainer(TwoStageRecon(), training)
    losses = [trainer.run_epoch().losses["autoencoder"]["rec"] for _ in range(40)]
    occupation = bench.frames.x(torch.arange(len(bench.frames))).mean(dim=(0, 2, 3))
    assert losses[-1] < torch.special.entr(occupation).sum().item()
    assert losses[-1] < losses[0]


def test_joint_loss_adds_the_weighted_reconstruction(bench):
    plain, full = Jld(), JldRecon(penalty=Recon(weight=2.5))
    modules = bench.modules(full)
    (stage,) = full.turns(bench.training())[0].stages
    assert stage.moves == ("encoder", "readout", "transition", "decoder")
    trainer = bench.trainer(full)
    batch = trainer.first_batch(stage)
    with torch.no_grad():
        total = stage.loss(modules, batch)
        without = plain.turns(bench.training())[0].stages[0].loss(modules, batch).total
        z = modules.encoder(batch["x"])
        expected = 2.5 * modules.decoder.loss(z, batch["x"], {})
    torch.testing.assert_close(total.parts["penalty"], expected)
    torch.testing.assert_close(total.total, without + expected)


@pytest.mark.parametrize("name", ["jld-recon", "two-stage-recon"])
def test_no_model_keeps_the_decoder(bench, name):
    model = bench.model(bench.modules(METHODS[name]))
    assert not any("decoder" in key for key in model.state_dict())


@pytest.mark.parametrize("name", ["jld-recon", "two-stage-recon"])
def test_an_architecture_without_a_decoder_is_refused(bench, spec, name):
    bare = spec.model_copy(update={"decoder": None})
    with pytest.raises(InputError, match=r"\[model\.decoder\]"):
        METHODS[name].modules(bare, bench.store.description)
