"""What can be certified of a point: attraction, anchoring, convergence, and all of it together."""

from .gathering import Finding, certify, certify_dimension

__all__ = ["Finding", "certify", "certify_dimension"]
