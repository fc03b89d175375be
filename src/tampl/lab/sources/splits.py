"""How trajectories become training, validation and test set.

    several trajectories    each goes to one split as a whole, at random or by the file it is in;
                            those that share an initial state stay together
    one, two or three       each is cut into blocks, and the blocks into splits by time, with a gap
                            between splits so that a block of one does not lead into the other

With `frames`, trajectories are cut into blocks in either case. A *segment* is a stretch of a
trajectory; a *group* are the segments that start from one initial state.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatch
from itertools import pairwise
from math import fsum

import numpy as np
from pydantic import Field, field_validator

from ...errors import InputError
from ...frozen import Frozen
from ...seeding import numpy_generator
from .tracks import Track

__all__ = ["SPLITS", "Division", "Segment", "SplitSpec", "divide"]

SPLITS = ("train", "valid", "test")

# A comparison of futures needs two test states.
_LEAST = {"train": 1, "valid": 1, "test": 2}
_FEWEST = sum(_LEAST.values())

_BLOCKS, _SHORTEST, _LONGEST = 50, 5, 101
"""How many blocks a long trajectory is cut into, and the frames of a block."""


class SplitSpec(Frozen):
    """How to cut and divide the trajectories.

    Attributes:
        fractions: Sizes of training, validation and test set as fractions of all initial states.
        seed: Of the random order.
        files: Patterns of the names of files by split, in place of fractions.
        frames: Frames of a block; by default trajectories stay whole where there are enough.
        gap: Frames left out between the splits of a trajectory that is cut; a block by default.
    """

    fractions: tuple[float, ...] = (0.8, 0.1, 0.1)
    seed: int = Field(0, ge=0, lt=2**63)
    files: Mapping[str, str] = Field(default_factory=dict)
    frames: int | None = Field(None, ge=2)
    gap: int | None = Field(None, ge=0)

    @field_validator("fractions")
    @classmethod
    def _refuse_other_sums(cls, fractions: tuple[float, ...]) -> tuple[float, ...]:
        text = ",".join(f"{part:g}" for part in fractions)
        if len(fractions) != len(SPLITS) or not min(fractions) > 0:
            raise InputError(
                f"the fractions {text} are not three positive ones, of the training, validation "
                "and test set: give `--split` such as 0.8,0.1,0.1"
            )
        if abs(fsum(fractions) - 1) > 1e-9:
            raise InputError(
                f"the fractions {text} add up to {fsum(fractions):g}, not 1: give `--split` such "
                "as 0.8,0.1,0.1"
            )
        return fractions


@dataclass(frozen=True)
class Segment:
    """A stretch of a track, in frames of the store: from `start`, before `stop`."""

    track: int
    start: int
    stop: int

    @property
    def frames(self) -> int:
        """Its length."""
        return self.stop - self.start


@dataclass(frozen=True)
class Division:
    """The groups of every split, and what to say about how they were made."""

    splits: Mapping[str, Sequence[Sequence[Segment]]]
    remarks: tuple[str, ...]

    def leave_out(self, useless: Callable[[Segment], bool]) -> "Division":
        """The division without some segments; refused where a split has too few others."""
        splits = {
            name: [kept for group in groups if (kept := [s for s in group if not useless(s)])]
            for name, groups in self.splits.items()
        }
        counts = [
            sum(len(group) for groups in each.values() for group in groups)
            for each in (self.splits, splits)
        ]
        if counts[0] == counts[1]:
            return self
        for name, groups in splits.items():
            if len(groups) < _LEAST[name]:
                raise InputError(
                    f"frames are missing such that the {name} split has {len(groups)} blocks with "
                    f"two frames, and it needs {_LEAST[name]} at least: give other `--frames`"
                )
        remark = f"blocks left out because their frames are missing: {counts[0] - counts[1]}"
        return Division(splits, (*self.remarks, remark))


def divide(
    tracks: Sequence[Track],
    lengths: Sequence[int],
    groups: Sequence[Sequence[int]],
    spec: SplitSpec,
) -> Division:
    """Divides tracks into splits.

    Arguments:
        tracks: The trajectories.
        lengths: Frames of each, as the store will have them.
        groups: Numbers of the tracks that share an initial state, for each of those.
        spec: What to do.
    """
    if not spec.files and len(groups) < _FEWEST:
        return _divide_in_time(lengths, spec)
    parts = (
        _divide_by_file(tracks, groups, spec) if spec.files else _divide_at_random(groups, spec)
    )
    splits = {name: _cut_blocks(part, lengths, spec.frames) for name, part in parts.items()}
    for name, part in splits.items():
        if len(part) < _LEAST[name]:
            raise InputError(
                f"the {name} split has {len(part)} initial states, and needs {_LEAST[name]} at "
                "least: give it more files, or shorter blocks by `--frames`"
            )
    return Division(splits, ())


def _divide_at_random(
    groups: Sequence[Sequence[int]], spec: SplitSpec
) -> dict[str, list[Sequence[int]]]:
    """As `Dataset.split` divides them, but for the smallest numbers."""
    order = numpy_generator(spec.seed, "split").permutation(len(groups))
    cuts = np.cumsum([0, *_share(len(groups), spec.fractions)])
    return {
        name: [groups[place] for place in sorted(order[first:last])]
        for name, (first, last) in zip(SPLITS, pairwise(cuts), strict=True)
    }


def _share(count: int, fractions: Sequence[float]) -> list[int]:
    """How many of `count` each split gets; none gets fewer than it needs."""
    cuts = np.rint(count * np.cumsum([0.0, *fractions])).astype(int)
    shares = dict(zip(SPLITS, np.diff(cuts).tolist(), strict=True))
    for name, least in _LEAST.items():
        while shares[name] < least:
            richest = max(shares, key=lambda other: shares[other] - _LEAST[other])
            shares[richest] -= 1
            shares[name] += 1
    return list(shares.values())


def _divide_by_file(
    tracks: Sequence[Track], groups: Sequence[Sequence[int]], spec: SplitSpec
) -> dict[str, list[Sequence[int]]]:
    parts: dict[str, list[Sequence[int]]] = {name: [] for name in SPLITS}
    for group in groups:
        named = {_find_split(tracks[k], spec.files): tracks[k].file for k in group}
        if len(named) > 1:
            (one, first), (other, second) = list(named.items())[:2]
            raise InputError(
                f"{first} ({one}) and {second} ({other}) start from the same initial state: give "
                "such files to one split"
            )
        parts[next(iter(named))].append(group)
    return parts


def _find_split(track: Track, files: Mapping[str, str]) -> str:
    found = [
        name
        for name, pattern in files.items()
        if fnmatch(str(track.file), pattern) or fnmatch(track.file.name, pattern)
    ]
    if len(found) != 1:
        options = ", ".join(f"--{name} {pattern!r}" for name, pattern in files.items())
        raise InputError(
            f"{track.file} matches {' and '.join(f'`--{name}`' for name in found) or 'none'} of "
            f"{options}; every file must match one"
        )
    return found[0]


def _cut_blocks(
    groups: Sequence[Sequence[int]], lengths: Sequence[int], frames: int | None
) -> list[list[Segment]]:
    """Segments by initial state: whole tracks, or each block by itself."""
    if frames is None:
        return [[Segment(k, 0, lengths[k]) for k in group] for group in groups]
    return [
        [Segment(k, start, start + frames)]
        for group in groups
        for k in group
        for start in range(0, lengths[k] - frames + 1, frames)
    ]


def _divide_in_time(lengths: Sequence[int], spec: SplitSpec) -> Division:
    """Blocks of each track, the first to training and the last to the test."""
    total = sum(lengths)
    frames = spec.frames or min(_LONGEST, max(_SHORTEST, total // _BLOCKS))
    gap = frames if spec.gap is None else spec.gap
    splits: dict[str, list[list[Segment]]] = {name: [] for name in SPLITS}
    for track, length in enumerate(lengths):
        blocks = max(0, (length - 2 * gap) // frames)
        if blocks < _FEWEST:
            raise InputError(
                f"there are {len(lengths)} trajectories, which are cut into blocks of {frames} "
                f"frames, and number {track} of {length} frames is too short for {_FEWEST} blocks "
                f"and two gaps of {gap}: give longer ones, more than {_FEWEST - 1}, or smaller "
                "`--frames` and `--gap`"
            )
        start = 0
        for name, count in zip(SPLITS, _share(blocks, spec.fractions), strict=True):
            for _ in range(count):
                splits[name].append([Segment(track, start, start + frames)])
                start += frames
            start += gap
    what = "the trajectory is" if len(lengths) == 1 else f"the {len(lengths)} trajectories are"
    remark = (
        f"{what} cut into blocks of {frames} frames, {len(splits['train'])} to train, "
        f"{len(splits['valid'])} to validate and {len(splits['test'])} to test, in the order of "
        f"time with gaps of {gap} frames; scores on blocks of one trajectory are those of times "
        "like the ones it was trained on"
    )
    return Division(splits, (remark,))
