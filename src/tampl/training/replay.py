"""Steps that cost one launch: functions of tensors, recorded once and replayed on a GPU.

A training step of a small network is a few hundred short kernels, and a GPU waits for the host to
launch them one by one. A CUDA graph launches them all at once. What is recorded is the function
itself with whatever it changes in place (weights, moments, averages), so a replay is a step like
any other; on a CPU the function is simply called.

Where several ranks train, nothing is recorded: a step holds their communication, and the threads
that watch over it may not ask the GPU anything while a graph is recorded.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

__all__ = ["Replay"]

WARM_UP = 3
"""Plain calls before a recording, in which libraries choose their kernels and claim memory."""


Function = Callable[..., tuple[Tensor, ...]]


Shapes = tuple[torch.Size, ...]


class Replay:
    """A function of tensors that is recorded for each combination of shapes it is called with.

    What it returns is overwritten by the next call. It must read nothing but its arguments and
    tensors that stay where they are, and must not wait for the device.

    Arguments:
        function: Takes tensors and returns tensors.
        device: Where they are.
        records: Whether to record at all; nothing is recorded on a CPU.
    """

    def __init__(self, function: Function, device: torch.device, *, records: bool = True) -> None:
        self.function = function
        self.records = records and device.type == "cuda"
        self._calls: Counter[Shapes] = Counter()
        self._recordings: dict[Shapes, _Recording] = {}

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        if not self.records:
            return self.function(*inputs)
        shapes = tuple(tensor.shape for tensor in inputs)
        self._calls[shapes] += 1
        if self._calls[shapes] <= WARM_UP:
            return _call_on_side_stream(self.function, inputs)
        if shapes not in self._recordings:
            self._recordings[shapes] = _Recording.make(self.function, inputs)
        return self._recordings[shapes].replay(inputs)


@dataclass(frozen=True)
class _Recording:
    """A graph with the tensors it reads and those it leaves its results in."""

    graph: torch.cuda.CUDAGraph
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]

    @classmethod
    def make(cls, function: Function, inputs: tuple[Tensor, ...]) -> "_Recording":
        held = tuple(tensor.clone() for tensor in inputs)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            outputs = function(*held)
        return cls(graph, held, outputs)

    def replay(self, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        for held, tensor in zip(self.inputs, inputs, strict=True):
            held.copy_(tensor)
        self.graph.replay()
        return self.outputs


def _call_on_side_stream(function: Function, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    """Calls a function on a stream of its own, as recording does."""
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        outputs = function(*inputs)
    torch.cuda.current_stream().wait_stream(stream)
    return outputs
