"""Extension and unfolding time on chains that can be read off."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from tampl.systems.extension import UNFOLDED, extension, unfolding_time


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(0, 2**32), st.sampled_from([np.float32, np.float64]))
def test_extension_is_the_range_of_x_wherever_the_chain_is(beads, seed, dtype):
    beads = np.random.default_rng(seed).normal(size=(2, 3, beads, 3)).astype(dtype)
    assert np.array_equal(extension(beads), np.ptp(beads[..., 0].astype(float), axis=-1))
    # Neither order along the chain nor what happens across the flow matters.
    turned = (beads * np.array([-1, 2, 3], dtype))[..., ::-1, :]
    assert np.array_equal(extension(turned), extension(beads))


def test_unfolding_is_the_first_frame_beyond():
    stretched = 200.0
    threshold = UNFOLDED * stretched
    runs = np.array(
        [
            [10.0, threshold, threshold + 1, 5.0, 300.0],
            [10.0, 20.0, 30.0, 40.0, 50.0],
            [200.0, 0.0, 0.0, 0.0, 0.0],
        ]
    )
    assert unfolding_time(runs, stretched, interval=10.0).tolist() == [20.0, np.inf, 0.0]
    assert unfolding_time(runs[0], stretched) == 2
