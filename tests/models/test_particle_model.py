"""Models of particle sets: as specifications, as models and under the methods."""

import numpy as np
import pytest
import torch
from particle_walk import ParticleWalk
from pydantic import TypeAdapter

from tampl.data import write_miniature
from tampl.errors import InputError
from tampl.methods import METHODS, check_method
from tampl.microstates import Lattice, Particles
from tampl.models import MacroModel, ModelSpec, Modules, check_model
from tampl.models.decoders import AnyDecoder, SplineDecoderSpec
from tampl.models.encoders import DeepSetEncoderSpec
from tampl.nn import DeepSet
from tampl.seeding import ambient_seed

KIND = Particles(count=512, types=2, box=32.0)
SPEC = {
    "latent_dim": 3,
    "encoder": {"name": "deepset", "widths": [16, 16], "hidden": [8]},
    "transition": {"name": "flow", "hidden": [16], "frequencies": 2, "steps": 2},
    "readout": {"name": "mlp", "hidden": [8]},
    "decoder": {"name": "spline", "transforms": 2, "bins": 3, "hidden": [8], "particles": 4},
}


@pytest.fixture(scope="module")
def store(tmp_path_factory):
    return write_miniature(ParticleWalk(), tmp_path_factory.mktemp("particles") / "store")


@pytest.mark.parametrize(
    "spec", [DeepSetEncoderSpec(name="deepset"), SplineDecoderSpec(name="spline")]
)
def test_lattices_are_refused(spec):
    with pytest.raises(InputError, match="takes particles microstates, not lattice ones"):
        spec.build(Lattice(height=4, width=4, states=2), 8)


def test_the_specification_is_what_is_built():
    spec = DeepSetEncoderSpec(name="deepset", widths=(12, 6), hidden=(5,), precision="bfloat16")
    encoder = spec.build(KIND, 8)
    assert isinstance(encoder, DeepSet) and encoder.dtype == torch.bfloat16
    shapes = [tuple(weight.shape) for weight in encoder.parameters() if weight.ndim == 2]
    assert shapes == [(12, 4), (6, 12), (5, 6), (8, 5)]
    assert all(weight.dtype == torch.float32 for weight in encoder.parameters())


def test_by_default_the_decoder_has_at_most_twice_the_encoder_s_parameters():
    parts = (DeepSetEncoderSpec(name="deepset"), SplineDecoderSpec(name="spline"))
    encoder, decoder = (sum(p.numel() for p in part.build(KIND, 8).parameters()) for part in parts)
    assert decoder <= 2 * encoder


def test_decoders_are_chosen_by_name():
    adapter = TypeAdapter(AnyDecoder)
    assert adapter.validate_python({"name": "lattice"}).name == "lattice"
    assert adapter.validate_python({"name": "spline", "bins": 8}).bins == 8
    for wrong in ({"bins": 1}, {"particles": 0}, {"noise": -0.1}, {"widths": [4]}):
        with pytest.raises(ValueError):
            adapter.validate_python({"name": "spline", **wrong})


def test_a_specification_survives_json():
    spec = ModelSpec.model_validate(SPEC)
    assert ModelSpec.model_validate_json(spec.model_dump_json()) == spec


@pytest.mark.parametrize("name", ["tampl", "jld-recon", "two-stage-recon"])
def test_methods_train_on_sets(store, name):
    check_method(METHODS[name], ModelSpec.model_validate(SPEC), store.dataset("train"))


@pytest.fixture
def model(store):
    with ambient_seed(0, "weights"):
        modules = Modules.build(ModelSpec.model_validate(SPEC), store.description)
    statistics = store.dataset("train").statistics
    return MacroModel(store.description, statistics=statistics, modules=modules).eval()


def test_a_model_of_sets_meets_the_contract(model, store):
    check_model(model, store.references().x)


def test_sets_of_any_size_are_encoded(model, store):
    """More rows without particles, and the same set twice, are nothing new to a mean."""
    x = store.references().x[:2]
    z = model.encode(torch.from_numpy(x))
    for other in (np.pad(x, ((0, 0), (3, 1), (0, 0))), np.concatenate([x, x], axis=1)):
        torch.testing.assert_close(model.encode(torch.from_numpy(other)), z)
