"""Progress goes to standard error; standard output is the machine's."""

import pytest

from tampl.progress import bar


@pytest.fixture(autouse=True)
def wide_terminal(monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")


def test_a_bar_leaves_standard_output_alone(capfd):
    with bar("counting", 2) as advance:
        advance("first")
        advance("the note of the end")
    shown = capfd.readouterr()
    assert shown.out == ""
    assert "counting" in shown.err and "2/2" in shown.err and "the note of the end" in shown.err


def test_an_invisible_bar_shows_nothing(capfd):
    with bar("counting", 2, visible=False) as advance:
        advance("first")
    assert capfd.readouterr() == ("", "")


def test_a_bar_hides_no_error(capfd):
    with pytest.raises(KeyError, match="lost"), bar("counting", 2) as advance:
        advance("first")
        raise KeyError("lost")
    assert "1/2" in capfd.readouterr().err


@pytest.mark.parametrize("total", [0, 1])
def test_a_bar_takes_more_steps_than_it_was_promised(total, capfd):
    with bar("counting", total) as advance:
        advance("")
        advance("")
    assert f"2/{total}" in capfd.readouterr().err


def test_a_note_may_hold_brackets(capfd):
    with bar("loss", 1) as advance:
        advance("x [0, 1]")
    assert "x [0, 1]" in capfd.readouterr().err
