r"""Which law of motion should be fitted on TAMPL's representation? Four laws on the same z.

Encoder E and readout R of TAMPL are frozen; z = E(x), and r = y - R(z) is what z does not tell of
the macrostate. TAMPL itself forecasts with the transition that it was trained with and y = R(z).
The laws that may take its place are

    z                   p(z' | z) refitted, y = R(z);
    stochastic readout  the same z, y = R(z) + r with r ~ p(r | z), anew in every frame;
    residual chain      the same z, y = R(z) + r with r' ~ p(r' | z', r), from r_0 = y_0 - R(z_0);
    (z, y)              p(z', y' | z, y), from (z_0, y_0): the law of TAMPL+, by its flow and by
                        the one-step map that is fitted to the flow;
    (z, y), correlated  the same in units that are standardised, but as correlated as they come.

All of them are conditional flows with the settings of `Refit`: width, steps, batches, rate,
average and solver. Their last averaged weights are scored, without envelope and limits. Scores
compare them with ensembles that are simulated here from initial states of the validation set; test
data are not read.

    python benchmarks/laws.py recipes/sirs-mini.toml --data runs/sirs-mini --json
    python benchmarks/laws.py double-well --seeds 42 43 44 --json
    python benchmarks/laws.py --join sirs-mini.json double-well.json > results/laws.json
"""

import argparse
import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import numpy as np
import torch
from double_well import make_references, make_trajectories
from numpy.typing import NDArray
from torch import Tensor, nn

from tampl import Dataset, References, TamplPlus
from tampl.data import Store
from tampl.description import Description, refuse_other_system
from tampl.errors import InputError
from tampl.evaluation.claims import spread_ratios
from tampl.evaluation.metrics import crps, floor, score
from tampl.files import strict_json
from tampl.flow import flow_matching_loss, midpoint, solve
from tampl.lab.pipeline import simulate
from tampl.lab.provenance import provenance
from tampl.lab.recipes import Recipe, read_recipe
from tampl.methods.base import Method, make_trainer
from tampl.methods.defaults import complete_architecture, default_training
from tampl.methods.tampl import Refit
from tampl.models import CalibratedFlowTransition, MacroModel, ModelSpec, Modules, load_model
from tampl.models.rollout import Sizes, draw_noise, roll_out
from tampl.models.transitions import FlowTransitionSpec, Units
from tampl.nn import MLP, FourierFeatures
from tampl.progress import bar
from tampl.seeding import kernel_words
from tampl.training import Batch, Latents, Losses, Stage, TrainingSpec, Turn

MEMBERS, BAND = 32, 0.8
TRAIN, VALID = 160, 20
"""Trajectories of the double well."""


@dataclass(frozen=True)
class Problem:
    """A data set without its test part, and ensembles from validation states."""

    train: Dataset
    references: References
    architecture: ModelSpec
    training: TrainingSpec
    plus: TamplPlus
    device: str = "cpu"


@dataclass(frozen=True)
class Law:
    """A law of motion: its step, what it says of y in physical units, and where it starts."""

    step: Callable[[Tensor, Tensor], Tensor]
    read: Callable[[Tensor], Tensor]
    start: Tensor
    noise_dim: int


class Scaled(Units):
    """Units that are standardised one by one and stay correlated."""

    @torch.no_grad()
    def calibrate(self, x: Tensor) -> None:
        width = x.std(dim=0).clamp_min(torch.finfo(x.dtype).eps)
        self.centre.copy_(x.mean(dim=0))
        self.axes.copy_(torch.diag(1 / width))
        self.back.copy_(torch.diag(width))


