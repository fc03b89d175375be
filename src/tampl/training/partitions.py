"""Partitions of the training set, which ranks hold.

The trajectories are cut into P partitions that follow each other and differ by one trajectory in
size at most. P is a setting of the recipe (`TrainingSpec.partitions`) and belongs to the training:
every batch has as many windows of each partition, which come in an order and with noise from the
partition's own streams. Rank r of N holds the partitions r P / N to (r + 1) P / N - 1. How many
ranks there are therefore changes nothing but the rounding of sums, and a training may be continued
by more or fewer of them.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from ..errors import InputError
from .ranks import Ranks

__all__ = ["Partitions"]


@dataclass(frozen=True)
class Partitions:
    """The trajectories of a training set in partitions, some of which are here.

    Attributes:
        cuts: The first trajectory of each partition, and the number of all: P + 1 numbers.
        own: The partitions that are here.
    """

    cuts: tuple[int, ...]
    own: range

    @classmethod
    def cut(cls, trajectories: int, count: int, ranks: Ranks) -> "Partitions":
        """Cuts a training set.

        Arguments:
            trajectories: How many there are.
            count: How many partitions to make.
            ranks: Among which the partitions are divided.
        """
        if count % ranks.size:
            raise InputError(
                f"`training.partitions` is {count} and {ranks.size} ranks train: set it to a "
                "multiple of the number of ranks"
            )
        if count > trajectories:
            raise InputError(
                f"`training.partitions` is {count}; the training set has {trajectories} "
                "trajectories, and a partition needs one at least"
            )
        cuts = tuple(trajectories * number // count for number in range(count + 1))
        each = count // ranks.size
        return cls(cuts, range(each * ranks.rank, each * (ranks.rank + 1)))

    @property
    def count(self) -> int:
        """How many partitions there are, here and on other ranks."""
        return len(self.cuts) - 1

    @property
    def rows(self) -> slice:
        """The trajectories that are here."""
        return slice(self.cuts[self.own.start], self.cuts[self.own.stop])

    @property
    def smallest(self) -> int:
        """Trajectories of the smallest partition."""
        return min(end - start for start, end in zip(self.cuts, self.cuts[1:], strict=False))

    def here(self, partition: int) -> slice:
        """A partition's trajectories among those that are here."""
        first = self.cuts[self.own.start]
        return slice(self.cuts[partition] - first, self.cuts[partition + 1] - first)

    def address(self, partition: int) -> tuple[str | int, ...]:
        """What a stream of a partition is named beside all else.

        An undivided training has the streams of earlier versions.
        """
        return () if self.count == 1 else ("partition", partition)

    def __iter__(self) -> Iterator[int]:
        return iter(self.own)
