"""Data sets: arrays in memory, and stores of checked shards on disk that they are read from."""

from .check import CheckReport, check_store
from .dataset import Dataset, Normalization, References, Statistics
from .generate import generate, write_miniature
from .manifest import DataPlan, Manifest, Shard, Split
from .shards import read_shard
from .store import Store

__all__ = [
    "CheckReport",
    "DataPlan",
    "Dataset",
    "Manifest",
    "Normalization",
    "References",
    "Shard",
    "Split",
    "Statistics",
    "Store",
    "check_store",
    "generate",
    "read_shard",
    "write_miniature",
]
