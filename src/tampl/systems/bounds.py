"""Bounds on the parameters of systems.

A number can be finite and still make no sense: a rate of 1e308 overflows in a kernel, a time step
of 1e-300 never reaches the next frame. Parameters have bounds far outside of what is of use, and
what a trajectory costs is bounded too, so that a mistyped exponent is one line and neither a crash
nor a run without end.
"""

from typing import Annotated

from pydantic import Field

from ..errors import InputError

__all__ = ["MOST_FRAMES", "MOST_WORK", "Positive", "Rate", "refuse_work"]

LARGEST, SMALLEST = 1e6, 1e-9

MOST_FRAMES = 10**7

MOST_WORK = 10**12
"""Events of a site, or steps of a particle, in one trajectory: hours on one core."""

Positive = Annotated[float, Field(ge=SMALLEST, le=LARGEST)]
"""A length, an energy or a time in the natural units of a system."""

Rate = Annotated[float, Field(ge=0, le=LARGEST)]


def refuse_work(work: float, of: str, remedy: str) -> None:
    """Refuses parameters with which a trajectory would take more than `MOST_WORK`.

    Arguments:
        work: What it would take.
        of: What that is a number of, such as "steps of a particle".
        remedy: What to change.
    """
    if work > MOST_WORK:
        raise InputError(
            f"a trajectory would take about {work:.1g} {of}, and at most {MOST_WORK:.0e} are "
            f"done: {remedy}"
        )
