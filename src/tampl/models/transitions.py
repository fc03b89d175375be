"""Latent transitions T: deterministic (linear or not) and stochastic.

A transition gives its own loss l_tr(T; z_t, z_{t+1}) and one step z_t -> z_{t+1}. Randomness is
data: the loss takes the draws it needs, a step takes its base noise w_0 (of size 0 where the
transition is deterministic). Each specification builds its transition.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar, Literal

import torch
from pydantic import Field
from torch import Tensor, nn

from ..flow import SOLVERS, Step, flow_matching_loss, solve
from ..frozen import Count, Frozen, Steps, Width
from ..nn import MLP, Residual, VelocityMLP
from ..plugins import open_choice, register_entry
from .parts import DTYPES, Precision, Widths

__all__ = [
    "TRANSITIONS",
    "AnyTransition",
    "CalibratedFlowTransition",
    "DeterministicTransition",
    "FlowMap",
    "FlowTransition",
    "FlowTransitionSpec",
    "JointFlowSpec",
    "LinearTransitionSpec",
    "MLPTransitionSpec",
    "Noise",
    "Transition",
    "TransitionSpec",
    "Units",
    "register_transition",
]

Noise = Mapping[str, Tensor]

LEAST_WIDTH = 0.05
"""The least standard deviation in `Units`, in that of the widest direction."""

FIXED = 1e-4
"""A direction that is narrower than this does not vary, but for rounding."""


class Transition(nn.Module, ABC):
    """One step of the latent dynamics.

    Attributes:
        noise_dim: Size of the base noise of one step; 0 for a deterministic transition.
    """

    noise_dim: int

    @abstractmethod
    def loss(self, z: Tensor, z_next: Tensor, noise: Noise) -> Tensor:
        """Batch mean of l_tr for latent pairs (B, d) and the draws of `draw`."""

    @abstractmethod
    def spread(self, z: Tensor) -> Tensor:
        """The variance of latent states (n, d), features reduced as the loss reduces them."""

    @abstractmethod
    def draw(self, count: int, generator: torch.Generator) -> Noise:
        """Draws what the loss of `count` pairs needs, on the generator's device."""

    @abstractmethod
    def forward(self, z: Tensor, noise: Tensor) -> Tensor:
        """The next latent state of z (B, d) given base noise (B, noise_dim)."""


class DeterministicTransition(Transition):
    """A map T with the squared loss || T(z_t) - z_{t+1} ||^2 of the paper's analysis.

    Arguments:
        network: The map T, (B, d) to (B, d).
    """

    noise_dim = 0

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def loss(self, z: Tensor, z_next: Tensor, noise: Noise) -> Tensor:
        return (self.network(z) - z_next).square().sum(dim=-1).mean()

    def spread(self, z: Tensor) -> Tensor:
        return z.var(dim=0, correction=0).sum()

    def draw(self, count: int, generator: torch.Generator) -> Noise:
        return {}

    def forward(self, z: Tensor, noise: Tensor) -> Tensor:
        return self.network(z)


