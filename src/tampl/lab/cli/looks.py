"""The verbs that look at what is there: advice on data, the card of a model."""

from pathlib import Path
from typing import Annotated

import typer

from ...files import strict_json
from .verbs import DeviceName, Json

__all__ = ["advise", "card"]


def advise(
    data: Annotated[Path, typer.Argument(help="Folder of a store.")],
    out: Annotated[
        Path | None, typer.Option(help="Folder for a page with pictures; none without.")
    ] = None,
    full: Annotated[
        bool, typer.Option("--full", help="Train briefly as well: some ten minutes.")
    ] = False,
    error: Annotated[
        float | None,
        typer.Option(
            help="With --full: the RMSE to reach, for which missing trajectories are counted; "
            "default: a tenth below that of the training."
        ),
    ] = None,
    budget_s: Annotated[
        float, typer.Option("--budget-s", min=0, help="With --full: seconds for trainings, about.")
    ] = 600.0,
    seed: Annotated[int, typer.Option(min=0, help="With --full: seed of the trainings.")] = 42,
    device: DeviceName = "auto",
    as_json: Json = False,
) -> None:
    """Says what to know of data before training; with --full, trains briefly to say more."""
    from ..advice import advise_store

    advice = advise_store(
        data, out, full=full, error=error, budget_s=budget_s, seed=seed, device=device
    )
    if as_json:
        print(strict_json(advice.as_dict()))
        return
    print(advice)
    if out is not None:
        print(f"page: {out / 'advice.html'}")


def card(
    model: Annotated[
        Path, typer.Argument(help="A model's file, the folder of a run, or that of an ensemble.")
    ],
    as_json: Json = False,
) -> None:
    """Prints the card of a model: data, training, scores, limits, citation."""
    from ..cards import read_cards

    cards = read_cards(model)
    if as_json:
        plain = [card.as_dict() for card in cards]
        print(strict_json(plain[0] if len(plain) == 1 else {"models": plain}))
    else:
        print("\n\n".join(card.markdown() for card in cards))
