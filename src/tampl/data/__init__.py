"""Trajectories on disk: made from a system, stored in checked shards, read for training."""

from .check import CheckReport, check_store
from .generate import generate
from .metadata import DataPlan, Manifest, Shard, Split
from .miniature import write_miniature
from .normalization import Normalization
from .store import References, Store, Trajectories, read_shard

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
