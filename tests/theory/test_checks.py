"""Refusals give the worst violation, and sentences follow the batch."""

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.theory.checks import require, tell


def test_violations_within_rounding_pass_and_others_are_named_with_their_size():
    require("x", "x = 0", size=np.array([0.0, 1e-12]))
    require("x", "x = 0", size=1e-3, of=1e7)
    require("x", "x = 0", size=np.array([0.1, 0.3]), roundoff=np.array([0.2, 0.3]))
    with pytest.raises(InputError, match=r"`x` must satisfy x = 0; the violation is 0\.25"):
        require("x", "x = 0", size=np.array([[1e-3, 0.25], [0.0, 1e-20]]))
    with pytest.raises(InputError, match="violation is nan"):
        require("x", "x = 0", size=np.nan)


def test_sentences_have_the_shape_of_the_batch_and_are_not_cut():
    one = tell(lambda verdict, x: f"{verdict}: x is {x:.1f}", np.str_("free"), np.float64(0.5))
    assert isinstance(one, str) and one == "free: x is 0.5"
    numbers = np.array([[1.0, 2.0, 30.0]])
    many = tell(lambda verdict, x: "long" * int(x), np.str_("free"), numbers)
    assert many.tolist() == [["long", "longlong", "long" * 30]]
