r"""Why do the ensembles of a joint training run away? One factor at a time, on a trained model.

Joint training shrinks the latent state z, while the base noise of its flow keeps unit width. Here
encoder and readout of a trained model are frozen. Its own transition and transitions that are
fitted anew to its encoded training frames are rolled out from the same initial states with the
same noise. A new transition has the velocity network and the solver of the model's own; the laws
differ in the units alone in which it sees z:

    own units     p(z' | z) as joint training has it;
    unit width    the same flow of z / w, where the one number w is the mean standard deviation of
                  the coordinates of z;
    unit target   only the target z' divided by w, so that it is as wide as the base noise;
    unit condition  only the condition z divided by w;
    increments    the flow of TAMPL+'s refit: coordinates and increments, each in its own units.

A member runs away if it leaves the range of true values doubled to both sides, as in trials.py.
No envelope and no limits hold it. Measured are also

    by family     which initial states the members that run away start from;
    without noise whether the mean of a step, z -> E[z'], runs away by itself;
    outside       how many members end outside the envelope of the training states, whether or
                  not they run away;
    from afar     what becomes of states at several times the distance of training states from
                  their centre: where the transition no longer leads back;
    one step      how far E[z'] is from z', in units of the mean increment.

    python benchmarks/runaway.py MODEL --data STORE --truth TRUTH --json
    python benchmarks/runaway.py --join sirs.json sirs-mini.json > results/runaway-sirs.json

TRUTH is a store of ensembles as trials.py makes them; no test data are read.
"""

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.optim.swa_utils import AveragedModel, get_ema_multi_avg_fn

from tampl.data import References, Store
from tampl.evaluation.metrics import score
from tampl.files import strict_json
from tampl.flow import flow_matching_loss
from tampl.lab.provenance import provenance
from tampl.models import CalibratedFlowTransition, MacroModel, load_model
from tampl.models.rollout import Sizes, draw_noise, roll_out
from tampl.models.transitions import FlowTransition, FlowTransitionSpec
from tampl.seeding import ambient_seed, torch_generator

FACTORS = (1.0, 1.5, 2.0, 3.0)
"""Distances from the centre, over those of training states, that rollouts start from."""
AFAR, AFAR_FRAMES = 256, 50
"""How many such states there are, and how long they are followed."""
DRAWS = 16
"""Draws of noise that E[z'] is the mean of."""
BATCH, RATE, AVERAGE = 512, 2e-3, 0.998
"""Pairs in a batch, rate at the start and decay of the average of new laws: those of `Refit`."""

Step = Callable[[Tensor, Tensor], Tensor]
"""The next latent states of states (B, d) with base noise (B, d)."""


@dataclass(frozen=True)
class Problem:
    """A trained model, what it was trained on, and what is to be forecast.

    Attributes:
        model: The model.
        z: Encoded training frames, (n, d).
        z_next: The frames after them.
        truth: Ensembles from initial states that no test set has.
        members: Members of a forecast.
        horizon: Its frames.
    """

    model: MacroModel
    z: Tensor
    z_next: Tensor
    truth: References
    members: int
    horizon: int


