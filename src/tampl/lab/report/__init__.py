"""Results for readers: figures, tables of scores, and one self-contained page.

`tampl.lab.report.figures` loads matplotlib and is therefore imported by name, not from here.
"""

from .grids import Grid, name_of
from .page import Report, render_page, write_page
from .tables import comparison_grid, difference_grid, score_grid

__all__ = [
    "Grid",
    "Report",
    "comparison_grid",
    "difference_grid",
    "name_of",
    "render_page",
    "score_grid",
    "write_page",
]
