"""Many runs under one budget: methods compared over seeds, one setting varied, the demo.

`compare` and `sweep` plan runs, a `Campaign` makes what is missing of them with given `Resources`,
and tables and pages show what is done. Stopped at any time, each goes on from what was saved.
"""

from .axis import Axis, parse_setting
from .campaign import Campaign
from .comparisons import Compared, compare
from .demo import Demo, run_demo
from .plan import Outcome, RunPlan
from .resources import Resources
from .sweeps import Swept, sweep

__all__ = [
    "Axis",
    "Campaign",
    "Compared",
    "Demo",
    "Outcome",
    "Resources",
    "RunPlan",
    "Swept",
    "compare",
    "parse_setting",
    "run_demo",
    "sweep",
]
