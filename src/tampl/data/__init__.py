"""Trajectories on disk: made from a system, stored in checked shards, read for training."""

from .check import CheckReport, check_store
from .dataset import Normalization
from .generate import generate, write_miniature
from .manifest import DataPlan, Manifest, Shard, Split
from .shards import read_shard
from .store import References, Store, Trajectories

__all__ = [
    "CheckReport",
    "DataPlan",
    "Manifest",
    "Normalization",
    "References",
    "Shard",
    "Split",
    "Store",
    "Trajectories",
    "check_store",
    "generate",
    "read_shard",
    "write_miniature",
]
