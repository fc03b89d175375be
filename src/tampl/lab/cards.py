"""The cards of models in files and folders, with the scores of evaluated runs."""

from dataclasses import replace
from pathlib import Path

from ..errors import InputError
from ..models import Card, load_card
from ..models.ensemble import MEMBER_FILES
from .runs import Run

__all__ = ["read_cards"]


def read_cards(path: str | Path) -> list[Card]:
    """The card of a model, or those of an ensemble.

    Arguments:
        path: The file of a model, the folder of a run, or the folder of an ensemble. A run's card
            is that of its best model; it has the scores of the run's evaluation, if there is one.
    """
    path = Path(path)
    if not path.is_dir():
        return [load_card(path)]
    members = sorted(path.glob(MEMBER_FILES))
    return [load_card(file) for file in members] if members else [_read_card_of(Run.open(path))]


def _read_card_of(run: Run) -> Card:
    card = load_card(run.best_file)
    if not run.evaluation_file.is_file():
        return card
    try:
        record = run.read_record()
    except InputError:  # of another model than the present one, or damaged: scores of neither
        return card
    calibration = None if record.trust is None else record.trust.calibration
    coverage = (
        {}
        if calibration is None
        else {f"{level:g}": calibration.mean_coverage(level) for level in calibration.levels}
    )
    return replace(
        card, origin=card.origin.scored(record.scores, crps=record.crps, coverage=coverage)
    )
