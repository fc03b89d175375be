"""The paper's controlled experiments, each a record of curves, endpoints and certificates.

All seeds of an experiment run as one batch. `summary` gives the numbers as plain data; the figures
are drawn by `tampl linear`.
"""

from ..selection import Illustration, run_selection
from .cases import METHODS, Curves, Descent, descend, least_squares_decoder, measure
from .controlled import (
    COLLAPSE_SEEDS,
    COLLAPSE_STEP,
    LOCAL_SEEDS,
    ROUNDS,
    UPDATES,
    Collapse,
    LocalTest,
    Mechanism,
    WrongSubspace,
    certify_endpoints,
    fit_factor,
    project_to_orbit,
    run_case1,
    run_case2,
    run_collapse,
    run_local,
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
