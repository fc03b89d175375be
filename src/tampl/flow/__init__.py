"""Conditional flow matching on vectors: a path, its regression loss, and fixed-step solvers."""

from .loss import VelocityField, flow_matching_loss
from .path import PathSample, interpolate
from .solver import SOLVERS, euler, midpoint, rk4, solve

__all__ = [
    "SOLVERS",
    "PathSample",
    "VelocityField",
    "euler",
    "flow_matching_loss",
    "interpolate",
    "midpoint",
    "rk4",
    "solve",
]
