"""How fast is a training, against the rate of the machine?

A few epochs are trained and thrown away. Arithmetic is counted on one batch on the CPU, so that
the number does not depend on the kernels; the machine's rate is that of one large matrix product
in the encoder's precision. The rest is memory traffic, kernel launches and waiting.

    python benchmarks/profile_training.py recipes/sirs.toml --data runs/sirs --device cuda --json
"""

import argparse
import json
import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from tampl.data import Store
from tampl.lab.cli.entry import keep_freed_memory
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe
from tampl.methods.base import make_trainer
from tampl.models import resolve_device
from tampl.training import Batch, Stage, Trainer

WARM_UP, SHOWN = 2, 8


@dataclass(frozen=True)
class StageProfile:
    """One pass of a stage.

    Attributes:
        seconds: Its duration, with the pass that fills the latent cache.
        pairs_per_second: Training pairs in a second.
        operations: Floating-point operations of its steps; the pass that fills the latent cache is
            not counted.
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
    recipe: Recipe, data: str | Path, *, method: str = "tampl", device: str = "auto"
) -> Profile:
    """Times an epoch of a method's first turn; nothing is saved.

    Arguments:
        recipe: The recipe.
        data: The store.
        method: Name of the method.
        device: Where to train.
    """
    device = resolve_device(device)
    trainer = make_trainer(
        recipe.method(method),
        Store.open(data).dataset("train", verify=True),
        architecture=recipe.model,
        training=recipe.training,
        device=device,
    )
    stages = trainer.schedule[0]
    for _ in range(min(WARM_UP, len(trainer.schedule) - 1)):
        trainer.run_epoch()
    seconds, hottest = _time_stages(trainer, stages), _find_hottest(trainer, stages)
    pairs = len(trainer.frames.pairs) * recipe.training.fraction
    measured = {
        stage.name: StageProfile(
            seconds=seconds[stage.name],
            pairs_per_second=pairs / seconds[stage.name],
            operations=pairs * _count_operations(trainer, stage),
        )
        for stage in stages
    }
    precision = getattr(recipe.model.encoder, "precision", "float32")
    rate, total = _measure_rate(device, precision), sum(seconds.values())
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


def _time_stages(trainer: Trainer, stages: tuple[Stage, ...]) -> dict[str, float]:
    seconds = {}
    for stage in stages:
        start = time.perf_counter()
        trainer.run_stage(stage)  # waits for the device at its end
        seconds[stage.name] = time.perf_counter() - start
    return seconds


def _find_hottest(trainer: Trainer, stages: tuple[Stage, ...]) -> dict[str, float]:
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


def _count_operations(trainer: Trainer, stage: Stage) -> float:
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


def _measure_rate(device: str, precision: str) -> float:
    on_gpu = device.startswith("cuda")
    size, dtype = (8192, getattr(torch, precision)) if on_gpu else (1024, torch.float32)
    matrix = torch.ones((size, size), dtype=dtype, device=device)
    best = float("inf")
    for _ in range(5):
        start = time.perf_counter()
        (matrix @ matrix)[0, 0].item()
        best = min(best, time.perf_counter() - start)
    return 2 * size**3 / best


def main() -> None:
    """Prints the profile of a recipe's training."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("recipe", type=Path)
    parser.add_argument("--data", type=Path, required=True, help="folder of a store")
    parser.add_argument("--method", default="tampl")
    parser.add_argument("--seed", type=int, help="training seed; default: the recipe's")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    keep_freed_memory()
    device = resolve_device(arguments.device)
    recipe = read_recipe(arguments.recipe).with_seed(arguments.seed)
    found = profile_training(recipe, arguments.data, method=arguments.method, device=device)
    if arguments.json:
        print(json.dumps(asdict(found) | {"provenance": provenance(device)}))
        return
    print(f"an epoch takes {found.epoch_s:.3f} s, {found.fraction:.1%} of the matrix rate")
    for name, stage in found.stages.items():
        print(f"{name}: {stage.seconds:.3f} s, {stage.pairs_per_second:.0f} pairs in a second")
    for name, share in found.hottest.items():
        print(f"{share:.1%} {name}")


if __name__ == "__main__":
    main()
