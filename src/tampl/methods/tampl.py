r"""TAMPL: the paper's Algorithm 1.

Stage I moves encoder and readout with the transition T and the target encoder \bar E fixed,

    L_enc = lambda_cur E || R(E(x_t)) - y_t ||^2 + lambda_tr E l_tr(T; E(x_t), \bar E(x_{t+1})),

then \bar E <- E, and stage II moves the transition alone by the unweighted

    L_tr = E l_tr(T; \bar E(x_t), \bar E(x_{t+1})).

\bar E is constant during each stage, so its encodings can be made once: after a representation
pass every frame is encoded, and that cache (`z`, `z_next` of a batch) is the data of the
transition pass and holds the targets of the next representation pass. `Tampl` works so.
`LiteralTampl` keeps a copy of the encoder and applies it to every batch, as the algorithm is
printed; it gives the same numbers and is here to prove it. Beyond the paper go several lags, a
loss of later macrostates (`Ahead`) and `TamplPlus`.

Reference: Han, Zhao, Li, "Learning Macroscopic Dynamics without Reconstructing Microscopic
States".
"""

from collections.abc import Mapping, Sequence
from copy import deepcopy
from dataclasses import replace
from functools import partial

import torch
from pydantic import Field, PositiveFloat, field_validator
from torch import Tensor, nn

from ..description import Description
from ..errors import InputError
from ..frozen import BatchSize, Count, Frozen, Steps
from ..models import CalibratedFlowTransition, ModelSpec, Modules, Transition
from ..models.parts import Widths
from ..models.transitions import FlowTransitionSpec, JointFlowSpec
from ..nn import MLP
from ..training.settings import OptimiserSpec, TrainingSpec
from ..training.stages import Batch, Latents, Losses, Stage, Turn, current_loss
from .base import Method

__all__ = ["LiteralTampl", "Tampl", "TamplPlus"]


class Tampl(Method):
    """Target-Anchored Macro-Predictive Latents, with the target encodings cached.

    Attributes:
        lambda_cur: Weight of the current macrostate's loss.
        lambda_tr: Weight of the transition loss in stage I.
        lags: How many steps of the model apart the pairs of both stages are, 1 first; None for 1
            alone, as in the paper. Where frames follow each other fast, what decides the future
            hardly shows from one to the next, and a representation needs no trace of it; over
            longer lags it does. T is told the lag of a pair, and a forecast takes steps of 1.
        lambda_ahead: Weight of one more loss of stage I, L_ahead: how well a network that no model
            keeps tells the macrostates at the `lags` from z_t. The flow loss of stage I is mostly
            noise, which no representation lowers; this one is the error of a mean. None for no
            such loss, as in the paper.
    """

    lambda_cur: PositiveFloat = 1.0
    lambda_tr: PositiveFloat = 0.1
    # None, and not (1,): what was trained before there was a choice stays the same recipe.
    lags: tuple[Count, ...] | None = Field(None, min_length=2)
    lambda_ahead: PositiveFloat | None = None

    @field_validator("lags")
    @classmethod
    def _refuse_other_lags(cls, lags: tuple[int, ...] | None) -> tuple[int, ...] | None:
        if lags is not None and (lags[0] != 1 or sorted(set(lags)) != list(lags)):
            raise InputError(
                f"`lags` is {list(lags)}; it must begin with 1, the step of the model, and grow"
            )
        return lags

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        if self.lags is not None:
            if not isinstance(spec.transition, FlowTransitionSpec):
                raise InputError(
                    f"`lags` is {list(self.lags)} and `model.transition.name` is "
                    f'{spec.transition.name!r}, which knows one lag: choose "flow"'
                )
            transition = spec.transition.model_copy(update={"lags": self.lags})
            spec = spec.model_copy(update={"transition": transition})
        built = Modules.build(spec, description)
        if self.lambda_ahead is not None:
            lags, observables = len(self.lags or (1,)), len(description.observables)
            built.add({"ahead": Ahead(spec.latent_dim, observables, lags=lags)})
        return built

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        return (Turn(self.stages(training), training.epochs),)

    def stages(
        self, training: TrainingSpec, *, transition: str = "transition"
    ) -> tuple[Stage, Stage]:
        """Stage I and stage II.

        Arguments:
            training: Whose optimisers they use.
            transition: Name of the module that is T.
        """
        moves, needs = ["encoder", "readout"], {"x", "y", "z_next"}
        if self.lambda_ahead is not None:
            moves.append("ahead")
            needs.add("y_next")
        stage_one = Stage(
            name="representation",
            moves=tuple(moves),
            needs=frozenset(needs),
            loss=lambda modules, batch: representation_loss(
                self, modules, batch, z_next=batch["z_next"], transition=transition
            ),
            draw=partial(_draw, transition=transition),
            optimiser=training.representation,
            lags=self.lags or (1,),
        )
        stage_two = Stage(
            name="transition",
            moves=(transition,),
            needs=frozenset({"z", "z_next"}),
            loss=lambda modules, batch: transition_loss(
                modules, batch, z=batch["z"], z_next=batch["z_next"], transition=transition
            ),
            draw=partial(_draw, transition=transition),
            optimiser=training.transition,
            lags=self.lags or (1,),
        )
        return stage_one, stage_two