class ScaledFlow(nn.Module):
    """A flow whose condition and target are in units of one number each.

    Arguments:
        flow: The flow in these units.
        condition: The unit of z.
        target: The unit of z'.
    """

    def __init__(self, flow: FlowTransition, *, condition: float, target: float) -> None:
        super().__init__()
        self.flow, self.condition, self.target = flow, condition, target

    def loss(self, z: Tensor, z_next: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        """The flow's loss in its units."""
        z, z_next = z / self.condition, z_next / self.target
        return flow_matching_loss(self.flow.velocity, z, z_next, **noise)

    def draw(self, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
        """Flow times and base noise for a batch."""
        return self.flow.draw(count, generator)

    def forward(self, z: Tensor, noise: Tensor) -> Tensor:
        return self.flow(z / self.condition, noise) * self.target


Law = FlowTransition | ScaledFlow | CalibratedFlowTransition


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("model", type=Path, nargs="?", help="of a joint training")
    parser.add_argument("--data", type=Path, help="the store that it was trained on")
    parser.add_argument("--truth", type=Path, help="store of ensembles")
    parser.add_argument("--laws", nargs="*", choices=LAWS, default=list(LAWS))
    parser.add_argument("--seeds", type=int, nargs="+", default=[42, 43, 44], help="of new laws")
    parser.add_argument("--steps", type=int, default=4000, help="descent steps of a new law")
    parser.add_argument("--trajectories", type=int, default=300, help="training ones, encoded")
    parser.add_argument("--members", type=int, default=16)
    parser.add_argument("--horizon", type=int, help="frames ahead, if not those of the truth")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.add_argument("--join", type=Path, nargs="+", metavar="FILE", help="join such records")
    arguments = parser.parse_args()
    if arguments.join:
        print(strict_json(join(arguments.join), indent=1))
        return
    if None in (arguments.model, arguments.data, arguments.truth):
        parser.error("give a model, --data and --truth, or --join")
    torch.set_num_threads(1)
    problem = read_problem(arguments)
    made_by = provenance()  # now, before anyone commits something else
    families = np.unique(problem.truth.labels, return_counts=True)
    transition = problem.model.transition
    record = {
        "initial_states": len(problem.truth),
        "families": {str(name): int(n) for name, n in zip(*families, strict=True)},
        "members": problem.members,
        "horizon": problem.horizon,
        "pairs": len(problem.z),
        "widths": find_widths(problem.z),
        "latent_std": float(problem.z.std(dim=0).mean()),
        "as trained": measure(problem, transition)
        | {
            "without_noise": count_without_noise(problem),
        },
        "steps": arguments.steps,
        "seeds": arguments.seeds,
        "laws": {
            name: [
                measure(problem, fit(LAWS[name], problem, seed=seed, steps=arguments.steps))
                for seed in arguments.seeds
            ]
            for name in arguments.laws
        },
        "provenance": made_by,
    }
    print(strict_json(record, indent=1) if arguments.json else describe(record))


def join(files: Sequence[Path]) -> dict[str, object]:
    """One record of several, by the name of their files."""
    records = {file.stem: json.loads(file.read_text()) for file in files}
    # Not the names that a machine has for them.
    words = "python benchmarks/runaway.py MODEL --data STORE --truth TRUTH"
    for record in records.values():
        others = record["provenance"]["command"].partition("--truth ")[2].partition(" ")[2]
        record["provenance"]["command"] = f"{words} {others}"
    first = next(iter(records.values()))["provenance"]
    return {
        "problems": records,
        "provenance": {**first, "command": f"{words} --json for each problem, joined by --join"},
    }


@torch.no_grad()
def read_problem(arguments: argparse.Namespace) -> Problem:
    """The model, its encoded training frames, and the ensembles."""
    model = load_model(arguments.model)
    assert isinstance(model.transition, FlowTransition)
    # As fast as a CPU can, and members that ran away on a GPU do so in this precision too.
    model.transition.velocity.dtype = torch.float32
    train = Store.open(arguments.data).dataset("train")
    runs = range(min(arguments.trajectories, len(train.y)))
    z = torch.stack([model.start_arrays(train.x[run], train.y[run]) for run in runs])
    truth = Store.open(arguments.truth).references("test")
    return Problem(
        model=model,
        z=z[:, :-1].flatten(0, 1),
        z_next=z[:, 1:].flatten(0, 1),
        truth=truth,
        members=arguments.members,
        horizon=arguments.horizon or truth.y.shape[2] - 1,
    )


def build_own(problem: Problem) -> FlowTransition:
    """A transition as the model's, with new weights."""
    spec = problem.model.spec.transition
    assert isinstance(spec, FlowTransitionSpec)
    spec = spec.model_copy(update={"precision": "float32", "draws": 1})
    return spec.build(problem.model.spec.latent_dim)


def build_scaled(problem: Problem, *, condition: bool, target: bool) -> ScaledFlow:
    """The same with condition or target, or both, in units of the latent width."""
    width = float(problem.z.std(dim=0).mean())
    return ScaledFlow(
        build_own(problem),
        condition=width if condition else 1.0,
        target=width if target else 1.0,
    )


def build_increments(problem: Problem) -> CalibratedFlowTransition:
    """The same for increments in their own units."""
    law = CalibratedFlowTransition(build_own(problem))
    law.calibrate(problem.z, problem.z_next)
    return law


LAWS: Mapping[str, Callable[[Problem], Law]] = {
    "own units": build_own,
    "unit width": partial(build_scaled, condition=True, target=True),
    "unit target": partial(build_scaled, condition=False, target=True),
    "unit condition": partial(build_scaled, condition=True, target=False),
    "increments": build_increments,
}


def fit(build: Callable[[Problem], Law], problem: Problem, *, seed: int, steps: int) -> Step:
    """Fits a law to the pairs with the optimiser of the refit; the averaged weights are kept.

    A seed gives every law the same initial weights, batches and noise.
    """
    with ambient_seed(seed, "runaway"):
        law = build(problem)
    generator = torch_generator(seed, "runaway", "batches")
    optimiser = torch.optim.AdamW(law.parameters(), lr=RATE)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimiser, steps, eta_min=RATE / 100)
    averaged = AveragedModel(law, multi_avg_fn=get_ema_multi_avg_fn(AVERAGE))
    for _ in range(steps):
        batch = torch.randint(len(problem.z), (BATCH,), generator=generator)
        noise = law.draw(BATCH, generator)
        loss = law.loss(problem.z[batch], problem.z_next[batch], noise)
        optimiser.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(law.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        averaged.update_parameters(law)
    return averaged.module


@torch.no_grad()
def measure(problem: Problem, step: Step) -> dict[str, object]:
    """Who runs away with a transition, when and from where; how exact one step is."""
    model, truth = problem.model, problem.truth
    start = model.start_arrays(truth.x, truth.y[:, 0, 0])
    y, outside = follow(problem, step, start, members=problem.members, horizon=problem.horizon)
    gone = find_runaways(y, truth.y)
    ever = np.asarray(gone.any(axis=2))
    known = min(y.shape[2], truth.y.shape[2])
    quarters = np.array_split(gone[:, :, 1:], 4, axis=2)
    return {
        "members": float(ever.mean()),
        "members_by_quarter": [float(quarter.any(axis=2).mean()) for quarter in quarters],
        "members_by_family": {
            str(family): float(ever[truth.labels == family].mean())
            for family in np.unique(truth.labels)
        },
        "first_frame": float(np.median(gone.argmax(axis=2)[ever])) if ever.any() else None,
        "outside_envelope": float(outside[:, :, -1].mean()),
        "rmse": score(y[:, :, :known], truth.y[:, :, :known], model.normalization).rmse,
        "from_afar": follow_from_afar(problem, step),
        "one_step": find_one_step_error(problem, step),
    }


def follow(
    problem: Problem, step: Step, start: Tensor, *, members: int, horizon: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Macrostates (states, members, frames, m), and which states are outside the envelope."""
    model = problem.model
    envelope = model.envelope
    assert envelope is not None

    def read(z: Tensor) -> Tensor:
        return torch.cat([model.read(z), envelope.distance(z)[:, None]], dim=-1)

    sizes = Sizes(len(start), members, horizon, len(model.description.observables))
    noise = draw_noise(sizes, start.shape[1], seed=0, states=slice(None))
    blocks = roll_out(step, read, start.repeat_interleave(members, dim=0), noise, None)
    found = torch.cat([block.y for block in blocks], dim=1).unflatten(0, (len(start), members))
    return found[..., :-1].numpy(), found[..., -1].numpy() > 1


def find_runaways(y: NDArray[np.float64], truth: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which macrostates (..., m) are farther out than the whole range of true values again."""
    low, high = (reduce(truth, axis=(0, 1, 2)) for reduce in (np.min, np.max))
    near = (y >= 2 * low - high) & (y <= 2 * high - low)  # what is not finite is not
    return ~np.all(near, axis=-1)


def count_without_noise(problem: Problem) -> int:
    """From how many initial states the mean of a step runs away."""
    truth, transition = problem.truth, problem.model.transition
    generator = torch_generator(0, "mean")

    def step(z: Tensor, noise: Tensor) -> Tensor:
        return find_mean(transition, z, generator)

    start = problem.model.start_arrays(truth.x, truth.y[:, 0, 0])
    y, _ = follow(problem, step, start, members=1, horizon=problem.horizon)
    return int(find_runaways(y, truth.y).any(axis=(1, 2)).sum())


def follow_from_afar(problem: Problem, step: Step) -> dict[str, float]:
    """The fraction that runs away from states at several times the distance of training states."""
    chosen = torch.randint(len(problem.z), (AFAR,), generator=torch_generator(0, "afar"))
    centre = problem.z.mean(dim=0)
    found = {}
    for factor in FACTORS:
        start = centre + factor * (problem.z[chosen] - centre)
        y, _ = follow(problem, step, start, members=1, horizon=AFAR_FRAMES)
        found[f"{factor:g}"] = float(find_runaways(y, problem.truth.y)[:, :, -1].mean())
    return found


@torch.no_grad()
def find_one_step_error(problem: Problem, step: Step) -> float:
    """RMS of z' - E[z'], the true noise included, over the RMS of z' - z."""
    chosen = torch.randint(len(problem.z), (2048,), generator=torch_generator(0, "one step"))
    z, z_next = problem.z[chosen], problem.z_next[chosen]
    error = z_next - find_mean(step, z, torch_generator(0, "mean"))
    return float(error.square().mean().sqrt() / (z_next - z).square().mean().sqrt())


def find_mean(step: Step, z: Tensor, generator: torch.Generator) -> Tensor:
    """E[z'] of states (B, d)."""
    noise = torch.randn(DRAWS * len(z), z.shape[1], generator=generator)
    return step(z.repeat(DRAWS, 1), noise).unflatten(0, (DRAWS, -1)).mean(dim=0)


def find_widths(z: Tensor) -> list[float]:
    """Standard deviations along the principal axes, the largest first."""
    return torch.linalg.eigvalsh(torch.cov(z.T.double())).clamp_min(0).sqrt().flip(0).tolist()


def describe(record: Mapping) -> str:
    """A line for the model's transition and for each new one."""
    rows = [("as trained", record["as trained"])]
    rows += [(name, row) for name, found in record["laws"].items() for row in found]
    return "\n".join(
        f"{name}: {100 * row['members']:.1f} % ran away, RMSE {row['rmse']:.4f}, "
        f"error of a step {row['one_step']:.3f}"
        for name, row in rows
    )


if __name__ == "__main__":
    main()
