"""Matrices of absurd size: certificates are refused with one line that names the matrix."""

import numpy as np
import pytest

from tampl.errors import InputError
from tampl.theory.certificates import certify_file
from tampl.theory.linear import Weights
from tampl.theory.updates import Round

SYSTEM = {"A": np.diag([0.9, 0.5, 0.3]), "C": np.eye(1, 3), "Sigma": np.eye(3)}
ONE = Weights()
MODEL = {"B": np.eye(2, 3), "D": np.eye(1, 2), "K": np.diag([0.9, 0.5])}


def certify(path, arrays, weights=ONE):
    np.savez_compressed(path, **arrays)
    steps = Round(mu_encoder=0.1, mu_transition=0.1)
    return certify_file(path, weights=weights, steps=steps, partial=True)


@pytest.mark.parametrize("scale", [1e300, -1e300, 1e160, 1e13, 1e-300, 1e-160])
@pytest.mark.parametrize("name", [*SYSTEM, *MODEL])
def test_entries_beyond_all_units_are_refused(tmp_path, name, scale):
    arrays = SYSTEM | MODEL
    with pytest.raises(InputError, match=f"`{name}` has .* as its largest entry.*other units"):
        certify(tmp_path / "s.npz", {**arrays, name: scale * arrays[name]})


@pytest.mark.parametrize("name", [*SYSTEM, *MODEL])
@pytest.mark.parametrize("scale", [1e6, 1e-6])
def test_unusual_units_are_taken(tmp_path, name, scale):
    arrays = SYSTEM | MODEL
    assert certify(tmp_path / "s.npz", {**arrays, name: scale * arrays[name]})


def test_an_archive_that_unpacks_to_gigabytes_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("tampl.theory.certificates.gathering.MOST_BYTES", 2**16)
    with pytest.raises(InputError, match="GiB of numbers once it is unpacked"):
        certify(tmp_path / "s.npz", {**SYSTEM, "A": np.zeros((200, 200))})


def test_weights_and_steps_have_bounds(tmp_path):
    with pytest.raises(InputError, match=r"`weights\.cur` = 1e"):
        certify(tmp_path / "s.npz", SYSTEM | MODEL, Weights(cur=1e300))
    with pytest.raises(InputError, match="`mu_encoder` = 1e"):
        Round(mu_encoder=1e300, mu_transition=0.1)
    with pytest.raises(InputError, match="`encoder_steps` = 10"):
        Round(encoder_steps=10**9, mu_encoder=0.1, mu_transition=0.1)
