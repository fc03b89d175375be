"""What certificates share: refusals give the worst violation, words follow the batch."""

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.theory.certificates.conditions import latent_covariance, require, require_weights, tell
from tampl.theory.linear import LinearSystem, Weights

SYSTEM = LinearSystem(np.eye(2), [[1.0, 0.0]], np.diag([4.0, 1.0]))


def test_violations_within_rounding_pass_and_others_are_named_with_their_size():
    require("x", "x = 0", size=np.array([0.0, 1e-12]))
    require("x", "x = 0", size=1e-3, of=1e7)
    require("x", "x = 0", size=np.array([0.1, 0.3]), roundoff=np.array([0.2, 0.3]))
    with pytest.raises(InputError, match=r"`x` must satisfy x = 0; the violation is 0\.25"):
        require("x", "x = 0", size=np.array([[1e-3, 0.25], [0.0, 1e-20]]))
    with pytest.raises(InputError, match="violation is nan"):
        require("x", "x = 0", size=np.nan)


def test_weights_of_zero_are_named():
    require_weights(Weights(cur=0.0), "tr")
    with pytest.raises(InputError, match=r"`weights\.cur` = 0\.0 must be positive"):
        require_weights(Weights(cur=0.0), "tr", "cur")


def test_the_latent_covariance_is_weighted_by_that_of_the_source():
    np.testing.assert_allclose(latent_covariance(SYSTEM, [[1.0, 1.0]]), [[5.0]])
    with pytest.raises(InputError, match="`B` must have full row rank 2"):
        latent_covariance(SYSTEM, [[1.0, 1.0], [2.0, 2.0]])
    with pytest.raises(InputError, match="`B` must be finite"):
        latent_covariance(SYSTEM, [[1.0, np.nan]])
    with pytest.raises(InputError, match="`B` must have n = 2 columns"):
        latent_covariance(SYSTEM, [[1.0]])


def test_words_have_the_shape_of_the_batch_and_are_not_cut():
    one = tell(lambda verdict, x: f"{verdict}: x is {x:.1f}", np.str_("free"), np.float64(0.5))
    assert isinstance(one, str) and one == "free: x is 0.5"
    numbers = np.array([[1.0, 2.0, 30.0]])
    many = tell(lambda verdict, x: "long" * int(x), np.str_("free"), numbers)
    assert many.tolist() == [["long", "longlong", "long" * 30]]


def test_a_word_that_is_no_verdict_is_a_mistake_of_ours():
    assert tell(lambda verdict: verdict.name, np.array(["free", "no room"])).tolist() == [
        "FREE",
        "NO_ROOM",
    ]
    with pytest.raises(ValueError, match="perhaps"):
        tell(lambda verdict: verdict.name, np.array(["perhaps"]))
