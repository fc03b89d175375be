"""What a store says about itself: the plan it was made from and its manifest.

A manifest names the system, the seed, the kernel, the splits and every shard. Its *identity* is
the SHA-256 of all of that in canonical JSON, without the version of the code; each shard carries
it, so that a shard of other data is never read as one's own. On disk: `docs/data_format.md`.
"""

import hashlib
import json
from functools import cached_property
from math import prod
from typing import Any, Literal, Self

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationInfo,
    field_validator,
    model_serializer,
    model_validator,
)

from ..description import Description, without_knowledge
from ..errors import InputError
from ..frozen import Frozen

__all__ = [
    "FORMAT",
    "FORMAT_VERSION",
    "DataPlan",
    "Manifest",
    "Shard",
    "Split",
]

FORMAT: Literal["tampl-store"] = "tampl-store"


FORMAT_VERSION: Literal[1] = 1


# One shard per worker is in memory, and one shard is what an interruption loses.
_SHARD_BYTES = 32 * 2**20


# Enough shards for every core of a large machine to have several of them.
_SHARDS_PER_SPLIT = 64


# Three terabytes of shards of the usual size; a longer list would itself fill the memory.
_MOST_SHARDS = 100_000


_MOST_FRAMES = 2**40


# HDF5 keeps the seed as a signed 64-bit integer.
_SEEDS = 2**63


class Shard(Frozen):
    """One file of a store: what belongs to `count` initial microstates of `split` from `start`."""

    # The pattern keeps a manifest from another hand inside its own folder.
    file: str = Field(pattern=r"^shards/[A-Za-z0-9_-]+\.h5$")
    split: str
    start: int = Field(ge=0)
    count: int = Field(ge=1)


