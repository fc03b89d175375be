"""Threads: results in order, and the first error comes out."""

import threading

import pytest

from tampl.threads import available_cores, map_threads


def test_order_is_kept_and_nothing_is_nothing():
    assert map_threads(lambda x: x * x, range(40)) == [x * x for x in range(40)]
    assert map_threads(lambda x: x, []) == []


def test_one_item_stays_on_the_calling_thread():
    assert map_threads(lambda _: threading.get_ident(), [0]) == [threading.get_ident()]
    assert threading.get_ident() not in map_threads(lambda _: threading.get_ident(), [0, 1])


def test_errors_come_out():
    def fail(x):
        raise KeyError(x)

    with pytest.raises(KeyError, match="0"):
        map_threads(fail, range(3))


def test_there_is_a_core():
    assert available_cores() >= 1
