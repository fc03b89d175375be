"""Chains and pictures as microstates in figures."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from tampl.lab.report.figures.drawing import draw_microstate


@pytest.fixture
def axis():
    figure, axis = plt.subplots()
    yield axis
    plt.close(figure)


def test_a_chain_is_drawn_bead_by_bead_with_those_in_front_on_top(axis):
    beads = np.array([[-1.0, 0.0, 2.0], [0.0, 0.0, -3.0], [1.0, 0.0, 1.0]], np.float32)
    draw_microstate(axis, beads, "chain")
    [circles] = axis.collections
    np.testing.assert_array_equal(circles.get_offsets(), beads[[1, 2, 0], :2])
    assert axis.get_xlim() == axis.get_ylim() == (-2, 2) and axis.get_aspect() == 1


def test_a_picture_keeps_its_levels(axis):
    picture = np.arange(12, dtype=np.uint8).reshape(3, 4)
    draw_microstate(axis, picture, "image")
    [image] = axis.images
    np.testing.assert_array_equal(image.get_array(), picture)
    assert image.get_clim() == (0, 255)
