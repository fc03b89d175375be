"""Macroscopic models: encoder, latent transition and readout, with what they need to forecast."""

from .check import check_model
from .decoders import Decoder
from .model import MacroModel, ModelSpec, Modules, load_model
from .parts import resolve_device
from .transitions import (
    CalibratedFlowTransition,
    DeterministicTransition,
    FlowTransition,
    Transition,
)

__all__ = [
    "CalibratedFlowTransition",
    "Decoder",
    "DeterministicTransition",
    "FlowTransition",
    "MacroModel",
    "ModelSpec",
    "Modules",
    "Transition",
    "check_model",
    "load_model",
    "resolve_device",
]
