"""Keeping freed memory: harmless wherever it is called."""

import ctypes

import pytest

from tampl.lab.cli.entry import keep_freed_memory


def test_it_can_be_called_again():
    keep_freed_memory()
    keep_freed_memory()


@pytest.mark.parametrize("library", [object(), None])
def test_another_c_library_is_left_alone(monkeypatch, library):
    monkeypatch.setattr(ctypes, "CDLL", lambda name: library)
    keep_freed_memory()
