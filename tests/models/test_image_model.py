"""Models of pictures, rendered or stored: as specifications, as models and under the methods."""

import math

import pytest
import torch
from image_walk import ImageWalk
from pydantic import TypeAdapter

from tampl.data import write_miniature
from tampl.errors import InputError
from tampl.methods import METHODS, check_method
from tampl.microstates import Chain, Image, Lattice
from tampl.models import MacroModel, ModelSpec, Modules, check_model
from tampl.models.decoders import AnyDecoder, ImageDecoderSpec, IntensityDecoder
from tampl.models.encoders import AnyEncoder, ResNetEncoderSpec
from tampl.nn import ResNet
from tampl.seeding import ambient_seed
from tampl.systems import Polymer
from tampl.training import Trainer, TrainingSpec
from tampl.training.frames import Frames

SPEC = {
    "latent_dim": 3,
    "encoder": {"name": "resnet", "weights": "none", "widths": [4, 4, 6, 8], "blocks": [1] * 4},
    "transition": {"name": "flow", "hidden": [16], "frequencies": 2, "steps": 2},
    "readout": {"name": "mlp", "hidden": [8]},
    "decoder": {"name": "image", "widths": [6, 4], "hidden": [8]},
}
SYSTEMS = {
    "chain": Polymer(
        beads=6, flow=0.3, interval=0.05, frames=4, height=10, width=12, regimes=False
    ),
    "image": ImageWalk(),
}
KINDS = [Chain(beads=300, height=100, width=500), Image(height=100, width=500)]


@pytest.fixture(scope="module", params=SYSTEMS)
def store(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp(request.param) / "store"
    return write_miniature(SYSTEMS[request.param], folder)


def encoder(**settings):
    return TypeAdapter(AnyEncoder).validate_python({"name": "resnet", **settings})


@pytest.mark.parametrize("kind", KINDS)
def test_the_papers_encoder_and_decoder(kind):
    built = encoder(weights="none", precision="bfloat16").build(kind, 4)
    assert isinstance(built, ResNet) and built.dtype == torch.bfloat16
    decoder = ImageDecoderSpec(name="image").build(kind, 4)
    sizes = [sum(p.numel() for p in part.parameters()) for part in (built, decoder)]
    assert sizes[1] <= 2 * sizes[0]
    assert decoder.network(torch.zeros(1, 4)).shape == (1, 1, 100, 500)


@pytest.mark.parametrize("spec", [encoder(weights="none"), ImageDecoderSpec(name="image")])
def test_lattices_are_refused(spec):
    with pytest.raises(InputError, match="takes chain or image microstates, not lattice ones"):
        spec.build(Lattice(height=4, width=4, states=2), 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "weights"),
        ({"weights": ""}, "weights"),
        ({"weights": "none", "blocks": [1, 1, 1]}, "blocks"),
        ({"weights": "none", "widths": [1, 2, 0, 4]}, "widths"),
        ({"weights": "imagenet", "widths": [8, 8, 8, 8]}, "`weights` is 'imagenet'.*ResNet-34"),
        ({"weights": "own.pth", "blocks": [1, 1, 1, 1]}, "`weights` is 'own.pth'"),
        (
            {"weights": "imagenet", "norm": "group"},
            "`norm` is 'group' and `weights` is 'ima",
        ),
    ],
)
def test_impossible_encoders_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        encoder(**settings)


def test_decoders_are_chosen_by_name():
    chosen = TypeAdapter(AnyDecoder).validate_python({"name": "image", "widths": [8]})
    assert isinstance(chosen, ImageDecoderSpec)


def test_a_specification_survives_json_and_can_be_blank():
    spec = ModelSpec.model_validate(SPEC | {"encoder": {"name": "resnet", "weights": "imagenet"}})
    assert ModelSpec.model_validate_json(spec.model_dump_json()) == spec
    assert spec.blank().encoder == ResNetEncoderSpec(name="resnet", weights="none")
    assert spec.blank().transition == spec.transition
    plain = spec.model_copy(update={"encoder": encoder(weights="none")})
    assert plain.blank() == plain


# The decoder


class Fixed(torch.nn.Module):
    def __init__(self, logits):
        super().__init__()
        self.logits = logits

    def forward(self, z):
        return self.logits


def test_the_loss_is_the_mean_over_pixels_of_a_coin():
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(2, 1, 3, 4, generator=generator, dtype=torch.float64)
    logits = torch.randn(2, 1, 3, 4, generator=generator, dtype=torch.float64)
    expected = 0.0
    for intensity, logit in zip(x.flatten().tolist(), logits.flatten().tolist(), strict=True):
        p = 1 / (1 + math.exp(-logit))
        expected -= intensity * math.log(p) + (1 - intensity) * math.log(1 - p)
    loss = IntensityDecoder(Fixed(logits)).loss(torch.zeros(2, 3), x, {})
    assert loss.item() == pytest.approx(expected / x.numel())


def test_the_best_that_a_decoder_can_do_is_the_intensity_itself():
    x = torch.tensor([0.0, 0.02, 0.5, 1.0], dtype=torch.float64).view(1, 1, 1, 4)
    logits = torch.logit(x, eps=1e-9).requires_grad_()
    decoder = IntensityDecoder(Fixed(logits))
    decoder.loss(torch.zeros(1, 3), x, {}).backward()
    assert logits.grad.abs().max() < 1e-8
    # However dark a decoder is, it feels the light that it misses.
    dark = torch.full((1, 1, 1, 4), -30.0, dtype=torch.float64, requires_grad=True)
    IntensityDecoder(Fixed(dark)).loss(torch.zeros(1, 3), x, {}).backward()
    torch.testing.assert_close(dark.grad, -x / 4)


# Models and methods


@pytest.mark.parametrize("name", ["tampl", "jld-recon", "two-stage-recon", "vamp"])
def test_methods_train_on_pictures(store, name):
    check_method(METHODS[name], ModelSpec.model_validate(SPEC), store.dataset("train"))


def test_a_model_of_pictures_meets_the_contract(store):
    with ambient_seed(0, "weights"):
        modules = Modules.build(ModelSpec.model_validate(SPEC), store.description)
    statistics = store.dataset("train").statistics
    model = MacroModel(store.description, statistics=statistics, modules=modules).eval()
    check_model(model, store.references().x)


def test_cached_latents_are_those_of_the_encoder_in_training(store):
    """Both ends of a pair are encoded by one function, whichever mode the encoder is in."""
    trajectories = store.dataset("train")
    frames = Frames.load(trajectories, trajectories.statistics)
    method, training = METHODS["tampl"], TrainingSpec(epochs=2, batch_size=4)
    with ambient_seed(0, "weights"):
        modules = method.modules(ModelSpec.model_validate(SPEC), store.description)
    trainer = Trainer(method.turns(training), modules, frames=frames, training=training)
    trainer.run_epoch()
    representation, _ = trainer.schedule[1]
    batch = trainer.first_batch(representation)
    modules.train()
    torch.testing.assert_close(modules.encoder(batch["x"]), trainer._cache[_rows(trainer, batch)])


def _rows(trainer, batch):
    """Frames whose network input is that of the batch."""
    inputs = trainer.frames.x(torch.arange(len(trainer.frames)))
    return torch.stack([(inputs == x).flatten(1).all(1).nonzero()[0, 0] for x in batch["x"]])
