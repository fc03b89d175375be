"""The processes that share a training, and what they do together.

A *rank* is one of N processes that train one model, each on partitions of its own
(`partitions.py`). All ranks make the same steps: the gradients are averaged over them, batch
statistics are summed over them, and whatever is decided or written is done by the first rank, the
*leader*, whose answer the others take. A lone process is its own leader, and nothing here does
anything then.

    with join() as ranks:                               # torchrun --nproc-per-node 2 script.py
        model = tampl.Tampl().fit(train, training=training, ranks=ranks)

An error of one rank is raised on all of them, so that none waits for another that has left. For
the same reason an interrupt is postponed to where all ranks are asked about it. What is sent
beside tensors is pickled; it goes to the other ranks of the same training alone.
"""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from datetime import timedelta
from threading import current_thread, main_thread
from types import FrameType
from typing import Any, TypeVar

import torch
from torch import Tensor, distributed, nn

from ..errors import InputError
from ..progress import quiet

__all__ = ["ALONE", "Ranks", "count_ranks", "join", "sum_over_ranks"]

Result = TypeVar("Result")

_PATIENCE = timedelta(days=1)
"""How long ranks wait: the others do while the leader simulates, validates and evaluates. A rank
that has died is noticed at once, by its closed connection or by torchrun."""

_SUMS: ContextVar[bool] = ContextVar("sums", default=True)
"""Whether a shared training asks for sums: a lone one may run beside it, in the same group."""

_STEPS_BETWEEN_LOOKS = 16
"""An interrupt ends a training within so many steps; a look costs some 0.1 ms."""


@dataclass
class _Agreement:
    """What is going on between the ranks.

    Attributes:
        control: The group of everything but tensors.
        waits: Whether interrupts wait for the next moment at which all ranks are asked.
        asked: Whether there was one meanwhile.
        agreed: The last error that was raised on all ranks.
        apart: Whether an error has ended the training of this rank alone.
    """

    control: "distributed.ProcessGroup | None" = None
    waits: bool = False
    asked: bool = False
    agreed: BaseException | None = None
    apart: bool = False