class FlowTransition(Transition):
    """The conditional flow: T(. | z_t) is the law of w_1 under d w/d s = v(w, s; z_t).

    Arguments:
        velocity: The velocity field.
        latent_dim: Size of the latent state.
        step: The solver's step, e.g. `tampl.flow.midpoint`.
        steps: Number of solver steps for one transition.
        grading: How strongly these steps shorten towards the end, see `tampl.flow`.
        draws: How many draws of (s, epsilon) the loss takes for each pair. Beside an encoder they
            cost little.
        lags: How many lags it knows; the first is the step of the model. More than one are told
            by a mark beside z, and the noise of the loss holds the number of each pair's, `lag`.
    """

    marks: Tensor

    def __init__(
        self,
        velocity: VelocityMLP,
        latent_dim: int,
        *,
        step: Step,
        steps: int,
        grading: float = 1.0,
        draws: int = 1,
        lags: int = 1,
    ) -> None:
        super().__init__()
        self.register_buffer("marks", torch.eye(lags), persistent=False)
        self.velocity = velocity
        self.noise_dim = latent_dim
        self.step = step
        self.steps = steps
        self.grading = grading
        self.draws = draws

    def loss(self, z: Tensor, z_next: Tensor, noise: Noise) -> Tensor:
        condition = self._mark(z, noise.get("lag"))
        condition, z_next = (pairs.repeat(self.draws, 1) for pairs in (condition, z_next))
        s, epsilon = noise["s"], noise["epsilon"]
        return flow_matching_loss(self.velocity, condition, z_next, s=s, epsilon=epsilon)

    def spread(self, z: Tensor) -> Tensor:
        return z.var(dim=0, correction=0).mean()

    def draw(self, count: int, generator: torch.Generator) -> Noise:
        dtype, device = next(self.parameters()).dtype, generator.device
        u = torch.rand((self.draws, count, 1), generator=generator, dtype=dtype, device=device)
        # One draw of s in each of as many equal parts of [0, 1]: uniform, and less noisy.
        part = torch.arange(self.draws, dtype=dtype, device=device)[:, None, None]
        shape = (self.draws * count, self.noise_dim)
        return {
            "s": ((part + u) / self.draws).flatten(0, 1),
            "epsilon": torch.randn(shape, generator=generator, dtype=dtype, device=device),
        }

    def forward(self, z: Tensor, noise: Tensor) -> Tensor:
        condition, step, steps = self._mark(z), self.step, self.steps
        return solve(self.velocity, noise, condition, step=step, steps=steps, grading=self.grading)

    def _mark(self, z: Tensor, lag: Tensor | None = None) -> Tensor:
        """The condition of states (B, d): beside each the mark of its lag, where several are."""
        if len(self.marks) == 1:
            return z
        mark = self.marks[:1].expand(len(z), -1) if lag is None else self.marks[lag]
        return torch.cat([z, mark.to(z.dtype)], dim=-1)


class FlowMap(nn.Module):
    """The map of a flow, epsilon to w_1 given z, in one evaluation instead of a solver's many.

    Arguments:
        latent_dim: Size of epsilon, w_1 and z.
        hidden: Hidden widths of the network, which learns the way w_1 - epsilon.
    """

    def __init__(self, latent_dim: int, *, hidden: Sequence[int]) -> None:
        super().__init__()
        self.mlp = MLP(2 * latent_dim, latent_dim, hidden=hidden)

    def forward(self, epsilon: Tensor, z: Tensor) -> Tensor:
        return epsilon + self.mlp(torch.cat([epsilon, z], dim=-1))


class Units(nn.Module):
    r"""Coordinates in which values vary alike in all directions, and independently at that.

        u = (x - c) A,    A = diag(1 / w) V diag(1 / s),

    with mean c and standard deviations w of the values, and s^2 and V the eigenvalues and the
    eigenvectors of their correlations. The coordinates of latent states and macrostates are much
    correlated (on SIRS one direction has most of the variance), and what is small in the variance
    may decide the future. No s counts as less than `LEAST_WIDTH` of the largest: what varies less
    is noise. A direction that does not vary at all, as a sum of observables that is conserved, has
    no coordinate: A and the way back are zero there. Data say nothing about motion along it, and
    a network that were free to move there might leave the data without anything to hold it back.

    Arguments:
        size: Number of coordinates.
    """

    centre: Tensor
    axes: Tensor
    back: Tensor

    def __init__(self, size: int) -> None:
        super().__init__()
        self.register_buffer("centre", torch.zeros(size))
        self.register_buffer("axes", torch.eye(size))
        self.register_buffer("back", torch.eye(size))

    @torch.no_grad()
    def calibrate(self, x: Tensor) -> None:
        """Takes the units of values (n, size)."""
        # In double precision: rounding must not pass for a direction that varies a little.
        exact = x.cpu().double()
        least = torch.finfo(x.dtype).eps
        width = exact.std(dim=0).clamp_min(least)
        scaled = (exact - exact.mean(dim=0)) / width
        variances, turn = torch.linalg.eigh(scaled.T @ scaled / (len(x) - 1))
        # The sign of an eigenvector is anybody's choice: its largest component is positive.
        largest = turn.gather(0, turn.abs().argmax(dim=0, keepdim=True))
        turn = turn * torch.where(largest < 0, -1.0, 1.0)
        s = variances.clamp_min(0).sqrt()
        turn = turn * (s > FIXED * s[-1])
        s = s.clamp_min(LEAST_WIDTH * float(s[-1])).clamp_min(least)
        self.centre.copy_(exact.mean(dim=0))
        self.axes.copy_(turn / s / width[:, None])
        self.back.copy_((turn * s).T * width)

    def forward(self, x: Tensor) -> Tensor:
        """The coordinates u of x."""
        return (x - self.centre) @ self.axes

    def inverse(self, u: Tensor) -> Tensor:
        """The x of coordinates u."""
        return self.centre + u @ self.back


