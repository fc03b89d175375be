"""Features of the flow time are the formula of the preface."""

import math

import torch

from tampl.nn import FourierFeatures


def test_features_are_the_formula(dtype, device):
    s = torch.linspace(0, 1, 9, dtype=dtype, device=device)[:, None]
    features = FourierFeatures(3).to(device)(s)
    phases = [math.pi * k * s for k in (1, 2, 3)]
    expected = torch.cat([s, *map(torch.sin, phases), *map(torch.cos, phases)], dim=-1)
    # The frequencies are made in float32, whatever the precision of the times.
    torch.testing.assert_close(features, expected, rtol=0, atol=1e-5)
    assert features.shape == (9, FourierFeatures(3).features)


def test_features_tell_all_times_apart_also_the_ends(device):
    s = torch.linspace(0, 1, 101, device=device)[:, None]
    features = FourierFeatures(1).to(device)(s)
    assert torch.pdist(features).min() > 0.009


def test_no_frequencies_leave_the_time(device):
    s = torch.rand(4, 1, device=device)
    assert torch.equal(FourierFeatures(0).to(device)(s), s)


def test_frequencies_are_no_weights():
    module = FourierFeatures(3)
    assert not list(module.parameters()) and not module.state_dict()