@dataclass(frozen=True)
class Ranks:
    """This process among those that share a training; the only one by default.

    Attributes:
        rank: Number of this process.
        size: How many processes there are.
        local_size: How many of them are on this machine.
    """

    rank: int = 0
    size: int = 1
    local_size: int = 1
    _now: _Agreement = field(default_factory=_Agreement, repr=False, compare=False)

    @property
    def leads(self) -> bool:
        """Whether this is the rank that decides, writes and reports."""
        return self.rank == 0

    @property
    def at_one(self) -> bool:
        """Whether nothing has happened to this rank alone, so that ranks may act together."""
        return not self._now.apart

    def lead(self, act: Callable[[], Result]) -> Result:
        """What `act` returns on the leader, which alone calls it, on every rank.

        What `act` raises is raised on every rank.
        """
        if self.size == 1:
            return act()
        sent: list[Any] = [None, None]
        own = None
        if self.leads:
            sent[0], own = self._attempt(act)
            sent[1] = self._make_portable(own)
        answer = sent[0]
        distributed.broadcast_object_list(sent, src=0, group=self._now.control)
        self._raise(own, sent[1])
        # The leader keeps the very object, which it may go on to change.
        return answer if self.leads else sent[0]

    def agree(self, act: Callable[[], Result]) -> Result:
        """What `act` returns, which every rank calls; raises on all what it raises on any."""
        if self.size == 1:
            return act()
        value, own = self._attempt(act)
        errors: list[Any] = [None] * self.size
        distributed.all_gather_object(errors, self._make_portable(own), group=self._now.control)
        first = next((rank for rank, error in enumerate(errors) if error is not None), self.rank)
        self._raise(own if first == self.rank else None, errors[first])
        return value  # type: ignore[return-value]

    def _attempt(
        self, act: Callable[[], Result]
    ) -> tuple[Result | None, Exception | KeyboardInterrupt | None]:
        try:
            if self._now.asked:
                raise KeyboardInterrupt
            return act(), None
        except (Exception, KeyboardInterrupt) as error:
            return None, error

    def _make_portable(self, error: BaseException | None) -> BaseException | None:
        """The error as other ranks can raise it; not every kind can be sent."""
        if error is None or isinstance(error, InputError | KeyboardInterrupt):
            return error
        line = f"rank {self.rank} failed: {type(error).__name__}: {error}"
        return InputError(line) if isinstance(error, OSError | MemoryError) else RuntimeError(line)

    def _raise(self, own: BaseException | None, sent: BaseException | None) -> None:
        """Raises what a rank has met, here as it was and elsewhere as it was sent."""
        self._now.agreed = own or sent
        if self._now.agreed is not None:
            raise self._now.agreed

    def mean(self, value: Tensor) -> Tensor:
        """The mean over ranks of a value that each has."""
        if self.size == 1:
            return value
        value = value.clone()
        distributed.all_reduce(value)
        return value / self.size

    def gather(self, rows: Tensor) -> Tensor:
        """The rows of all ranks (n, ...), in their order; ranks may have more or fewer."""
        if self.size == 1:
            return rows
        counts = [torch.zeros((), dtype=torch.int64, device=rows.device) for _ in range(self.size)]
        distributed.all_gather(counts, torch.tensor(len(rows), device=rows.device))
        numbers = [int(count) for count in counts]
        filled = rows.new_zeros((max(numbers), *rows.shape[1:]))
        filled[: len(rows)] = rows
        found = [torch.empty_like(filled) for _ in numbers]
        distributed.all_gather(found, filled)
        return torch.cat([part[:number] for part, number in zip(found, numbers, strict=True)])

    @torch.no_grad()
    def copy_buffers(self, module: nn.Module) -> None:
        """Gives a module the leader's buffers."""
        if self.size > 1:
            for buffer in module.buffers():
                distributed.broadcast(buffer, src=0)

    @torch.no_grad()
    def copy_state(self, module: nn.Module) -> None:
        """Gives a module the leader's weights and buffers."""
        if self.size > 1:
            for value in (*module.parameters(), *module.buffers()):
                distributed.broadcast(value, src=0)

    def share(self, loss: nn.Module) -> nn.Module:
        """A module whose gradients are averaged over the ranks in the backward pass.

        Arguments:
            loss: The module, with those parameters free that are trained.
        """
        if self.size == 1:
            return loss
        # A loss may leave parameters out, always the same ones: its structure is fixed.
        return nn.parallel.DistributedDataParallel(loss, static_graph=True)

    def look(self, step: int) -> None:
        """Raises `KeyboardInterrupt` on all ranks once any was interrupted.

        Arguments:
            step: Number of the step of a pass; ranks are asked every few steps.
        """
        if self.size == 1 or step % _STEPS_BETWEEN_LOOKS:
            return
        asked = torch.tensor(int(self._now.asked))
        distributed.all_reduce(asked, group=self._now.control)
        if asked:
            raise KeyboardInterrupt

    @contextmanager
    def summing(self) -> Iterator[None]:
        """Lets `sum_over_ranks` sum over these ranks, and over no others of the process."""
        token = _SUMS.set(self.size > 1)
        try:
            yield
        finally:
            _SUMS.reset(token)

    @contextmanager
    def postponing_interrupts(self) -> Iterator[None]:
        """Lets Ctrl-C and SIGTERM wait until all ranks can stop together."""
        ours = self._now
        if self.size == 1 or ours.waits or current_thread() is not main_thread():
            yield
            return

        def note(number: int, frame: FrameType | None) -> None:
            ours.asked = True

        ours.waits, ours.asked = True, False
        before = {each: signal.signal(each, note) for each in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        except BaseException as error:
            together = isinstance(error, InputError | KeyboardInterrupt)
            ours.apart = not together and error is not ours.agreed
            raise
        finally:
            late, ours.waits, ours.asked = ours.asked, False, False
            for each, handler in before.items():
                signal.signal(each, handler)
        if late:  # after the last step that all ranks made together
            raise KeyboardInterrupt


ALONE = Ranks()
"""A lone process."""


class _Sum(torch.autograd.Function):
    """A sum over all processes; so is its gradient, since every process's loss depends on it."""

    @staticmethod
    def forward(ctx: Any, value: Tensor) -> Tensor:  # noqa: ANN401
        total = value.clone(memory_format=torch.contiguous_format)
        distributed.all_reduce(total)
        return total

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:  # noqa: ANN401
        return _Sum.apply(gradients[0])


def sum_over_ranks(value: Tensor) -> Tensor:
    """The sum of a statistic over all processes that share the batch, with its gradient.

    A loss of such sums is the same on every rank, and the mean of the ranks' gradients, which is
    what is descended, is that of the loss of the whole batch. Every rank must call this; a lone
    process has the value already.
    """
    if not (_SUMS.get() and distributed.is_available() and distributed.is_initialized()):
        return value
    return _Sum.apply(value)


def count_ranks() -> int:
    """How many processes torchrun has started; 1 without it."""
    return int(os.environ.get("WORLD_SIZE", "1"))


@contextmanager
def join(device: str = "auto") -> Iterator[Ranks]:
    """Joins the processes that torchrun has started; without torchrun a process stays alone.

    GPUs are joined by NCCL and CPUs by gloo. Each process takes the GPU of its local number, which
    "cuda" then stands for. Only the leader says anything.

    Arguments:
        device: Where to train, as for `fit`; no GPU is taken for "cpu".
    """
    if count_ranks() == 1:
        yield ALONE
        return
    gpus = torch.cuda.is_available() and not device.startswith("cpu")
    distributed.init_process_group("nccl" if gpus else "gloo", timeout=_PATIENCE)
    # A group of its own, beside that of the tensors: DistributedDataParallel never lets go of a
    # group, whose threads then run on, and one that works while Python ends aborts the process.
    now = _Agreement(control=distributed.new_group(backend="gloo", timeout=_PATIENCE))
    local_size = int(os.environ.get("LOCAL_WORLD_SIZE", "1"))
    ranks = Ranks(distributed.get_rank(), distributed.get_world_size(), local_size, now)
    try:
        ranks.agree(lambda: _take_gpu(device) if gpus else None)
        if ranks.leads:
            yield ranks
        else:
            with quiet():
                yield ranks
    except (InputError, KeyboardInterrupt, SystemExit):
        _leave(now)
        raise
    # After any other error the ranks are no longer at one, and to leave the group could hang.
    _leave(now)


def _leave(now: _Agreement) -> None:
    now.control = None
    distributed.destroy_process_group()


def _take_gpu(device: str) -> None:
    number, count = int(os.environ.get("LOCAL_RANK", "0")), torch.cuda.device_count()
    if ":" in device:
        raise InputError(
            f"`device` is {device!r}; with several ranks each takes a GPU of its own: give 'cuda'"
        )
    if number >= count:
        raise InputError(
            f"there are {count} GPUs on a machine with {number + 1} ranks or more: start as many "
            "ranks as GPUs, or give --device cpu"
        )
    torch.cuda.set_device(number)
