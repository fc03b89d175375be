"""The paper's controlled experiments, each a record of curves, endpoints and certificates.

All seeds of an experiment run as one batch. `summary` gives the numbers as plain data; the figures
are in `tampl.report.figures.theory`.
"""

from .collapse import COLLAPSE_SEEDS, COLLAPSE_STEP, Collapse, run_collapse
from .descent import METHODS, Curves, Descent, descend, least_squares_decoder, measure
from .illustration import Illustration, run_selection
from .local import LOCAL_SEEDS, ROUNDS, LocalTest, fit_factor, run_local
from .mechanism import (
    UPDATES,
    Mechanism,
    WrongSubspace,
    certify_endpoints,
    project_to_orbit,
    run_case1,
    run_case2,
)

__all__ = [
    "COLLAPSE_SEEDS",
    "COLLAPSE_STEP",
    "LOCAL_SEEDS",
    "METHODS",
    "ROUNDS",
    "UPDATES",
    "Collapse",
    "Curves",
    "Descent",
    "Illustration",
    "LocalTest",
    "Mechanism",
    "WrongSubspace",
    "certify_endpoints",
    "descend",
    "fit_factor",
    "least_squares_decoder",
    "measure",
    "project_to_orbit",
    "run_case1",
    "run_case2",
    "run_collapse",
    "run_local",
    "run_selection",
]
