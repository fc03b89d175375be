"""Macroscopic models: encoder, latent transition and readout, with what they need to forecast."""

from .check import check_model
from .checkpoint import load_model, save_model
from .decoders import Decoder
from .model import MacroModel, ModelSpec, Modules
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
    "save_model",
]
