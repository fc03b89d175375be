"""Architectures as data: what a recipe states and a checkpoint carries.

Each record names one choice and builds its module; a combination that cannot work (a lattice
encoder on vectors) is refused here, before anything is trained.
"""

from pydantic import PositiveInt

from ..records import Record
from .specs.common import DTYPES, Precision, Source, Widths
from .specs.decoders import AnyDecoder, ImageDecoderSpec, LatticeDecoderSpec, SplineDecoderSpec
from .specs.encoders import (
    AnyEncoder,
    DeepSetEncoderSpec,
    LatticeEncoderSpec,
    LinearEncoderSpec,
    MacrostateEncoderSpec,
    MLPEncoderSpec,
    ResNetEncoderSpec,
)
from .specs.readouts import AnyReadout, IdentityReadoutSpec, MLPReadoutSpec
from .specs.transitions import (
    AnyTransition,
    CalibratedFlowSpec,
    FlowTransitionSpec,
    LinearTransitionSpec,
    MLPTransitionSpec,
)

__all__ = [
    "DTYPES",
    "AnyDecoder",
    "AnyEncoder",
    "AnyReadout",
    "AnyTransition",
    "CalibratedFlowSpec",
    "DeepSetEncoderSpec",
    "FlowTransitionSpec",
    "IdentityReadoutSpec",
    "ImageDecoderSpec",
    "LatticeDecoderSpec",
    "LatticeEncoderSpec",
    "LinearEncoderSpec",
    "LinearTransitionSpec",
    "MLPEncoderSpec",
    "MLPReadoutSpec",
    "MLPTransitionSpec",
    "MacrostateEncoderSpec",
    "ModelSpec",
    "Precision",
    "ResNetEncoderSpec",
    "Source",
    "SplineDecoderSpec",
    "Widths",
]


class ModelSpec(Record):
    """Encoder, transition and readout around one latent dimension d_z.

    Attributes:
        latent_dim: Size of z.
        encoder: E.
        transition: T.
        readout: R.
        decoder: For methods that reconstruct microstates in training; no model keeps it.
    """

    latent_dim: PositiveInt
    encoder: AnyEncoder
    transition: AnyTransition
    readout: AnyReadout = MLPReadoutSpec(name="mlp")
    decoder: AnyDecoder | None = None

    def blank(self) -> "ModelSpec":
        """The same architecture without published weights to start from.

        For a model whose own weights follow: they need not be fetched to be overwritten.
        """
        if not isinstance(self.encoder, ResNetEncoderSpec):
            return self
        encoder = self.encoder.model_copy(update={"weights": "none"})
        return self.model_copy(update={"encoder": encoder})