class ResidualFlow(nn.Module):
    """A conditional flow for what R(z) leaves of y, in units of its own standard deviation."""

    centre: Tensor
    width: Tensor
    sigma: Tensor

    def __init__(self, size: int, condition: int, refit: Refit) -> None:
        super().__init__()
        self.size, self.steps = size, refit.solver_steps
        self.time = FourierFeatures(8)
        inputs = size + condition + self.time.features
        self.mlp = MLP(inputs, size, hidden=refit.hidden)
        self.register_buffer("centre", torch.zeros(condition))
        self.register_buffer("width", torch.ones(condition))
        self.register_buffer("sigma", torch.ones(size))

    def calibrate(self, condition: Tensor, residual: Tensor) -> None:
        """Takes the units of conditions (n, c) and residuals (n, m)."""
        self.centre.copy_(condition.mean(dim=0))
        self.width.copy_(condition.std(dim=0))
        self.sigma.copy_(residual.std(dim=0))

    def loss(self, condition: Tensor, residual: Tensor, noise: Mapping[str, Tensor]) -> Tensor:
        """The flow's loss for pairs of a condition and a residual."""
        condition, target = (condition - self.centre) / self.width, residual / self.sigma
        return flow_matching_loss(self._velocity, condition, target, **noise)

    def forward(self, condition: Tensor, noise: Tensor) -> Tensor:
        condition = (condition - self.centre) / self.width
        w = solve(self._velocity, noise, condition, step=midpoint, steps=self.steps)
        return self.sigma * w

    def draw(self, modules: Modules, count: int, generator: torch.Generator) -> dict[str, Tensor]:
        """Flow times and base noise for a batch."""
        return {
            "s": torch.rand(count, 1, generator=generator, device=generator.device),
            "epsilon": torch.randn(count, self.size, generator=generator, device=generator.device),
        }

    def _velocity(self, u: Tensor, s: Tensor, condition: Tensor) -> Tensor:
        return self.mlp(torch.cat([u, condition, self.time(s).expand(len(u), -1)], dim=-1))


class Laws(Method):
    """TAMPL+ with the other laws fitted beside its own, each in a stage with the same settings.

    Attributes:
        plus: TAMPL+.
        trained: Whether the representation comes from a finished run of TAMPL.
    """

    plus: TamplPlus = TamplPlus()
    trained: bool = False

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        built = self.plus.modules(spec, description)
        d, m = spec.latent_dim, len(description.observables)
        joint = built.spec.transition
        assert isinstance(joint.flow, FlowTransitionSpec)
        correlated = CalibratedFlowTransition(joint.flow.build(d + m))
        correlated.state, correlated.increment = Scaled(d + m), Scaled(d + m)
        built.add(
            {
                "correlated": correlated,
                "latent": CalibratedFlowTransition(joint.flow.build(d)),
                "stochastic": ResidualFlow(m, d, self.plus.refit),
                "chain": ResidualFlow(m, d + m, self.plus.refit),
            }
        )
        return built

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        representation, refit, *fit_map = self.plus.turns(training)
        (joint,) = refit.stages
        others = (
            replace(joint, name="correlated", moves=("correlated",), loss=_correlated_loss),
            replace(joint, name="latent", moves=("latent",), loss=_latent_loss, draw=_draw_latent),
            _residual_stage(joint, "stochastic", _stochastic_pairs),
            _residual_stage(joint, "chain", _chain_pairs),
        )
        first = replace(representation, finish=partial(_calibrate, finish=representation.finish))
        if self.trained:
            first = replace(first, stages=())
        return (
            first,
            replace(refit, stages=(joint, *others)),
            *fit_map,
        )


Pairs = Callable[[Modules, Batch | Latents], tuple[Tensor, Tensor]]
"""Condition and residual of a batch or of all pairs."""


def _residual_stage(joint: Stage, name: str, pairs: Pairs) -> Stage:
    def loss(modules: Modules, batch: Batch) -> Losses:
        found = modules.get_submodule(name).loss(*pairs(modules, batch.fields), batch.noise)
        return Losses(found, {"tr": found})

    def draw(modules: Modules, count: int, generator: torch.Generator) -> dict[str, Tensor]:
        return modules.get_submodule(name).draw(modules, count, generator)

    return replace(joint, name=name, moves=(name,), loss=loss, draw=draw)


