"""Initial microstates are all different, and independent of the order of work."""

import numpy as np
import pytest
from pydantic import Field

from tampl.data import DataPlan, generate
from tampl.data.generate import _manifest_of, draw_initial_states
from tampl.errors import InputError
from tampl.seeding import numpy_generator
from tampl.system import InitialState
from tampl.systems import SIRS

# One infected site on 3 x 3: nine patterns in all.
NINE = SIRS(size=3, coverage=0.1, clusters=(1,), frames=2)


def make(tmp_path, **counts):
    plan = DataPlan(**({"train": 5, "valid": 2, "test": 2, "members": 2} | counts))
    return generate(NINE, plan, tmp_path / "store", progress=False)


def test_no_two_alike_even_where_all_are_needed(tmp_path):
    store = make(tmp_path)
    initial = [store.dataset(split).x[:, 0] for split in ("train", "valid")]
    everything = np.concatenate([*initial, store.references().x]).reshape(9, 9)
    assert len(np.unique(everything, axis=0)) == 9


def test_more_than_there_are_is_refused(tmp_path):
    with pytest.raises(InputError, match="after 9 distinct ones"):
        make(tmp_path, train=6)


class Numbered(SIRS):
    """Every state says in its label which one of its split it is, and counts the calls."""

    calls: list = Field(default_factory=list, exclude=True)

    def initial_states(self, split, generators, *, start=0):
        self.calls.append((split, start, len(generators)))
        drawn = super().initial_states(split, generators, start=start)
        return [InitialState(s.microstate, f"{split} {start + i}") for i, s in enumerate(drawn)]


def test_states_are_drawn_together_and_know_their_place():
    # With nine patterns in all, many draws repeat an earlier one and are made again.
    system = Numbered(**NINE.model_dump())
    plan = DataPlan(train=5, valid=2, test=2, members=2)
    states = draw_initial_states(system, _manifest_of(system, plan))
    for split, drawn in states.items():
        assert [state.label for state in drawn] == [f"{split} {i}" for i in range(len(drawn))]
    assert [call for call in system.calls if call[2] > 1] == [
        ("train", 0, 5),
        ("valid", 0, 2),
        ("test", 0, 2),
    ]
    assert [call for call in system.calls if call[2] == 1]


def test_first_draw_is_kept_where_it_is_new(tmp_path):
    store = make(tmp_path, train=1, valid=1, test=2)
    states = draw_initial_states(NINE, store.manifest)
    expected = NINE.initial(numpy_generator(0, "sirs", "train", 0, "initial"))
    np.testing.assert_array_equal(states["train"][0].microstate, expected.microstate)