class Ahead(nn.Module):
    """The mean of a later macrostate given z, for each of some lags.

    Arguments:
        latent_dim: Size of z.
        observables: Size of y.
        lags: How many lags.
        hidden: Hidden widths of the network.
    """

    def __init__(
        self, latent_dim: int, observables: int, *, lags: int, hidden: Sequence[int] = (128, 128)
    ) -> None:
        super().__init__()
        self.lags = lags
        self.mlp = MLP(latent_dim, lags * observables, hidden=hidden)

    def forward(self, z: Tensor, lag: Tensor | None = None) -> Tensor:
        """The means (B, m), each at the lag of a number; the first where none is given."""
        means = self.mlp(z).unflatten(-1, (self.lags, -1))
        if lag is None:
            return means[:, 0]
        return means.take_along_dim(lag[:, None, None], dim=1).squeeze(1)


class Refit(Frozen):
    """How the law of latent state and macrostate is refitted; nothing is encoded, so it is cheap.

    Attributes:
        steps: Descent steps for each epoch of the training.
        passes: How often all steps together go over the training pairs, at most. More would learn
            the increments of a small data set by heart.
        batch_size: Pairs in a batch.
        hidden: Hidden widths of the velocity network.
        learning_rate: The rate at the start; it falls as a cosine.
        average: Decay of the exponential average of the weights that the model is made of.
        solver_steps: Midpoint steps of the flow, which its map is fitted to. They shorten towards
            the end.
    """

    steps: Count = 200
    passes: PositiveFloat = 400.0
    batch_size: BatchSize = 512
    hidden: Widths = (256, 256, 256)
    learning_rate: PositiveFloat = 2e-3
    average: float = Field(0.998, ge=0, lt=1)
    solver_steps: Steps = 4


class MapFit(Frozen):
    """How the one-step map is fitted to the refitted flow.

    Attributes:
        steps: Descent steps for each epoch of the training; 0 for no map: forecasts then
            integrate the flow.
        batch_size: States in a batch.
        hidden: Hidden widths of the map.
        learning_rate: The rate at the start; it falls as a cosine.
        average: Decay of the exponential average of the weights.
    """

    steps: int = Field(200, ge=0, le=10**6)
    batch_size: BatchSize = 256
    hidden: Widths = (192, 192, 192)
    learning_rate: PositiveFloat = 2e-3
    average: float = Field(0.995, ge=0, lt=1)


class TamplPlus(Method):
    r"""TAMPL's representation, and the law of latent state and macrostate refitted on it.

    TAMPL trains encoder and readout first. Its transition has to hold the scale of z while the
    representation moves, and y is a function of z alone, R(z). Afterwards nothing moves but a
    second transition, which learns p(z_{t+1}, y_{t+1} | z_t, y_t) by increments in units without
    correlations (`CalibratedFlowTransition`), so that base noise and increments are of one size,
    and the part of y that z does not tell has its spread and its correlation in time
    (`JointFlowSpec`). A forecast starts at (E(x_0), y_0). The first transition is dropped. In
    these units the flow is nearly straight, so that a small network can learn where it carries a
    given noise: a step of a forecast is one evaluation of this `FlowMap`.

    Attributes:
        tampl: The first part.
        refit: The second part.
        map: The third part.
    """

    tampl: Tampl = Tampl()
    refit: Refit = Refit()
    map: MapFit = MapFit()

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        if self.tampl.latent_dim is not None:
            raise InputError("`tampl.latent_dim` has no effect; give `latent_dim` to TamplPlus")
        if not isinstance(spec.transition, FlowTransitionSpec):
            raise InputError(
                f"`model.transition.name` is {spec.transition.name!r}; `tampl+` refits a flow: "
                'choose "flow"'
            )
        anchor = spec.transition
        own = {"hidden": self.refit.hidden, "steps": self.refit.solver_steps, "grading": 2.0}
        flow = anchor.model_copy(update={**own, "solver": "midpoint", "draws": 1})
        hidden = self.map.hidden if self.map.steps else None
        joint = JointFlowSpec(name="joint-flow", flow=flow, map=hidden)
        # First what TAMPL has, from the same draws: one seed gives both the same representation.
        first = self.tampl.modules(spec, description)
        built = Modules(
            spec.model_copy(update={"transition": joint}),
            encoder=first.encoder,
            transition=joint.build(spec.latent_dim + len(description.observables)),
            readout=first.readout,
        )
        built.add({"anchor": first.transition})
        if self.tampl.lambda_ahead is not None:
            built.add({"ahead": first.get_submodule("ahead")})
        return built

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        refit = Stage(
            name="refit",
            moves=("transition.flow",),
            needs=frozenset({"z", "z_next", "y", "y_next"}),
            loss=_joint_loss,
            draw=_draw,
            optimiser=OptimiserSpec(
                learning_rate=self.refit.learning_rate, average=self.refit.average
            ),
            batch_size=self.refit.batch_size,
            steps=self.refit.steps,
            passes=self.refit.passes / training.epochs,
        )
        fit_map = Stage(
            name="map",
            moves=("transition.map",),
            needs=frozenset({"z", "y"}),
            loss=_map_loss,
            draw=_draw,
            optimiser=OptimiserSpec(
                learning_rate=self.map.learning_rate, average=self.map.average
            ),
            batch_size=self.map.batch_size,
            steps=self.map.steps,
        )
        representation = Turn(
            self.tampl.stages(training, transition="anchor"), training.epochs, finish=_calibrate
        )
        # While the rate is high a law is too wide, and its mean may fit a few validation
        # trajectories by chance: models are chosen among those of the last quarter.
        fits = (refit, fit_map) if self.map.steps else (refit,)
        return representation, *(Turn((fit,), training.epochs, settled=0.75) for fit in fits)


