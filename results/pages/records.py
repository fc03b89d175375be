"""The records of a folder, and parts of a page that are made of them."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tampl.errors import InputError
from tampl.evaluation.comparison import Comparison
from tampl.lab.pipeline import read_results
from tampl.lab.runs import RunRecord, load_records

Record = Mapping[str, Any]

SEED = 42
"""The training seed of the runs that figures show."""


@dataclass(frozen=True)
class Records:
    """A folder of records: JSON files, and folders that `tampl record` filled."""

    folder: Path

    def load(self, name: str) -> Any:  # noqa: ANN401
        """A record that is one file."""
        return json.loads((self.folder / name).read_text())

    def runs(self, name: str) -> list[RunRecord]:
        """The kept runs of a recipe."""
        return self._kept[name]

    @cached_property
    def comparisons(self) -> dict[str, Comparison]:
        """The comparisons of kept runs, by recipe."""
        return {name: found.comparison for name, found in read_results(self.folder).items()}

    @cached_property
    def _kept(self) -> dict[str, list[RunRecord]]:
        folders = (path for path in self.folder.iterdir() if path.is_dir())
        return {path.name: load_records(path) for path in folders}


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        write: Makes its text.
        needs: The records it is made of.
        optional: Whether a page may do without it, as long as a record is still to be made.
    """

    write: Callable[[Records], str]
    needs: tuple[str, ...]
    optional: bool = False

    def text(self, records: Records) -> str:
        """What it says; refuses to say it without all its records, or says nothing if optional."""
        missing = [name for name in self.needs if not (records.folder / name).exists()]
        if missing and self.optional:
            return ""
        if missing:
            raise InputError(f"{records.folder} lacks {', '.join(missing)}")
        return self.write(records)


def join(sections: Iterable[Section], records: Records) -> str:
    """The sections, an empty line between them."""
    texts = [section.text(records).rstrip() for section in sections]
    return "\n".join(f"{text}\n" for text in texts if text)
