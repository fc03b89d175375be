"""What is shown to people: figures, tables of scores, and one self-contained page.

`tampl.report.figures` loads matplotlib and is therefore imported by name, not from here.
"""

from .grids import Grid
from .names import name_of
from .page import Report, render_page, write_page
from .tables import ScoreTable, score_csv, score_grid

__all__ = [
    "Grid",
    "Report",
    "ScoreTable",
    "name_of",
    "render_page",
    "score_csv",
    "score_grid",
    "write_page",
]
