"""The loop of a training: what one that is left early keeps, and what one says at its end."""

import pytest
import torch

from tampl.methods import Tampl
from tampl.training import DivergenceError, MemoryKeeper, run_training
from tampl.training.latents import LatentScale
from tampl.training.trainer import EpochRecord

HEALTHY, COLLAPSED = LatentScale(1.0, 1.0, 1.0, 0.1), LatentScale(1e-9, 1e-9, 1.0, 1.0)


class Watched(MemoryKeeper):
    """Counts the states and keeps the order of what is kept."""

    def __init__(self):
        super().__init__()
        self.kept, self.history = [], None

    def keep_best(self, model):
        super().keep_best(model)
        self.kept.append("best")

    def keep_state(self, trainer, history):
        self.kept.append(f"state {trainer.epoch}")
        self.history = history


def run(bench, keeper, *, epochs=10, save_every=2, deadline=None, validate=lambda model: 1.0):
    training = bench.training(epochs=epochs, validate_every=1, save_every=save_every)
    return run_training(
        bench.trainer(Tampl(), training),
        keeper,
        make_model=bench.model,
        validate=validate,
        deadline=deadline,
        progress=False,
    )


def test_a_training_left_before_its_first_validation_has_a_model(bench):
    keeper = Watched()
    history = run(bench, keeper, deadline=0.0)
    assert len(history.epochs) == 1 and history.best_epoch == 0
    assert keeper.kept == ["best", "state 1"]
    assert keeper.best_model() is not None


def test_a_checkpoint_before_the_first_validation_has_its_model(bench):
    keeper = Watched()
    history = run(bench, keeper, epochs=8)
    assert keeper.kept[:4] == ["best", "state 2", "best", "state 4"]
    # The first validation takes the place of a model that was not validated, whatever its error.
    assert keeper.kept[4:6] == ["best", "state 5"] and history.best_epoch == 5


@pytest.mark.parametrize("error", [KeyboardInterrupt, DivergenceError])
@pytest.mark.parametrize(("after", "validated"), [(2, 0), (7, 6)])
def test_a_training_that_is_left_keeps_the_end_of_its_last_epoch(
    bench, monkeypatch, error, after, validated
):
    """In the middle of an epoch, long after the last checkpoint."""
    whole = bench.trainer(Tampl(), bench.training(epochs=10))
    for _ in range(after):
        whole.run_epoch()
    settings = bench.training(epochs=10, save_every=50, validate_every=6)
    keeper, trainer = Watched(), bench.trainer(Tampl(), settings)
    run_stage = trainer.run_stage

    def leave(stage):
        losses = run_stage(stage)
        if trainer.epoch == after:
            raise error
        return losses

    monkeypatch.setattr(trainer, "run_stage", leave)
    with pytest.raises(error):
        run_training(
            trainer,
            keeper,
            make_model=bench.model,
            validate=lambda model: 1.0,
            progress=False,
        )
    assert keeper.kept[-1] == f"state {after}"
    assert (keeper.kept[-2] == "best") == (not validated)
    assert keeper.history.best_epoch == validated and len(keeper.history.epochs) == after
    for name, value in whole.tensors().items():
        assert torch.equal(trainer.tensors()[name], value), name


def run_with_scales(bench, monkeypatch, scales):
    """Runs a training whose latent scales are prescribed."""
    trainer = bench.trainer(Tampl(), bench.training(epochs=len(scales)))

    def run_epoch():
        trainer.epoch += 1
        return EpochRecord(trainer.epoch, {"joint": {"total": 1.0}}, scales[trainer.epoch - 1], {})

    monkeypatch.setattr(trainer, "run_epoch", run_epoch)
    return run_training(
        trainer,
        MemoryKeeper(),
        make_model=bench.model,
        validate=lambda model: 1.0,
        progress=False,
    )


def test_a_collapse_that_ended_is_taken_back_at_the_end(bench, monkeypatch, capsys):
    scales = [HEALTHY] * 4 + [COLLAPSED] * 6 + [HEALTHY] * 4
    history = run_with_scales(bench, monkeypatch, scales)
    flags = [record["collapsed"] for record in history.epochs]
    assert any(flags) and not flags[-1]
    said = capsys.readouterr().err.splitlines()
    last = max(record["epoch"] for record in history.epochs if record["collapsed"])
    assert sum("collapsed in epoch" in line for line in said) == 1
    assert said[-1].startswith(
        f"tampl: the latent scale recovered: its collapse ended after epoch {last}"
    )


@pytest.mark.parametrize("scales", [[HEALTHY] * 6, [HEALTHY] * 4 + [COLLAPSED] * 6])
def test_a_training_without_a_recovery_takes_nothing_back(bench, monkeypatch, capsys, scales):
    run_with_scales(bench, monkeypatch, scales)
    assert "recovered" not in capsys.readouterr().err
