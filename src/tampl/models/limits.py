"""Forecasts that respect what is known of the observables: limits, constants of motion, totals."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..description import Description

__all__ = ["respect_limits"]


def respect_limits(
    y: NDArray[np.float64], description: Description, start: NDArray[Any]
) -> NDArray[np.float64]:
    """Brings macrostates (..., H + 1, m) into the limits of their observables.

    Conserved observables keep their initial value, all are clipped to their limits, and what a
    total lacks or exceeds is shared among its observables in proportion to the room that each has.

    Arguments:
        y: Macrostates along trajectories, in physical units.
        description: What is known of the observables.
        start: Macrostates at t = 0, (..., m), for the conserved ones.
    """
    y = y.copy()
    low = np.array([-np.inf if o.lower is None else o.lower for o in description.observables])
    high = np.array([np.inf if o.upper is None else o.upper for o in description.observables])
    conserved = [j for j, o in enumerate(description.observables) if o.conserved]
    y[..., conserved] = start[..., None, conserved]
    np.clip(y, low, high, out=y)
    symbols = [observable.symbol for observable in description.observables]
    for total in description.totals:
        parts = [symbols.index(symbol) for symbol in total.symbols]
        free = [j for j in parts if j not in conserved]
        lack = total.value - y[..., parts].sum(axis=-1, keepdims=True)
        own = y[..., free]
        room = np.where(lack > 0, high[free] - own, own - low[free])
        room = np.where(np.isfinite(room), room, 1.0)
        whole = room.sum(axis=-1, keepdims=True)
        share = np.divide(room, whole, out=np.zeros_like(room), where=whole > 0)
        y[..., free] = np.clip(own + lack * share, low[free], high[free])
    return y
