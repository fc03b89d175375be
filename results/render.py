"""Makes what README.md and docs/results.md say of the records in this folder, and figures of docs.

python results/render.py                # writes the blocks between the marks and docs/images
python results/render.py --check        # exit code 1 if a page says something else
python results/render.py --root FOLDER  # another tree with README.md, docs/ and results/
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from pages import (
    claims,
    column,
    laptops,
    laws,
    own_data,
    ranking,
    readme,
    runaway,
    scaling,
    sirs_studies,
    small_lattice,
    trials,
    trust,
)
from pages.experiments import EXPERIMENTS, MIXING, SIRS
from pages.records import Records, Section, join

MARKS = ("<!-- results:begin -->\n", "<!-- results:end -->")
PAGES: Mapping[str, Sequence[Section]] = {
    "README.md": readme.SECTIONS,
    "docs/results.md": (
        *column.sections_of(SIRS),
        *claims.sections_of(SIRS),
        *sirs_studies.STUDIES,
        *trials.PLUS,
        *trials.EFFORT,
        *runaway.SECTIONS,
        *column.runs_of(SIRS),
        *sirs_studies.FORMER,
        *small_lattice.SECTIONS,
        *ranking.SECTIONS,
        *trials.LAGS,
        *column.sections_of(MIXING),
        *claims.sections_of(MIXING),
        *trials.MIXING,
        *column.runs_of(MIXING),
        *laptops.MIXING,
        *trials.MIXING_ON_LAPTOPS,
        *laptops.POLYMER,
        *trials.POLYMER,
        *trust.SECTIONS,
        *laws.SECTIONS,
        *own_data.SECTIONS,
        *scaling.SECTIONS,
    ),
}


def rendered(root: Path, page: str) -> str:
    """A page as the records of a tree make it."""
    before, rest = (root / page).read_text().split(MARKS[0])
    _, after = rest.split(MARKS[1])
    block = join(PAGES[page], Records(root / "results"))
    return f"{before}{MARKS[0]}{block}{MARKS[1]}{after}"


def write(root: Path) -> None:
    """Writes the pages of a tree, and their figures."""
    for page in PAGES:
        (root / page).write_text(rendered(root, page))
    from pages.figures import draw_column, draw_comparison, draw_predictions
    from pages.polymer_regimes import draw_regimes

    records, images = Records(root / "results"), root / "docs" / "images"
    for experiment in EXPERIMENTS:
        draw_column(records, experiment.recipe, images)
    draw_predictions(records.runs("sirs-mini"), images / "sirs-mini-predictions.png")
    draw_regimes(records, images / "polymer-regimes.png")
    for recipe in ("sirs-mini", *laptops.TITLES):
        draw_comparison(records.runs(recipe), images / f"{recipe}-comparison.png")


def main() -> int:
    """Writes the pages, or compares them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--root", type=Path, default=Path(__file__).parents[1])
    arguments = parser.parse_args()
    if not arguments.check:
        write(arguments.root)
        return 0
    root = arguments.root
    other = [page for page in PAGES if (root / page).read_text() != rendered(root, page)]
    for page in other:
        print(f"{page} says something else than results/; run `make results`")
    return int(bool(other))


if __name__ == "__main__":
    sys.exit(main())
