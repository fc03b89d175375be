"""The page of observables has the table that the registry makes."""

import sys
from pathlib import Path

from tampl.observables import OBSERVABLES

DOCS = Path(__file__).parents[2] / "docs"


def test_the_table_is_that_of_the_registry(monkeypatch):
    monkeypatch.syspath_prepend(DOCS)
    sys.modules.pop("observables", None)
    import observables

    # What differs is mended by: python docs/observables.py
    assert observables.PAGE.read_text(encoding="utf-8") == observables.write_table()
    for name in OBSERVABLES:
        assert f"| `{name}`" in observables.make_table()
    sys.modules.pop("observables")
