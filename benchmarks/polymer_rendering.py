"""How fast are pictures of chains rendered, and are they right?

Renders chains of 300 beads on 100 x 500 pixels, the paper's, by the function that training uses,
and compares some of them with the formula in double precision.

    python benchmarks/polymer_rendering.py --device cuda --json
"""

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
import torch
from torch import Tensor

from tampl.lab.provenance import provenance
from tampl.microstates import Chain
from tampl.seeding import kernel_words
from tampl.systems.kernels.coils import sample_coils

KIND = Chain(beads=300, height=100, width=500)


def make_chains(count: int) -> Tensor:
    """Coils, every other one stretched along x, relative to their centres of mass."""
    words = np.stack([kernel_words(0, "rendering", i) for i in range(16)])
    beads = np.cumsum(np.pad(sample_coils(words, KIND.beads), ((0, 0), (1, 0), (0, 0))), axis=1)
    beads[::2] *= (5.0, 0.3, 0.3)
    beads -= beads.mean(axis=1, keepdims=True)
    return torch.from_numpy(np.resize(beads, (count, *KIND.shape)).astype(np.float32))


def exact(chains: Tensor) -> Tensor:
    """Pictures by the formula in double precision, every bead on every pixel."""
    x, y, z = chains.double().unbind(dim=-1)
    sigma = ((z - z.mean(dim=1, keepdim=True)).abs() / 5).clamp_min(1)
    columns, rows = torch.arange(-250.0, 250.0), torch.arange(-50.0, 50.0)[:, None]
    light = torch.zeros(len(chains), KIND.height, KIND.width, dtype=torch.float64)
    for i in range(KIND.beads):
        cx, cy, s = (v[:, i, None, None] for v in (x, y, sigma))
        squared = (columns - cx).square() + (rows - cy).square()
        light += torch.exp(-squared / (2 * s**2)) / (2 * torch.pi * s**2)
    return (255 * light / light.amax(dim=(1, 2), keepdim=True)).round()


def seconds_per_call(function: Callable[[], object], calls: int, device: str) -> float:
    def wait() -> None:
        if device.startswith("cuda"):
            torch.cuda.synchronize()

    for _ in range(3):
        function()
    wait()
    start = time.perf_counter()
    for _ in range(calls):
        function()
    wait()
    return (time.perf_counter() - start) / calls


def benchmark(batch: int, calls: int, device: str) -> dict[str, object]:
    chains = make_chains(batch)
    there = chains.to(device)

    def render() -> Tensor:
        return KIND.network_input(there, torch.float32)

    seconds = seconds_per_call(render, calls, device)
    some = slice(0, 16)
    levels = (255 * render()[some, 0].cpu().double()).round()
    off = (levels - exact(chains[some])).abs()
    return {
        "frames_per_second": batch / seconds,
        "largest_difference": off.max().item(),
        "pixels_that_differ": (off > 0).double().mean().item(),
        "batch": batch,
        "provenance": provenance(device),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--batch", type=int, default=256, help="chains rendered at once")
    parser.add_argument("--calls", type=int, default=20, help="batches timed")
    parser.add_argument("--json", action="store_true", help="print the record as JSON")
    options = parser.parse_args()
    record = benchmark(options.batch, options.calls, options.device)
    if options.json:
        print(json.dumps(record))
    else:
        print(f"{record['frames_per_second']:.0f} frames a second")
        print(f"levels off by {record['largest_difference']:.0f} at most")


if __name__ == "__main__":
    main()
