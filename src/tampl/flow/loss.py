r"""The conditional flow-matching loss.

l_tr = E_{s, epsilon} [ 1/d || v(u_s, s; z_t) - (z_{t+1} - epsilon) ||^2 ]
"""

from collections.abc import Callable

from torch import Tensor

from .path import interpolate

__all__ = ["VelocityField", "flow_matching_loss"]

VelocityField = Callable[[Tensor, Tensor, Tensor], Tensor]
"""v(u, s, z): state (B, d), flow time (B, 1) or (1, 1), condition (B, d) to a velocity (B, d)."""


def flow_matching_loss(
    velocity: VelocityField, z: Tensor, z_next: Tensor, *, s: Tensor, epsilon: Tensor
) -> Tensor:
    """Batch mean of l_tr for given draws of s (B, 1) and epsilon (B, d).

    Gradients reach the velocity's parameters, the condition z and the target z_next; whoever wants
    one of them fixed passes it detached or frozen.
    """
    sample = interpolate(z_next, s, epsilon)
    return (velocity(sample.u, sample.s, z) - sample.velocity).square().mean()
