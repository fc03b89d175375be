"""The figures of the linear theory show what the paper describes."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.figure import Figure

from tampl.lab.report.figures import png_bytes, theory
from tampl.theory.experiments import run_case1, run_case2, run_collapse, run_local, run_selection

SEEDS = (0, 1, 2)


@pytest.fixture(scope="module")
def case1():
    return run_case1(SEEDS, updates=300)


def test_every_figure_can_be_drawn(case1):
    figures = [
        theory.mechanism(case1),
        theory.mechanism(run_case2(SEEDS, updates=30)),
        theory.local_test(run_local(SEEDS, rounds=60)),
        theory.collapse(run_collapse(SEEDS, updates=30)),
        theory.selection(run_selection()),
        theory.selection(run_selection(variance_n=0.5)),
        theory.selection(run_selection(cur=0.0)),
        theory.mechanism(run_case1([0], updates=30)),
    ]
    for figure in figures:
        assert isinstance(figure, Figure)
        assert png_bytes(figure).startswith(b"\x89PNG")


def test_losses_are_floored_and_scales_begin_at_a_thousandth(case1):
    curves = case1.curves["tampl"]
    tiny = replace(curves, l_cur=np.zeros_like(curves.l_cur))
    figure = theory.mechanism(replace(case1, curves={**case1.curves, "tampl": tiny}))
    current, _, scale, rollout = figure.axes
    drawn = current.lines[list(case1.curves).index("tampl")].get_ydata()
    np.testing.assert_array_equal(drawn, 1e-16)
    assert scale.get_ylim()[0] == 1e-3
    assert current.get_ylim()[0] < 1e-16 == current.get_yticks()[0]
    assert all(axis.get_yscale() == "log" for axis in (current, scale, rollout))


def test_curves_are_means_over_seeds(case1):
    figure = theory.mechanism(case1)
    drawn = figure.axes[2].lines[0].get_ydata()
    np.testing.assert_allclose(drawn, case1.curves["joint"].s_min.mean(axis=-1))
    assert [text.get_text() for text in figure.legends[0].get_texts()] == [
        "Joint",
        "Joint with reconstruction",
        "TAMPL",
    ]


def test_collapse_draws_medians():
    found = run_collapse(SEEDS, updates=30)
    norm, scale, error = theory.collapse(found).axes
    np.testing.assert_allclose(
        scale.lines[0].get_ydata(), np.median(found.scales["joint"], axis=-1)
    )
    assert norm.get_ylim()[0] == 0
    assert "12" in error.get_title()


def test_bands_end_at_the_lowest_seed():
    values = np.array([[1e-9, 1e-9, 1.0]])
    band = theory._Band.of_means(values)
    assert band.low == 1e-9 < band.middle < band.high


def test_the_guide_falls_by_the_radius():
    test = run_local(SEEDS, rounds=60)
    guide = theory.local_test(test).axes[0].lines[-1].get_ydata()
    steps = np.diff(np.log(guide)) / np.diff(test.rounds)
    np.testing.assert_allclose(np.exp(steps), np.mean(test.radius))
    assert guide[-1] == pytest.approx(np.mean(test.norms["tampl"][-1]))
