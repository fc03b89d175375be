"""What a campaign is made with: what can never do is refused at once, and when time is up."""

import time

import pytest

from tampl.errors import InputError
from tampl.lab.campaign import Resources


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"budget_s": -1.0}, "`budget_s` is -1.0"),
        ({"budget_s": float("nan")}, "`budget_s` is nan"),
        ({"side_by_side": 0}, "`side_by_side` is 0"),
    ],
)
def test_what_can_never_do_is_refused(bad, words):
    with pytest.raises(InputError, match=words):
        Resources(**bad)


def test_the_deadline_is_the_budget_from_now(monkeypatch):
    monkeypatch.setattr(time, "monotonic", lambda: 5.0)
    assert Resources(budget_s=2.5).deadline() == 7.5
    assert Resources().deadline() is None
