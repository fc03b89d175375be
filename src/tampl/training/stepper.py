"""Moving the modules of one stage: optimiser, schedule, clipping and weight average.

A step is one function of the batch's windows and noise: it gathers the batch, descends the loss
and follows with the averaged weights. Rate and decay change from step to step and are tensors, so
that a recorded step sees their present values.

Where several ranks train, `DistributedDataParallel` averages the gradients; all else is done alike
by every rank. Steps are not recorded then (`replay.py`).
"""

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType

import torch
from torch import Tensor, nn

from ..errors import InputError
from ..models import Modules
from ..models.checkpoint import refuse_unlike
from .ranks import ALONE, Ranks
from .replay import Replay
from .stages import Batch, Stage

__all__ = ["Stepper", "focus"]

Gather = Callable[[Tensor, Mapping[str, Tensor], Mapping[str, Tensor]], Batch]


def focus(modules: Modules, moves: tuple[str, ...]) -> None:
    """Lets the named modules train and freezes all others, in evaluation mode."""
    modules.eval().requires_grad_(False)
    for name in moves:
        modules.get_submodule(name).train().requires_grad_(True)


class _StageLoss(nn.Module):
    """The loss of a stage as a module, which can be shared between ranks.

    Of the run's modules it owns those parameters that the stage moves, and nothing else: no
    buffers, which ranks would otherwise send each other before every step.
    """

    def __init__(self, stage: Stage, modules: Modules, parameters: Iterable[nn.Parameter]) -> None:
        super().__init__()
        self.stage = stage
        self.moved = nn.ParameterList(parameters)
        self.run = (modules,)  # within a tuple, torch does not take it for a part of this module
        self.names: tuple[str, ...] = ()

    def forward(self, batch: Batch) -> tuple[Tensor, ...]:
        losses = self.stage.loss(self.run[0], batch)
        self.names = ("total", *losses.parts)
        return (losses.total, *losses.parts.values())


