"""The other systems in the size of a laptop: comparisons with one seed on two cores."""

from collections.abc import Callable

from .records import Records, Section
from .tables import listed, machine, scores_table

TITLES = {"mixing-mini": "Binary mixing", "polymer-mini": "Polymer extension"}
"""Recipes, in the order of the page."""


def record_of(recipe: str) -> str:
    """The record of a recipe's comparison; its runs are kept in a folder of the recipe's name."""
    return f"compare-{recipe}-cpu.json"


def write_comparison(recipe: str) -> Callable[[Records], str]:
    """What makes the section of a recipe."""

    def write(records: Records) -> str:
        found = records.load(record_of(recipe))
        return f"""\
## {TITLES[recipe]} on a laptop (`recipes/{recipe}.toml`)

Training seed {listed(found["seeds"])}, {len(found["methods"])} methods, \
{found["seconds"] / 60:.0f} minutes on {found["provenance"]["cores"]} cores \
({machine(found)}), simulation and evaluation included, at commit \
{found["provenance"]["commit"]}. `results/{record_of(recipe)}`, \
`results/{recipe}/`.

{scores_table(found)}

![One simulated trajectory, and the observables as simulated and as each method forecasts \
them](images/{recipe}-comparison.png)

One test microstate, bands of one standard deviation.
"""

    return write


SECTIONS = tuple(
    Section(write_comparison(recipe), (record_of(recipe), recipe)) for recipe in TITLES
)
