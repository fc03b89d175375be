"""A store small enough for a test, in the real format."""

from pathlib import Path

from ..systems.base import System
from .generate import generate
from .metadata import DataPlan
from .store import Store

__all__ = ["write_miniature"]


def write_miniature(system: System, out: str | Path) -> Store:
    """Writes a store of a few trajectories, in several shards; give it a small system."""
    plan = DataPlan(seed=0, train=4, valid=2, test=2, members=3, shard_size=2)
    return generate(system, plan, out, workers=1, progress=False)