class LiteralTampl(Method):
    """Algorithm 1 line by line, with a target encoder that is applied to every batch.

    Attributes:
        weights: The loss weights of the method it is compared with.
    """

    weights: Tampl = Tampl()

    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        built = self.weights.modules(spec, description)
        built.add({"target": deepcopy(built.encoder)})
        return built

    def turns(self, training: TrainingSpec) -> tuple[Turn, ...]:
        cached, _ = self.weights.stages(training)
        representation = replace(
            cached,
            needs=cached.needs - {"z_next"} | {"x_next"},
            loss=lambda modules, batch: representation_loss(
                self.weights, modules, batch, z_next=_target(modules)(batch["x_next"])
            ),
            finish=_copy_to_target,
        )
        transition = Stage(
            name="transition",
            moves=("transition",),
            needs=frozenset({"x", "x_next"}),
            loss=lambda modules, batch: transition_loss(
                modules,
                batch,
                z=_target(modules)(batch["x"]),
                z_next=_target(modules)(batch["x_next"]),
            ),
            draw=_draw,
            optimiser=training.transition,
            lags=self.weights.lags or (1,),
        )
        return (Turn((representation, transition), training.epochs),)


def representation_loss(
    weights: Tampl,
    modules: Modules,
    batch: Batch,
    *,
    z_next: Tensor,
    transition: str = "transition",
) -> Losses:
    """L_enc; the gradient reaches E through the condition z_t, not through the target z_next."""
    z = modules.encoder(batch["x"])
    current = current_loss(modules, z, batch["y"])
    l_tr = _find_transition(modules, transition).loss(z, z_next, batch.noise)
    total = weights.lambda_cur * current + weights.lambda_tr * l_tr
    parts = {"cur": current, "tr": l_tr}
    if weights.lambda_ahead is not None:
        ahead = modules.get_submodule("ahead")(z, batch.noise.get("lag"))
        parts["ahead"] = (ahead - batch["y_next"]).square().sum(dim=-1).mean()
        total = total + weights.lambda_ahead * parts["ahead"]
    return Losses(total, parts)


def transition_loss(
    modules: Modules,
    batch: Batch,
    *,
    z: Tensor,
    z_next: Tensor,
    transition: str = "transition",
) -> Losses:
    """L_tr on frozen encodings, unweighted."""
    loss = _find_transition(modules, transition).loss(z, z_next, batch.noise)
    return Losses(loss, {"tr": loss})


def _draw(
    modules: Modules,
    count: int,
    generator: torch.Generator,
    *,
    transition: str = "transition",
) -> Mapping[str, Tensor]:
    return _find_transition(modules, transition).draw(count, generator)


def _find_transition(modules: Modules, transition: str) -> Transition:
    module = modules.get_submodule(transition)
    assert isinstance(module, Transition)
    return module


def _joint_loss(modules: Modules, batch: Batch) -> Losses:
    """l_tr of the states (z, y)."""
    state = torch.cat([batch["z"], batch["y"]], dim=-1)
    state_next = torch.cat([batch["z_next"], batch["y_next"]], dim=-1)
    loss = modules.transition.loss(state, state_next, batch.noise)
    return Losses(loss, {"tr": loss})


def _map_loss(modules: Modules, batch: Batch) -> Losses:
    """How far the map is from the flow that it is fitted to."""
    assert isinstance(modules.transition, CalibratedFlowTransition)
    state = torch.cat([batch["z"], batch["y"]], dim=-1)
    loss = modules.transition.map_loss(state, batch.noise["epsilon"])
    return Losses(loss, {"map": loss})


def _calibrate(modules: Modules, latents: Latents) -> None:
    assert isinstance(modules.transition, CalibratedFlowTransition)
    assert latents.y is not None and latents.y_next is not None
    modules.transition.calibrate(
        torch.cat([latents.z, latents.y], dim=-1),
        torch.cat([latents.z_next, latents.y_next], dim=-1),
    )


def _target(modules: Modules) -> nn.Module:
    return modules.get_submodule("target")


def _copy_to_target(modules: Modules) -> None:
    _target(modules).load_state_dict(modules.encoder.state_dict())