class CalibratedFlowTransition(Transition):
    r"""A conditional flow in the units of the latent states it was calibrated on.

    The condition is z_t in its own units, the target is the increment z_{t+1} - z_t in its own, so
    that the flow's base noise is as wide as what it becomes, in every direction. Nothing in this
    loss holds the scale of the latent states, so it is for a representation that no longer moves.

    Arguments:
        flow: The flow in those units.
        map: Where a step is to cost one evaluation: what is fitted to the flow by `map_loss` and
            takes its place in a step. The flow stays, to compare with (`map = None`).
    """

    def __init__(self, flow: FlowTransition, map: FlowMap | None = None) -> None:
        super().__init__()
        self.flow = flow
        self.map = map
        self.noise_dim = flow.noise_dim
        self.state = Units(self.noise_dim)
        self.increment = Units(self.noise_dim)

    def calibrate(self, z: Tensor, z_next: Tensor) -> None:
        """Takes the units of latent states (n, d), and those of their increments."""
        self.state.calibrate(z)
        self.increment.calibrate(z_next - z)

    def loss(self, z: Tensor, z_next: Tensor, noise: Noise) -> Tensor:
        return self.flow.loss(self.state(z), self.increment(z_next - z), noise)

    def map_loss(self, z: Tensor, epsilon: Tensor) -> Tensor:
        """Squared distance of the map from the flow's solution, mean over batch and dimensions.

        Arguments:
            z: States, (B, d).
            epsilon: Base noise, (B, d).
        """
        assert self.map is not None
        condition = self.state(z)
        with torch.no_grad():
            target = self.flow(condition, epsilon)
        return (self.map(epsilon, condition) - target).square().mean()

    def spread(self, z: Tensor) -> Tensor:
        return self.flow.spread(z @ self.increment.axes)

    def draw(self, count: int, generator: torch.Generator) -> Noise:
        return self.flow.draw(count, generator)

    def forward(self, z: Tensor, noise: Tensor) -> Tensor:
        condition = self.state(z)
        u = self.flow(condition, noise) if self.map is None else self.map(noise, condition)
        return z + self.increment.inverse(u)


class TransitionSpec(Frozen, ABC):
    """A transition as plain data, with the name by which recipes and checkpoints find it.

    Attributes:
        carries_macrostate: Whether its state is (z, y), latent state and standardised macrostate,
            instead of z alone.
    """

    carries_macrostate: ClassVar[bool] = False
    name: str

    @abstractmethod
    def build(self, latent_dim: int) -> Transition:
        """Builds the transition of latent states of a size."""


