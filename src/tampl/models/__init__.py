"""Macroscopic models: encoder, latent transition and readout, with what they need to forecast."""

from .card import Card, Origin
from .check import check_model
from .decoders import Decoder, DecoderSpec, register_decoder
from .encoders import EncoderSpec, register_encoder
from .ensemble import Ensemble, load
from .model import MacroModel, ModelSpec, Modules, load_card, load_model
from .parts import resolve_device
from .readouts import ReadoutSpec, register_readout
from .transitions import (
    CalibratedFlowTransition,
    DeterministicTransition,
    FlowTransition,
    Transition,
    TransitionSpec,
    register_transition,
)

__all__ = [
    "CalibratedFlowTransition",
    "Card",
    "Decoder",
    "DecoderSpec",
    "DeterministicTransition",
    "EncoderSpec",
    "Ensemble",
    "FlowTransition",
    "MacroModel",
    "ModelSpec",
    "Modules",
    "Origin",
    "ReadoutSpec",
    "Transition",
    "TransitionSpec",
    "check_model",
    "load",
    "load_card",
    "load_model",
    "register_decoder",
    "register_encoder",
    "register_readout",
    "register_transition",
    "resolve_device",
]
