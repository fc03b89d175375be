"""What is shown to people: figures, the table of scores, and one self-contained page.

`tampl.report.figures` loads matplotlib and is therefore imported by name, not from here.
"""

from .names import name_of
from .page import Report, render_page, write_page
from .tables import to_csv, to_html, to_latex, to_markdown

__all__ = [
    "Report",
    "name_of",
    "render_page",
    "to_csv",
    "to_html",
    "to_latex",
    "to_markdown",
    "write_page",
]
