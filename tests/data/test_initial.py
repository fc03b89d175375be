"""Initial microstates are all different, and independent of the order of work."""

import numpy as np
import pytest

from tampl.data import DataPlan, generate
from tampl.data.initial import draw_initial_states
from tampl.errors import InputError
from tampl.seeding import numpy_generator
from tampl.systems import SIRS

# One infected site on 3 x 3: nine patterns in all.
NINE = SIRS(size=3, coverage=0.1, clusters=(1,), frames=2)


def make(tmp_path, **counts):
    plan = DataPlan(**({"train": 5, "valid": 2, "test": 2, "members": 2} | counts))
    return generate(NINE, plan, tmp_path / "store", progress=False)


def test_no_two_alike_even_where_all_are_needed(tmp_path):
    store = make(tmp_path)
    initial = [store.trajectories(split).microstates[:, 0] for split in ("train", "valid")]
    everything = np.concatenate([*initial, store.references().microstates]).reshape(9, 9)
    assert len(np.unique(everything, axis=0)) == 9


def test_more_than_there_are_is_refused(tmp_path):
    with pytest.raises(InputError, match="after 9 distinct ones"):
        make(tmp_path, train=6)


def test_first_draw_is_kept_where_it_is_new(tmp_path):
    store = make(tmp_path, train=1, valid=1, test=2)
    states = draw_initial_states(NINE, store.manifest)
    expected = NINE.initial(numpy_generator(0, "sirs", "train", 0, "initial"))
    np.testing.assert_array_equal(states["train"][0].microstate, expected.microstate)
