"""The records of a folder, and parts of a page that are made of them."""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from tampl.errors import InputError
from tampl.evaluate.comparison import Comparison
from tampl.pipeline import read_results
from tampl.report.archive import load_runs
from tampl.report.runs import RunRecord

Record = Mapping[str, Any]

PENDING = frozenset(
    {
        "sirs",
        "plan.json",
        "sweep-sirs-jld.json",
        "sweep-sirs-latent_dim.json",
        "forecast_cost-h200.json",
        "forecast_cost-cpu.json",
    }
)
"""Records still to be measured: what needs them is left out until then. All others must exist."""


@dataclass(frozen=True)
class Records:
    """A folder of records: JSON files, and folders that `tampl record` filled."""

    folder: Path

    def has(self, name: str) -> bool:
        """Whether a record exists."""
        return (self.folder / name).exists()

    def load(self, name: str) -> Any:  # noqa: ANN401
        """A record that is one file."""
        return json.loads((self.folder / name).read_text())

    def runs(self, name: str) -> list[RunRecord]:
        """The kept runs of a recipe."""
        return load_runs(self.folder / name)

    @cached_property
    def sirs_runs(self) -> list[RunRecord]:
        """The kept runs of `recipes/sirs.toml`."""
        return self.runs("sirs")

    @cached_property
    def sirs(self) -> Comparison:
        """The comparison of these runs."""
        return read_results(self.folder)["sirs"]


@dataclass(frozen=True)
class Section:
    """A part of a page.

    Attributes:
        write: Makes its text.
        needs: The records it is made of.
        until: It gives way to what is made of this record.
    """

    write: Callable[[Records], str]
    needs: tuple[str, ...]
    until: str | None = None

    def is_shown(self, records: Records) -> bool:
        """Whether its records exist; refuses to leave out what is not pending."""
        missing = {name for name in self.needs if not records.has(name)}
        if missing - PENDING:
            raise InputError(f"{records.folder} lacks {', '.join(sorted(missing - PENDING))}")
        return not missing and (self.until is None or not records.has(self.until))


def join(sections: Iterable[Section], records: Records) -> str:
    """The sections that are shown, an empty line between them."""
    texts = [section.write(records) for section in sections if section.is_shown(records)]
    return "\n".join(f"{text.rstrip()}\n" for text in texts)
