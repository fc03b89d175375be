"""Forecasts that respect what is known of the observables: limits, constants of motion, totals."""

import numpy as np
from numpy.typing import NDArray

from ..description import Description

__all__ = ["respect_limits"]


def respect_limits(
    y: NDArray[np.float64],
    description: Description,
    *,
    initial: NDArray[np.float64] | None = None,
    observed: NDArray[np.float64] | None = None,
) -> NDArray[np.float64]:
    """Brings macrostates into the limits of their observables.

    Conserved observables keep their initial value, all are clipped to their limits, and what a
    total lacks or exceeds is shared: by those of its observables that have no limit on that side,
    equally, or else by all in proportion to the room that each has. Macrostates that were observed
    at t = 0 stay as they were observed.

    Arguments:
        y: Macrostates of G initial states and N members at some times, (G, N, K, m), in physical
            units.
        description: What is known of the observables.
        initial: Macrostates at t = 0 as they were returned, (G, N, m); None where t = 0 is the
            first of the times.
        observed: The observed macrostates at t = 0, (G, m), or None.
    """
    y = y.copy()
    if initial is None and observed is not None:
        y[:, :, 0] = observed[:, None]
    low = np.array([-np.inf if o.lower is None else o.lower for o in description.observables])
    high = np.array([np.inf if o.upper is None else o.upper for o in description.observables])
    conserved = [j for j, o in enumerate(description.observables) if o.conserved]
    symbols = [observable.symbol for observable in description.observables]
    bounded = np.clip(y, low, high)
    first = bounded[:, :, 0] if initial is None else initial
    bounded[..., conserved] = first[:, :, None, conserved]
    for total in description.totals:
        parts = [symbols.index(symbol) for symbol in total.symbols]
        free = [j for j in parts if j not in conserved]
        lack = total.value - bounded[..., parts].sum(axis=-1, keepdims=True)
        own = bounded[..., free]
        room = np.where(lack > 0, high[free] - own, own - low[free])
        endless = np.isinf(room)
        room = np.where(endless.any(axis=-1, keepdims=True), endless.astype(np.float64), room)
        whole = room.sum(axis=-1, keepdims=True)
        share = np.divide(room, whole, out=np.zeros_like(room), where=whole > 0)
        bounded[..., free] = np.clip(own + lack * share, low[free], high[free])
    if observed is not None:
        if initial is None:
            bounded[:, :, 0] = y[:, :, 0]
        bounded[..., conserved] = observed[:, None, None, conserved]
    return bounded