class Stepper:
    """Descends a stage's loss, one batch at a time.

    Arguments:
        stage: The stage.
        modules: All modules of the run.
        gather: Gives a batch of the windows at some starts, with its noise and what was read of
            it beforehand.
        total_steps: Steps over the whole training, the length of the cosine schedule.
        ranks: Those that the stage is shared with.
    """

    def __init__(
        self,
        stage: Stage,
        modules: Modules,
        *,
        gather: Gather,
        total_steps: int,
        ranks: Ranks = ALONE,
    ) -> None:
        self.stage = stage
        self.gather = gather
        self.ranks = ranks
        self.total_steps = total_steps
        self.steps = 0
        self.parameters = dict(_moved_parameters(modules, stage.moves))
        self._loss = _StageLoss(stage, modules, self.parameters.values())
        self._shared: nn.Module | None = None
        device = next(modules.transition.parameters()).device
        # A GPU's optimiser takes a rate in single precision only.
        real = torch.float32 if device.type == "cuda" else torch.float64
        self._rate = torch.tensor(stage.optimiser.learning_rate, dtype=real, device=device)
        self._decay = torch.tensor(0.0, dtype=real, device=device)
        self.optimiser = torch.optim.AdamW(
            self.parameters.values(),
            lr=self._rate,
            weight_decay=stage.optimiser.weight_decay,
            fused=True,
            capturable=device.type == "cuda",
        )
        self.average: dict[str, Tensor] = {}
        if stage.optimiser.average:
            self.average = {name: p.detach().clone() for name, p in self.parameters.items()}
        self._noise_names: tuple[str, ...] = ()
        self._read_names: tuple[str, ...] = ()
        self._replay = Replay(self._descend, device, records=stage.replays and ranks.size == 1)

    def step(
        self,
        starts: Tensor,
        noise: Mapping[str, Tensor],
        read: Mapping[str, Tensor] = MappingProxyType({}),
    ) -> dict[str, Tensor]:
        """One descent step on the windows at `starts`; returns the losses before it, by name.

        Arguments:
            starts: Where the windows start.
            noise: What the stage drew for them.
            read: Fields in stored form, of frames that are not on the device.
        """
        if self._shared is None:
            # Only now are those parameters free, and no others, that the stage moves.
            self._shared = self.ranks.share(self._loss)
        if self.steps == 0:
            self._restart_average()
        self._rate.fill_(self.learning_rate)
        # The warm-up keeps the random first weights from lingering in a short run.
        steps = self.steps + 1
        self._decay.fill_(min(self.stage.optimiser.average, (1 + steps) / (10 + steps)))
        self._noise_names, self._read_names = tuple(noise), tuple(read)
        values = self._replay(starts, *noise.values(), *read.values())
        self.steps = steps
        return dict(zip(self._loss.names, values, strict=True))

    def _descend(self, starts: Tensor, *given: Tensor) -> tuple[Tensor, ...]:
        count = len(self._noise_names)
        noise = dict(zip(self._noise_names, given[:count], strict=True))
        read = dict(zip(self._read_names, given[count:], strict=True))
        batch = self.gather(starts, noise, read)
        assert self._shared is not None
        with self.ranks.summing():
            values = self._shared(batch)
        self.optimiser.zero_grad()
        values[0].backward()
        if self.stage.optimiser.clip:
            nn.utils.clip_grad_norm_(self.parameters.values(), self.stage.optimiser.clip)
        self.optimiser.step()
        self._update_average()
        return tuple(value.detach() for value in values)

    @property
    def learning_rate(self) -> float:
        """The cosine from the first rate to its final fraction."""
        spec = self.stage.optimiser
        fall = 0.5 * (1 + math.cos(math.pi * min(1.0, self.steps / self.total_steps)))
        return spec.learning_rate * (spec.final_fraction + (1 - spec.final_fraction) * fall)

    @torch.no_grad()
    def _restart_average(self) -> None:
        """An average begins where the stage does, which may be after others have moved."""
        for name, value in self.average.items():
            value.copy_(self.parameters[name])

    @torch.no_grad()
    def _update_average(self) -> None:
        if not self.average:
            return
        averages = list(self.average.values())
        ahead = torch._foreach_sub(list(self.parameters.values()), averages)
        torch._foreach_mul_(ahead, 1 - self._decay)
        torch._foreach_add_(averages, ahead)

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
        """Takes up the state that `tensors` gave, before the first step.

        Tensors of other names, shapes or types are refused: a fused optimiser does not look at
        them, and would read and write beyond their ends.
        """
        refuse_unlike(tensors, self._expected(tensors), f"stage `{self.stage.name}`")
        if (steps := int(tensors["steps"])) < 0:
            raise InputError(f"stage `{self.stage.name}` has {steps} steps")
        self.steps = steps
        for name, parameter in self.parameters.items():
            prefix = f"optimiser/{name}/"
            self.optimiser.state[parameter] = {
                key.removeprefix(prefix): value.to(parameter.device)
                for key, value in tensors.items()
                if key.startswith(prefix)
            }
        for name, value in self.average.items():
            value.copy_(tensors[f"average/{name}"])

    def _expected(self, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Tensors like those of a state, with moments where the state has any of a parameter."""
        expected = {"steps": torch.tensor(0)}
        for name, parameter in self.parameters.items():
            prefix = f"optimiser/{name}/"
            # A parameter that no loss has reached yet has none.
            if any(key.startswith(prefix) for key in tensors):
                expected |= {f"{prefix}{key}": parameter for key in ("exp_avg", "exp_avg_sq")}
                expected[f"{prefix}step"] = torch.tensor(0.0)
        return expected | {f"average/{name}": value for name, value in self.average.items()}


def _moved_parameters(
    modules: Modules, moves: tuple[str, ...]
) -> Iterator[tuple[str, nn.Parameter]]:
    for name in moves:
        for key, parameter in modules.get_submodule(name).named_parameters():
            yield f"{name}.{key}", parameter
