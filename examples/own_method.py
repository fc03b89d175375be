r"""A method of your own on the one trainer: one class, registered by one call.

*Detached* joint training lies between JLD and TAMPL. All modules move at once, as in JLD, but the
target E(x_{t+1}) counts as a constant, as in TAMPL,

    L = lambda_cur E || R(E(x_t)) - y_t ||^2 + lambda_tr E l_tr(T; E(x_t), sg[E(x_{t+1})]),

with sg the stop-gradient. Does it take the frozen copy, or is the stop-gradient enough?

    python examples/own_method.py --out runs/own-method

checks the method against the contract that every method of the library meets, then trains and
scores it beside TAMPL and JLD, with resume, table and page as for any other.
"""

import argparse
from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import ClassVar

import torch
from pydantic import PositiveFloat
from torch import Tensor

from tampl.data import write_miniature
from tampl.description import Description
from tampl.lab.comparisons import compare
from tampl.lab.recipes import Recipe, read_recipe
from tampl.methods import Method, check_method, register_method
from tampl.models import ModelSpec, Modules
from tampl.systems import SIRS
from tampl.training import Batch, Losses, Stage, TrainingSpec, Turn

RECIPE = Path(__file__).parents[1] / "recipes" / "sirs-mini.toml"


class Detached(Method):
    """Joint training towards a detached next encoding.

    Attributes:
        title: Its name in tables and figures.
        color: Its colour in figures.
        lambda_cur: Weight of the current macrostate's loss.
        lambda_tr: Weight of the transition loss.
    """

    title: ClassVar[str] = "Detached"
    color: ClassVar[str | None] = "#117733"
    lambda_cur: PositiveFloat = 1.0
    lambda_tr: PositiveFloat = 0.1

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        """The recipe's encoder, transition and readout, and nothing else."""
        return Modules.build(spec, description)

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        """One stage that moves everything, repeated for all epochs."""
        stage = Stage(
            name="detached",
            moves=("encoder", "readout", "transition"),
            needs=frozenset({"x", "x_next", "y"}),
            loss=self._loss,
            draw=_draw,
            optimiser=training.averaged,
        )
        return (Turn((stage,), training.epochs),)

    def _loss(self, modules: Modules, batch: Batch) -> Losses:
        z = modules.encoder(batch["x"])
        with torch.no_grad():
            z_next = modules.encoder(batch["x_next"])
        current = (modules.readout(z) - batch["y"]).square().sum(dim=-1).mean()
        transition = modules.transition.loss(z, z_next, batch.noise)
        total = self.lambda_cur * current + self.lambda_tr * transition
        return Losses(total, {"cur": current, "tr": transition})


def _draw(modules: Modules, count: int, generator: torch.Generator) -> Mapping[str, Tensor]:
    # Noise is data: the loss itself draws nothing, so that the same seed gives the same bytes.
    return modules.transition.draw(count, generator)


def check(recipe: Recipe) -> None:
    """Holds the method against the contract, on a few small trajectories."""
    with TemporaryDirectory() as folder:
        store = write_miniature(SIRS(size=8, frames=6, clusters=(1, 2)), Path(folder) / "store")
        check_method(Detached(), recipe.model, store.dataset("train"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, default=Path("runs/own-method"))
    parser.add_argument("--recipe", type=Path, default=RECIPE)
    arguments = parser.parse_args()
    # Before the recipe is read, so that the recipe may have a section [methods.detached].
    register_method("detached", Detached())
    recipe = read_recipe(arguments.recipe)
    check(recipe)
    print(compare(recipe, arguments.out, methods=["tampl", "jld", "detached"]).table)


if __name__ == "__main__":
    main()
