"""Certificates of a point: attraction, anchoring, convergence, and all of them together."""

from .gathering import Finding, certify, certify_dimension, certify_file, read_system

__all__ = ["Finding", "certify", "certify_dimension", "certify_file", "read_system"]
