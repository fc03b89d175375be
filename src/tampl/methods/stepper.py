"""Moving the modules of one stage: optimiser, schedule, clipping and weight average."""

import math
from collections.abc import Iterator

import torch
from torch import Tensor, nn

from ..models import Modules
from .base import Batch, Losses, Stage

__all__ = ["Stepper", "focus"]


def focus(modules: Modules, moves: tuple[str, ...]) -> None:
    """Lets the named modules train and freezes all others, in evaluation mode."""
    for name, module in modules.named_children():
        module.train(name in moves)
        module.requires_grad_(name in moves)


class Stepper:
    """Descends a stage's loss, one batch at a time.

    Arguments:
        stage: The stage.
        modules: All modules of the run.
        total_steps: Steps over the whole training, the length of the cosine schedule.
    """

    def __init__(self, stage: Stage, modules: Modules, total_steps: int) -> None:
        self.stage = stage
        self.modules = modules
        self.total_steps = total_steps
        self.steps = 0
        self.parameters = dict(_moved_parameters(modules, stage.moves))
        self.optimiser = torch.optim.AdamW(
            self.parameters.values(),
            lr=stage.optimiser.learning_rate,
            weight_decay=stage.optimiser.weight_decay,
            fused=True,
        )
        self.average: dict[str, Tensor] = {}
        if stage.optimiser.average:
            self.average = {name: p.detach().clone() for name, p in self.parameters.items()}

    def step(self, batch: Batch) -> Losses:
        """One descent step; returns the losses before it, detached."""
        losses = self.stage.loss(self.modules, batch)
        self.optimiser.zero_grad()
        losses.total.backward()
        if self.stage.optimiser.clip:
            nn.utils.clip_grad_norm_(self.parameters.values(), self.stage.optimiser.clip)
        for group in self.optimiser.param_groups:
            group["lr"] = self.learning_rate
        self.optimiser.step()
        self.steps += 1
        self._update_average()
        return Losses(losses.total.detach(), {k: v.detach() for k, v in losses.parts.items()})

    @property
    def learning_rate(self) -> float:
        """The cosine from the first rate to its final fraction."""
        spec = self.stage.optimiser
        fall = 0.5 * (1 + math.cos(math.pi * min(1.0, self.steps / self.total_steps)))
        return spec.learning_rate * (spec.final_fraction + (1 - spec.final_fraction) * fall)

    def _update_average(self) -> None:
        if not self.average:
            return
        # The warm-up keeps the random first weights from lingering in a short run.
        decay = min(self.stage.optimiser.average, (1 + self.steps) / (10 + self.steps))
        current = [p.detach() for p in self.parameters.values()]
        torch._foreach_lerp_(list(self.average.values()), current, 1 - decay)

    @torch.no_grad()
    def settle(self) -> bool:
        """Puts the averaged weights in place of the last ones; says whether there are any."""
        for name, value in self.average.items():
            self.parameters[name].copy_(value)
        return bool(self.average)

    def tensors(self) -> Iterator[tuple[str, Tensor]]:
        """The state to resume from: step count, optimiser moments and weight average."""
        yield "steps", torch.tensor(self.steps)
        for name, parameter in self.parameters.items():
            for key, value in self.optimiser.state.get(parameter, {}).items():
                yield f"optimiser/{name}/{key}", value
        for name, value in self.average.items():
            yield f"average/{name}", value

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Takes up the state that `tensors` gave."""
        self.steps = int(tensors["steps"])
        for name, parameter in self.parameters.items():
            prefix = f"optimiser/{name}/"
            self.optimiser.state[parameter] = {
                key.removeprefix(prefix): value.to(parameter.device)
                for key, value in tensors.items()
                if key.startswith(prefix)
            }
        for name, value in self.average.items():
            value.copy_(tensors[f"average/{name}"])


def _moved_parameters(
    modules: Modules, moves: tuple[str, ...]
) -> Iterator[tuple[str, nn.Parameter]]:
    for name in moves:
        for key, parameter in modules.get_submodule(name).named_parameters():
            yield f"{name}.{key}", parameter
