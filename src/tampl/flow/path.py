r"""The straight path from noise to target, with the independent coupling.

For a target z_{t+1}, noise epsilon ~ N(0, I) and a flow time s ~ U(0, 1),

    u_s = (1 - s) epsilon + s z_{t+1},        d u_s / d s = z_{t+1} - epsilon.

Reference: the paper's appendix "Conditional Flow Matching for Latent Transitions".
"""

from dataclasses import dataclass

from torch import Tensor

__all__ = ["PathSample", "interpolate"]


@dataclass(frozen=True)
class PathSample:
    """A point of the path: flow time s (B, 1), state u (B, d) and its velocity (B, d)."""

    s: Tensor
    u: Tensor
    velocity: Tensor


def interpolate(z_next: Tensor, s: Tensor, epsilon: Tensor) -> PathSample:
    """The point at flow time s between the noise epsilon and the target z_{t+1}."""
    return PathSample(s=s, u=(1 - s) * epsilon + s * z_next, velocity=z_next - epsilon)