class LinearTransitionSpec(TransitionSpec):
    """T(z) = K z, or K z + b with a bias, starting at the identity."""

    name: Literal["linear"]
    bias: bool = False

    def build(self, latent_dim: int) -> Transition:
        """Builds the transition."""
        linear = nn.Linear(latent_dim, latent_dim, bias=self.bias)
        nn.init.eye_(linear.weight)
        if self.bias:
            nn.init.zeros_(linear.bias)
        return DeterministicTransition(linear)


class MLPTransitionSpec(TransitionSpec):
    """T(z) = z + MLP(z): the network learns the change over one frame."""

    name: Literal["mlp"]
    hidden: Widths = (256, 256)

    def build(self, latent_dim: int) -> Transition:
        """Builds the transition."""
        return DeterministicTransition(Residual(MLP(latent_dim, latent_dim, hidden=self.hidden)))


class FlowTransitionSpec(TransitionSpec):
    """The conditional flow: a velocity network and its solver for inference.

    Attributes:
        hidden: Hidden widths of the velocity network.
        frequencies: Fourier frequencies of the flow time.
        solver: Scheme of integration.
        steps: Steps of integration.
        grading: How strongly steps shorten towards the end; 1 makes them equal.
        draws: Draws of flow time and noise for each pair in the loss.
        precision: Of the products between the velocity network's hidden layers.
        lags: Lags of the pairs that it is trained with, 1 first; set by a method, not by a user.
    """

    name: Literal["flow"]
    hidden: Widths = (512, 512, 512, 512)
    frequencies: Width = 8
    solver: Literal["euler", "midpoint", "rk4"] = "midpoint"
    steps: Steps = 5
    grading: float = Field(1.0, ge=1, allow_inf_nan=False)
    draws: Steps = 1
    precision: Precision = "float32"
    # None, and not (1,): what was trained before there was a choice stays the same recipe.
    lags: tuple[Count, ...] | None = None

    def build(self, latent_dim: int) -> FlowTransition:
        """Builds the transition."""
        lags = len(self.lags or (1,))
        velocity = VelocityMLP(
            latent_dim,
            hidden=self.hidden,
            condition_dim=latent_dim + lags if lags > 1 else None,
            frequencies=self.frequencies,
            dtype=DTYPES[self.precision],
        )
        return FlowTransition(
            velocity,
            latent_dim,
            step=SOLVERS[self.solver],
            steps=self.steps,
            grading=self.grading,
            draws=self.draws,
            lags=lags,
        )


class JointFlowSpec(TransitionSpec):
    """The law of latent state and macrostate together, p(z', y' | z, y), by its increments.

    Much of a macrostate may not be a function of z, such as the size of clusters that jump from
    frame to frame, and y_0 is known exactly. A state that holds y starts right, keeps the
    correlation of y in time and has the spread of y.

    Attributes:
        flow: The flow.
        map: Hidden widths of the network that takes the place of the flow's solver in a step;
            None where the flow is integrated.
    """

    carries_macrostate: ClassVar[bool] = True
    name: Literal["joint-flow"]
    flow: FlowTransitionSpec
    map: Widths | None = None

    def build(self, latent_dim: int) -> Transition:
        """Builds the transition; `latent_dim` is the size of z and y together."""
        flow = self.flow.build(latent_dim)
        own = None if self.map is None else FlowMap(latent_dim, hidden=self.map)
        return CalibratedFlowTransition(flow, own)


TRANSITIONS: dict[str, type[TransitionSpec]] = {
    "linear": LinearTransitionSpec,
    "mlp": MLPTransitionSpec,
    "flow": FlowTransitionSpec,
    "joint-flow": JointFlowSpec,
}
"""Every specification of a transition by its name."""


def register_transition(name: str, spec: type[TransitionSpec]) -> None:
    """Makes a transition from outside of the package known by its name, in recipes too."""
    register_entry(TRANSITIONS, name, spec, what="transition")


if TYPE_CHECKING:
    AnyTransition = TransitionSpec
else:
    AnyTransition = open_choice(TRANSITIONS, group="tampl.transitions", base=TransitionSpec)
