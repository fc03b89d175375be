"""Stores and models of older formats are read; newer ones are refused with what to do.

The files under `kept/` were written by the versions of the code that had these formats:
model-1 by b0361aa, model-2 and store-1 by 538cb29, both from before there were checksums in
models and limits in descriptions. They are never written again.
"""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from tampl.data import Store, check_store
from tampl.errors import InputError
from tampl.models import load_model, pretrained
from tampl.systems import SIRS

KEPT = Path(__file__).parent / "kept"
# What each model read from this microstate when it was written.
READ = {
    "model-1": [0.6729325413703918, 0.2233465164899826, 0.07964556962251663],
    "model-2": [0.6828318297863006, 0.21796676516532898, 0.07281225621700288],
}


@pytest.mark.parametrize("name", READ)
def test_older_models_are_read(name):
    model = load_model(KEPT / f"{name}.safetensors", device="cpu")
    x = torch.zeros(1, 4, 4, dtype=torch.uint8)
    x[0, 1, 1] = 1
    with torch.no_grad():
        y = model.read(model.encode(x))
    np.testing.assert_allclose(y[0].numpy(), READ[name], rtol=1e-6)


def test_an_older_store_is_read_and_sound():
    system = SIRS(size=4, frames=3, coverage=0.2, clusters=(1, 2))
    assert check_store(KEPT / "store-1", system, progress=False).problems == ()
    store = Store.open(KEPT / "store-1")
    assert store.manifest.identity.startswith("ca496312d97f200a")
    np.testing.assert_array_equal(store.dataset("train").y[0, 1], [0.125, 0.6875, 0.1875])
    assert store.references("test").y.shape == (2, 2, 3, 3)


def test_a_newer_store_is_refused(tmp_path):
    shutil.copytree(KEPT / "store-1", tmp_path / "store")
    path = tmp_path / "store" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format_version": 2}))
    with pytest.raises(InputError, match=r"`format_version` 2; .*install a newer tampl"):
        Store.open(tmp_path / "store")


def test_a_newer_model_is_refused(tmp_path):
    with safe_open(KEPT / "model-2.safetensors", framework="pt") as file:
        header = json.loads(file.metadata()["json"])
        tensors = {name: file.get_tensor(name) for name in file.keys()}
    newer = json.dumps({**header, "format": "tampl-model-5", "checksum": "of another kind"})
    save_file(tensors, tmp_path / "model.safetensors", metadata={"json": newer})
    with pytest.raises(InputError, match=r"has format 'tampl-model-5'.*install a newer tampl"):
        load_model(tmp_path / "model.safetensors")


def test_the_published_weights_are_known_by_their_whole_digest():
    assert len(pretrained.DIGEST) == 64 and pretrained.DIGEST[:8] in pretrained.URL