class Split(Frozen):
    """How much a split holds: `runs` stored trajectories from each of `count` initial microstates.

    With `members`, it holds references instead: that many runs each, macrostates only. With
    `holes`, its shards say which frames exist.
    """

    count: int = Field(ge=1)
    members: int = Field(default=0, ge=0)
    runs: int = Field(default=1, ge=1)
    holes: bool = False

    @model_validator(mode="after")
    def _refuse_both(self) -> Self:
        if self.members and self.runs > 1:
            raise ValueError("a split of references has `members` and no `runs`")
        return self

    @model_serializer(mode="wrap")
    def _leave_out_defaults(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Stores from before there were several runs, or holes, keep their identity.
        kept = {"count", "members", *(["runs"] * (self.runs > 1)), *(["holes"] * self.holes)}
        return {key: value for key, value in dump(self).items() if key in kept}


class DataPlan(Frozen):
    """How much data to make: initial microstates per split, reference runs per test microstate.

    Arguments:
        seed: The seed of all streams.
        train: Initial microstates for training.
        valid: Initial microstates for validation.
        test: Initial microstates of the test split.
        members: Reference runs from each test microstate, macrostates stored.
        train_runs: Trajectories from each training microstate, microstates stored.
        valid_runs: Trajectories from each validation microstate, microstates stored.
        shard_size: Initial microstates per shard; by default a shard holds at most 32 MB of
            microstates.
    """

    seed: int = Field(default=0, ge=0, lt=_SEEDS)
    train: int
    valid: int
    test: int
    members: int
    train_runs: int = 1
    valid_runs: int = 1
    shard_size: int | None = None

    @field_validator("train", "valid", "test")
    @classmethod
    def _refuse_empty_split(cls, count: int, info: ValidationInfo) -> int:
        if count < 1:
            raise InputError(
                f"`{info.field_name}` is {count}: an empty split; "
                "give it at least 1 initial microstate"
            )
        return count

    @field_validator("test")
    @classmethod
    def _refuse_single(cls, count: int, info: ValidationInfo) -> int:
        # A comparison of futures needs two microstates.
        if count < 2:
            raise InputError(f"`{info.field_name}` is {count}; it must be at least 2")
        return count

    @field_validator("members", "train_runs", "valid_runs", "shard_size")
    @classmethod
    def _refuse_none_at_all(cls, count: int | None, info: ValidationInfo) -> int | None:
        if count is not None and count < 1:
            raise InputError(f"`{info.field_name}` is {count}; it must be at least 1")
        return count

    @property
    def splits(self) -> dict[str, Split]:
        """The splits by name."""
        return {
            "train": Split(count=self.train, runs=self.train_runs),
            "valid": Split(count=self.valid, runs=self.valid_runs),
            "test": Split(count=self.test, members=self.members),
        }

    def shards(self, description: Description) -> tuple[Shard, ...]:
        """Lays the splits out in files; depends on nothing but the plan and the description."""
        for name, split in self.splits.items():
            size = self._size(split, description)
            if split.count > size * _MOST_SHARDS:
                raise InputError(
                    f"`{name}` is {split.count}, which would be {-(-split.count // size):,} "
                    f"shards of {size} initial microstates; at most {_MOST_SHARDS:,} are written: "
                    "ask for fewer, or for a larger `shard_size`"
                )
        return tuple(
            shard
            for name, split in self.splits.items()
            for shard in _cut(name, split.count, self._size(split, description))
        )

    def _size(self, split: Split, description: Description) -> int:
        if self.shard_size is not None:
            return self.shard_size
        microstate = description.microstate
        frames = 1 if split.members else split.runs * description.frames
        each = frames * prod(microstate.shape) * microstate.dtype.itemsize
        spread = -(-split.count // _SHARDS_PER_SPLIT)
        return max(1, min(_SHARD_BYTES // max(1, each), spread))


class Manifest(Frozen):
    """The content of `manifest.json`."""

    format: Literal["tampl-store"] = FORMAT
    format_version: Literal[1] = FORMAT_VERSION
    description: Description
    seed: int = Field(ge=0, lt=_SEEDS)
    kernel: str
    code_version: str
    splits: dict[str, Split]
    shards: tuple[Shard, ...]

    @model_validator(mode="after")
    def _refuse_absurd_frames(self) -> Self:
        frames = self.description.frames
        if not 1 <= frames <= _MOST_FRAMES:
            raise ValueError(f"`description.frames` must be from 1 to {_MOST_FRAMES:,}")
        return self

    @model_validator(mode="after")
    def _refuse_gaps(self) -> Self:
        files = [shard.file for shard in self.shards]
        if len(set(files)) < len(files):
            raise ValueError("`shards` names a file twice")
        if unknown := {shard.split for shard in self.shards} - self.splits.keys():
            raise ValueError(f"`shards` are of splits that `splits` lacks: {sorted(unknown)}")
        for name, split in self.splits.items():
            if not _tiles(self.of_split(name), split.count):
                raise ValueError(f"`shards` do not cover 0 to {split.count - 1} of `{name}` once")
        return self

    @cached_property
    def identity(self) -> str:
        """SHA-256 of all that determines the data: everything but the version of the code."""
        text = json.dumps(self.identifying(), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()

    def identifying(self) -> dict[str, Any]:
        """What the identity is made of, as a JSON tree."""
        tree = self.model_dump(mode="json", exclude={"code_version"})
        return tree | {"description": without_knowledge(tree["description"])}

    def of_split(self, name: str) -> tuple[Shard, ...]:
        """The shards of one split, first microstate first."""
        return tuple(
            sorted(
                (shard for shard in self.shards if shard.split == name),
                key=lambda shard: shard.start,
            )
        )


def _cut(split: str, total: int, size: int) -> list[Shard]:
    return [
        Shard(
            file=f"shards/{split}-{start // size:05d}.h5",
            split=split,
            start=start,
            count=min(size, total - start),
        )
        for start in range(0, total, size)
    ]


def _tiles(shards: tuple[Shard, ...], total: int) -> bool:
    end = 0
    for shard in shards:
        if shard.start != end:
            return False
        end += shard.count
    return end == total
