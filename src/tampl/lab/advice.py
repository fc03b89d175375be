"""Advice on a store: reads its training and validation sets and writes a page if asked for one."""

from pathlib import Path

from ..advice import Advice, advise
from ..data import Store
from ..errors import InputError
from ..models import resolve_device
from .provenance import provenance

__all__ = ["advise_store"]


def advise_store(
    data: str | Path,
    out: str | Path | None = None,
    *,
    full: bool = False,
    error: float | None = None,
    budget_s: float = 600.0,
    seed: int = 42,
    device: str = "auto",
) -> Advice:
    """Says what to know of a store before training on it.

    Arguments:
        data: The store.
        out: A folder for `advice.html`, `advice.json` and figures; none are written without.
        full: Whether to train as well.
        error: The RMSE that the number of missing trajectories is for.
        budget_s: Seconds that the trainings may take, about.
        seed: Governs the trainings.
        device: Where to train.
    """
    if out is not None and Path(out).exists() and not Path(out).is_dir():
        raise InputError(f"`out` is {out}, a file; give a folder for the page and its figures")
    store, device = Store.open(data), resolve_device(device)
    train = store.dataset("train")
    held = store.manifest.splits.get("valid")
    advice = advise(
        train,
        valid=store.dataset("valid") if full and held is not None else None,
        full=full,
        error=error,
        budget_s=budget_s,
        seed=seed,
        device=device,
    )
    if out is not None:
        from .report.advice import write_advice  # loads matplotlib

        write_advice(
            advice,
            Path(out),
            description=store.description,
            y=train.y,
            source=f"{store.description.system}, {store.path.resolve().name}",
            provenance={"data": store.manifest.identity, **provenance(device)},
        )
    return advice
