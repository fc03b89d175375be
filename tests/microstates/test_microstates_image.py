"""Pictures as microstates: stored form, network input, what is refused."""

import numpy as np
import pytest
import torch
from pydantic import TypeAdapter

from tampl.errors import InputError
from tampl.microstates import AnyMicrostate, Image

IMAGE = Image(height=4, width=3)


def test_a_picture_survives_json():
    assert TypeAdapter(AnyMicrostate).validate_json(IMAGE.model_dump_json()) == IMAGE


def test_a_picture_has_a_byte_a_pixel():
    assert IMAGE.shape == (4, 3) and IMAGE.dtype == np.uint8
    stored = np.arange(24).reshape(2, 4, 3) * 10
    checked = IMAGE.check(stored, "`x`")
    assert checked.dtype == np.uint8
    x = IMAGE.network_input(torch.from_numpy(checked), torch.float32)
    assert x.shape == (2, 1, 4, 3)
    np.testing.assert_allclose(x[:, 0], stored / 255, rtol=1e-6)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (np.zeros((3, 4), np.uint8), r"`x` has shape \(3, 4\)"),
        (np.full((4, 3), 0.5), r"`x` holds float64.*give round\(255 I\) as uint8"),
        (np.ones((4, 3), bool), "holds bool; a picture has a byte per pixel"),
        (np.full((4, 3), 256), "has a pixel of 256; pixels are 0 to 255"),
        (np.full((4, 3), -1), "has a pixel of -1"),
    ],
)
def test_what_is_no_picture_is_refused(wrong, message):
    with pytest.raises(InputError, match=message):
        IMAGE.check(wrong, "`x`")
