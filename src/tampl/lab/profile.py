"""How fast a training is, against what the machine could do.

A few epochs are run and thrown away. Arithmetic is counted on one batch on the CPU, so that it is
the same number whatever kernels run; the machine's rate is that of one large matrix product in
the encoder's precision. What is left of the rate is memory traffic, launches and waiting.
"""

import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from ..data import Store
from ..training import Batch, Stage, Trainer
from .pipeline import make_trainer, refuse_absent_device
from .recipes import Recipe

__all__ = ["Profile", "StageProfile", "profile_training"]

WARM_UP, SHOWN = 2, 8


@dataclass(frozen=True)
class StageProfile:
    """One pass of a stage.

    Attributes:
        seconds: How long it took, the sweep of the cache included.
        pairs_per_second: Training pairs in a second.
        operations: Floating-point operations of its steps; the sweep is not counted.
    """

    seconds: float
    pairs_per_second: float
    operations: float


@dataclass(frozen=True)
class Profile:
    """What one epoch costs.

    Attributes:
        device: Name of the device.
        precision: Of the encoder's convolutions, where it has a choice.
        batch_size: Pairs in a batch.
        epoch_s: Seconds of an epoch.
        stages: The stages by name.
        matrix_rate: Operations in a second of a large matrix product.
        fraction: Counted operations over what the matrix rate would allow in that time.
        hottest: Share of the time of the longest-running operations, by name.
    """

    device: str
    precision: str
    batch_size: int
    epoch_s: float
    stages: Mapping[str, StageProfile]
    matrix_rate: float
    fraction: float
    hottest: Mapping[str, float]


def profile_training(
    recipe: Recipe, data: str | Path, *, method: str = "tampl", device: str = "cpu"
) -> Profile:
    """Times an epoch of a method's first turn; nothing is saved.

    Arguments:
        recipe: The recipe.
        data: The store.
        method: Name of the method.
        device: Where to train.
    """
    refuse_absent_device(device)
    trainer = make_trainer(recipe.method(method), recipe, Store.open(data), device=device)
    stages = trainer.schedule[0]
    for _ in range(min(WARM_UP, len(trainer.schedule) - 1)):
        trainer.run_epoch()
    seconds, hottest = _timed(trainer, stages), _hottest(trainer, stages)
    pairs = len(trainer.frames.pairs) * recipe.training.fraction
    measured = {
        stage.name: StageProfile(
            seconds=seconds[stage.name],
            pairs_per_second=pairs / seconds[stage.name],
            operations=pairs * _operations_per_pair(trainer, stage),
        )
        for stage in stages
    }
    precision = getattr(recipe.model.encoder, "precision", "float32")
    rate, total = _matrix_rate(device, precision), sum(seconds.values())
    counted = sum(stage.operations for stage in measured.values())
    return Profile(
        device=torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu",
        precision=precision,
        batch_size=recipe.training.batch_size,
        epoch_s=total,
        stages=measured,
        matrix_rate=rate,
        fraction=counted / total / rate,
        hottest=hottest,
    )


def _timed(trainer: Trainer, stages: tuple[Stage, ...]) -> dict[str, float]:
    seconds = {}
    for stage in stages:
        start = time.perf_counter()
        trainer.run_stage(stage)  # waits for the device at its end
        seconds[stage.name] = time.perf_counter() - start
    return seconds


def _hottest(trainer: Trainer, stages: tuple[Stage, ...]) -> dict[str, float]:
    on_gpu = trainer.frames.stored.is_cuda
    activity = ProfilerActivity.CUDA if on_gpu else ProfilerActivity.CPU
    with profile(activities=[activity]) as recorded:
        for stage in stages:
            trainer.run_stage(stage)
    attribute = "self_device_time_total" if on_gpu else "self_cpu_time_total"
    times = {event.key: getattr(event, attribute) for event in recorded.key_averages()}
    whole = sum(times.values())
    longest = sorted(times, key=lambda name: -times[name])[:SHOWN]
    return {name: times[name] / whole for name in longest}


def _operations_per_pair(trainer: Trainer, stage: Stage) -> float:
    """Operations of a step, forward and backward, for one pair."""
    batch, modules = trainer.first_batch(stage), deepcopy(trainer.modules).cpu()
    small = Batch(
        {name: value.cpu() for name, value in batch.fields.items()},
        {name: value.cpu() for name, value in batch.noise.items()},
        batch.window,
    )
    size, steps = trainer.training.batch_size, batch.window - 1
    pairs = min(max(1, size // steps) * steps, len(trainer.frames.pairs))
    for name, module in modules.named_children():
        module.requires_grad_(name in stage.moves)
    with FlopCounterMode(display=False) as counter:
        stage.loss(modules, small).total.backward()
    return counter.get_total_flops() / pairs


def _matrix_rate(device: str, precision: str) -> float:
    on_gpu = device.startswith("cuda")
    size, dtype = (8192, getattr(torch, precision)) if on_gpu else (1024, torch.float32)
    matrix = torch.ones((size, size), dtype=dtype, device=device)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        (matrix @ matrix)[0, 0].item()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best