def _stochastic_pairs(modules: Modules, fields: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    return fields["z"], fields["y"] - modules.readout(fields["z"])


def _chain_pairs(modules: Modules, fields: Mapping[str, Tensor]) -> tuple[Tensor, Tensor]:
    r = fields["y"] - modules.readout(fields["z"])
    r_next = fields["y_next"] - modules.readout(fields["z_next"])
    return torch.cat([fields["z_next"], r], dim=-1), r_next


def _correlated_loss(modules: Modules, batch: Batch) -> Losses:
    state, state_next = (
        torch.cat([batch[z], batch[y]], dim=-1) for z, y in (("z", "y"), ("z_next", "y_next"))
    )
    loss = modules.correlated.loss(state, state_next, batch.noise)
    return Losses(loss, {"tr": loss})


def _latent_loss(modules: Modules, batch: Batch) -> Losses:
    loss = modules.latent.loss(batch["z"], batch["z_next"], batch.noise)
    return Losses(loss, {"tr": loss})


def _draw_latent(modules: Modules, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
    return modules.latent.draw(count, generator)


@torch.no_grad()
def _calibrate(
    modules: Modules, latents: Latents, *, finish: Callable[[Modules, Latents], None]
) -> None:
    finish(modules, latents)
    fields = {name: getattr(latents, name) for name in ("z", "z_next", "y", "y_next")}
    states = (
        torch.cat([fields[z], fields[y]], dim=-1) for z, y in (("z", "y"), ("z_next", "y_next"))
    )
    modules.correlated.calibrate(*states)
    modules.latent.calibrate(latents.z, latents.z_next)
    modules.stochastic.calibrate(*_stochastic_pairs(modules, fields))
    modules.chain.calibrate(*_chain_pairs(modules, fields))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problem", nargs="?", help="a recipe, or double-well")
    parser.add_argument("--data", type=Path, help="the recipe's store; made where it is missing")
    parser.add_argument("--runs", type=Path, help="folder of finished runs METHOD-SEED, to take")
    parser.add_argument("--method", default="tampl", help="whose runs are taken")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--seeds", type=int, nargs="+", default=[42])
    parser.add_argument("--epochs", type=int, help="epochs of each turn, if not the problem's")
    parser.add_argument("--json", action="store_true", help="print JSON instead of lines")
    parser.add_argument("--join", type=Path, nargs="+", metavar="FILE", help="join such records")
    arguments = parser.parse_args()
    if arguments.join:
        print(strict_json(join(arguments.join), indent=1))
        return
    if arguments.problem is None:
        parser.error("say which problem: a recipe, or double-well")
    torch.set_num_threads(1)
    try:
        problem = find_problem(arguments.problem, arguments.data)
    except InputError as error:
        parser.error(str(error))
    if arguments.epochs is not None:
        shorter = problem.training.model_copy(update={"epochs": arguments.epochs})
        problem = replace(problem, training=shorter)
    problem = replace(problem, device=arguments.device)
    method, runs = arguments.method, arguments.runs
    finished = {s: runs / f"{method}-{s}" for s in arguments.seeds} if runs is not None else {}
    record = measure(problem, arguments.seeds, runs=finished)
    record |= {"problem": Path(arguments.problem).stem, "representation": method}
    print(strict_json(record, indent=1) if arguments.json else describe(record))


def join(files: Sequence[Path]) -> dict[str, object]:
    """One record of several, by problem."""
    records = [json.loads(file.read_text()) for file in files]
    words = "python benchmarks/laws.py PROBLEM --json for each problem, joined by --join"
    return {
        "problems": {record["problem"]: record for record in records},
        "provenance": {**records[0]["provenance"], "command": words},
    }


def find_problem(name: str, data: Path | None) -> Problem:
    """The double well, or the problem of a recipe."""
    if name == "double-well":
        return _make_double_well()
    if data is None:
        raise InputError("`--data` is missing; give the folder of the recipe's store")
    recipe = read_recipe(Path(name))
    # What a store already has is not simulated again.
    return _read_recipe_problem(recipe, simulate(recipe, data))


def measure(problem: Problem, seeds: list[int], *, runs: Mapping[int, Path]) -> dict[str, object]:
    """The scores of all laws with some training seeds."""
    statistics, references = problem.train.statistics, problem.references
    made_by = provenance(problem.device)  # now, before anyone commits something else
    fitted = [fit_laws(problem, seed, run=runs.get(seed)) for seed in seeds]
    best = floor(references.y, statistics.y)
    return {
        "initial_states": len(references),
        "members": references.y.shape[1],
        "band": BAND,
        "epochs": problem.training.epochs,
        "refit": problem.plus.refit.model_dump(mode="json"),
        "map": problem.plus.map.model_dump(mode="json"),
        "floor": {"rmse": best.rmse, "mmd": best.mmd},
        "seeds": seeds,
        "laws": {name: [scores[name] for scores in fitted] for name in fitted[0]},
        "provenance": made_by,
    }


def fit_laws(
    problem: Problem, seed: int, *, run: Path | None = None
) -> dict[str, dict[str, object]]:
    """Trains TAMPL's representation or takes that of a run, fits the laws on it, scores them."""
    trainer = make_trainer(
        Laws(plus=problem.plus, trained=run is not None),
        problem.train,
        architecture=problem.architecture,
        training=problem.training.model_copy(update={"seed": seed}),
        device=problem.device,
    )
    if run is not None:
        # Not the best model: the laws follow the representation at the end of its training.
        last = load_model(run / "last.safetensors", device=problem.device)
        refuse_other_system(problem.train.description, last.description, whose="the store")
        for name, own in (("encoder", last.encoder), ("readout", last.readout)):
            trainer.modules.get_submodule(name).load_state_dict(own.state_dict())
        trainer.modules.get_submodule("anchor").load_state_dict(last.transition.state_dict())
        trainer.epoch = problem.training.epochs - 1  # where nothing is left of it but its end
    with bar("training", len(trainer.schedule)) as advance:
        while trainer.epoch < len(trainer.schedule):
            record = trainer.run_epoch()
            advance(", ".join(f"{k} {v['total']:.3g}" for k, v in record.losses.items()))
    found = {}
    for name, law in make_laws(trainer.averaged(), problem).items():
        found[name] = score_law(law, problem)
        print(seed, name, found[name], file=sys.stderr)
    return found


@torch.no_grad()
def make_laws(modules: Modules, problem: Problem) -> dict[str, Law]:
    """The laws at the initial states of the references, by name."""
    description, references = problem.train.description, problem.references
    model = MacroModel(description, statistics=problem.train.statistics, modules=modules)
    model = model.eval().to(problem.device)
    d, m = model.spec.latent_dim, len(description.observables)
    arrays = references.x, references.y[:, 0, 0]
    x0, y0 = (torch.from_numpy(array.copy()).to(problem.device) for array in arrays)
    state = model.start(x0, y0)
    z0 = state[:, :d]
    residual = torch.cat([z0, state[:, d:] - modules.readout(z0)], dim=-1)

    def read_z(state: Tensor) -> Tensor:
        z, r = state[:, :d], state[:, d:]
        y = modules.readout(z) + r if r.shape[1] else modules.readout(z)
        return y.to(model.y_std.dtype) * model.y_std + model.y_mean

    def follow(state: Tensor, noise: Tensor, *, remembers: bool) -> Tensor:
        z, r = modules.latent(state[:, :d], noise[:, :d]), state[:, d:]
        if remembers:
            return torch.cat([z, modules.chain(torch.cat([z, r], dim=-1), noise[:, d:])], dim=-1)
        return torch.cat([z, modules.stochastic(z, noise[:, d:])], dim=-1)

    def integrate(state: Tensor, noise: Tensor) -> Tensor:
        transition, own = modules.transition, modules.transition.map
        transition.map = None
        try:
            return transition(state, noise)
        finally:
            transition.map = own

    laws = {
        "as trained": Law(modules.anchor, read_z, z0, d),
        "z": Law(modules.latent, read_z, z0, d),
        "stochastic readout": Law(partial(follow, remembers=False), read_z, residual, d + m),
        "residual chain": Law(partial(follow, remembers=True), read_z, residual, d + m),
        "(z, y)": Law(integrate, model.read, state, d + m),
    }
    laws["(z, y), correlated"] = Law(modules.correlated, model.read, state, d + m)
    if modules.transition.map is not None:
        laws["(z, y), one-step map"] = Law(modules.transition, model.read, state, d + m)
    return laws


def score_law(law: Law, problem: Problem) -> dict[str, object]:
    """RMSE, squared MMD, CRPS, coverage of the band and spread of a law's ensembles."""
    truth, normalization = problem.references.y, problem.train.statistics.y
    states, members, frames, observables = truth.shape
    sizes = Sizes(states, members, frames - 1, observables)
    noise = draw_noise(sizes, law.noise_dim, seed=0, states=slice(None))
    start = law.start.repeat_interleave(members, dim=0)
    blocks = roll_out(law.step, law.read, start, noise, None)
    y = torch.cat([block.y.cpu() for block in blocks], dim=1).unflatten(0, (states, members))
    y = y.numpy()
    found = score(y, truth, normalization)
    symbols = [observable.symbol for observable in problem.train.description.observables]
    return {
        "rmse": found.rmse,
        "mmd": found.mmd,
        "crps": crps(y, truth, normalization),
        "coverage": dict(zip(symbols, coverage(y, truth), strict=True)),
        "spread": dict(zip(symbols, spread_ratios(y, truth), strict=True)),
    }


def coverage(predicted: NDArray[np.float64], truth: NDArray[np.float64]) -> list[float]:
    """The fraction of reference trajectories inside the band after t = 0, by observable."""
    edges = (1 - BAND) / 2, (1 + BAND) / 2
    # The quantiles of so few members are taken without bias: Weibull's rule.
    low, high = np.quantile(predicted[:, :, 1:], edges, axis=1, keepdims=True, method="weibull")
    future = truth[:, :, 1:]
    return ((low <= future) & (future <= high)).mean(axis=(0, 1, 2)).tolist()


def describe(record: dict) -> str:
    """One line for each law and seed."""
    return "\n".join(
        f"{name}, seed {seed}: RMSE {scores['rmse']:.4f}, MMD² {scores['mmd']:.4f}"
        for name, rows in record["laws"].items()
        for seed, scores in zip(record["seeds"], rows, strict=True)
    )


def _make_double_well() -> Problem:
    data = make_trajectories(TRAIN + VALID, seed=0)
    train, _ = data.split(TRAIN / len(data), VALID / len(data), seed=0)
    return Problem(
        train=train,
        # The seed is not that of any test set, so that these states belong to the validation.
        references=make_references(data.description, VALID, MEMBERS, seed=1),
        architecture=complete_architecture(train),
        training=default_training(train),
        plus=TamplPlus(),
    )


def _read_recipe_problem(recipe: Recipe, store: Store) -> Problem:
    valid = store.dataset("valid").references
    words = [
        [kernel_words(0, "laws", state, member) for member in range(MEMBERS)]
        for state in range(len(valid))
    ]
    y = recipe.system.ensemble(valid.x, np.array(words))
    plus = recipe.method("tampl+")
    assert isinstance(plus, TamplPlus)
    return Problem(
        train=store.dataset("train"),
        references=replace(valid, y=y),
        architecture=recipe.model,
        training=recipe.training,
        plus=plus,
    )


if __name__ == "__main__":
    main()
