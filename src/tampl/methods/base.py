"""What a method is: its modules, the turns of stages that train them, and `fit`.

Stages and turns are those of `tampl.training.stages`.
"""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np
import torch
from torch import nn

from ..data.dataset import Dataset, Statistics
from ..description import Description, refuse_other_system
from ..errors import InputError
from ..frozen import Frozen, Width
from ..models import Ensemble, MacroModel, ModelSpec, Modules, Origin, resolve_device
from ..models.card import list_versions
from ..models.encoders import ModuleEncoderSpec
from ..models.rollout import Sizes
from ..progress import say
from ..seeding import ambient_seed
from ..training import (
    ALONE,
    Keeper,
    MemoryKeeper,
    Ranks,
    Trainer,
    TrainingSpec,
    Turn,
    run_training,
)
from ..training.frames import Frames
from .defaults import Part, complete_architecture, default_training

__all__ = ["Method", "make_trainer", "rollout_rmse"]

_INTERNAL = ("joint-flow",)
"""Transitions that a method fits on a finished representation; no training starts from them."""

_VALIDATION = 0.1
"""The fraction of the trajectories that validate where no validation set is given."""


class Method(Frozen, ABC):
    """Losses and schedule; what training yields is a `MacroModel` that needs no method.

    A method is plain data: its settings, such as the weights of its losses.

    Attributes:
        title: What tables and figures call it; the name it is registered by if empty.
        color: Its colour in figures, as Matplotlib takes it; one of some spare ones if None.
        latent_dim: Size of the latent state; None for that of the architecture.
    """

    title: ClassVar[str] = ""
    color: ClassVar[str | None] = None
    latent_dim: Width | None = None

    @abstractmethod
    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        """Builds the modules that are trained.

        Arguments:
            spec: The architecture; a method that needs another one builds that.
            description: What the data are of.
        """

    @abstractmethod
    def turns(self, training: TrainingSpec) -> Sequence[Turn]:
        """The stages for the trainer."""

    def fit(
        self,
        train: Dataset,
        valid: Dataset | None = None,
        *,
        epochs: int | None = None,
        seed: int | None = None,
        lag: int | None = None,
        device: str = "auto",
        encoder: Part | nn.Module = None,
        transition: Part = None,
        readout: Part = None,
        decoder: Part = None,
        architecture: ModelSpec | None = None,
        training: TrainingSpec | None = None,
        keeper: Keeper | None = None,
        deadline: float | None = None,
        models: int = 1,
        progress: bool = True,
        ranks: Ranks = ALONE,
    ) -> MacroModel | Ensemble:
        """Trains a model; returns the one with the lowest error on the validation set.

        Every setting has a default that is derived from the data (`tampl.methods.defaults`).

        Arguments:
            train: The training set.
            valid: The validation set; by default a tenth of the trajectories of `train`, which
                are then not trained on.
            epochs: Passes over the training pairs, for each of the method's turns.
            seed: Governs initial weights, batch order and noise; 42 by default.
            lag: Frames of the data in one step of the model, 1 by default. The model learns from
                all frames that are so far apart, and forecasts in steps of `lag` intervals.
            device: A torch device; "auto" takes a GPU where there is one.
            encoder: E by name, by specification, or any module that takes the network input of
                the microstates (B, ...) and returns latent states (B, latent_dim).
            transition: T by name or by specification.
            readout: R by name or by specification.
            decoder: The decoder of methods that reconstruct, by name or by specification.
            architecture: All parts together, as in a recipe; then no part is given by itself.
            training: Batches, rates and lengths, as in a recipe; `epochs`, `seed` and `lag` take
                precedence.
            keeper: Where models and states of the training go, to take it up after an
                interruption; in memory by default.
            deadline: Time on `time.monotonic`'s clock after which the training is left.
            models: How many models to train, with this seed and those that follow; more than one
                are returned as an `Ensemble`.
            progress: Whether to show a bar.
            ranks: The processes that train together (`tampl.training.join`); each makes the same
                call, and gets the same model. `keeper` and `deadline` are those of the leader.
        """
        _refuse_arrays(train, valid)
        parts: dict[str, Any] = {
            "encoder": encoder, "transition": transition, "readout": readout, "decoder": decoder
        }  # fmt: skip
        if architecture is None:
            architecture = complete_architecture(train, latent_dim=self.latent_dim, **parts)
        elif any(part is not None for part in parts.values()):
            raise InputError("`architecture` is given; give no part of it beside")
        device = resolve_device(device)
        for name, value, least in (
            ("epochs", epochs, 1),
            ("seed", seed, 0),
            ("lag", lag, 1),
            ("models", models, 1),
        ):
            if value is not None and value < least:
                raise InputError(f"`{name}` is {value}; it must be at least {least}")
        if models > 1 and keeper is not None:
            raise InputError(
                f"`models` is {models}; a `keeper` keeps one training: call fit often"
            )
        if valid is None:
            train, valid = _split_validation(train)
        refuse_other_system(train.description, valid.description, whose="the training set")
        if lag is None:
            lag = 1 if training is None else training.lag
        _refuse_long_lag(train, valid, lag)
        training = _complete_training(
            training or default_training(train, epochs=epochs, lag=lag), epochs, seed, lag
        )
        trained = [
            self._train_one(
                train,
                valid,
                architecture=architecture,
                training=training.model_copy(update={"seed": training.seed + number}),
                device=device,
                keeper=keeper or MemoryKeeper(),
                deadline=deadline,
                progress=progress,
                ranks=ranks,
            )
            for number in range(models)
        ]
        return trained[0] if models == 1 else Ensemble(trained)

    def _train_one(
        self,
        train: Dataset,
        valid: Dataset,
        *,
        architecture: ModelSpec,
        training: TrainingSpec,
        device: str,
        keeper: Keeper,
        deadline: float | None,
        progress: bool,
        ranks: Ranks,
    ) -> MacroModel:
        lag = training.lag
        with ranks.postponing_interrupts():
            # One rank reads the data for all.
            statistics = ranks.lead(lambda: train.statistics)
            origin = ranks.lead(lambda: self._describe_origin(train, valid, training))
            trainer = ranks.agree(
                lambda: make_trainer(
                    self,
                    train,
                    architecture=architecture,
                    training=training,
                    device=device,
                    statistics=statistics,
                    ranks=ranks,
                )
            )
            description, thinned = train.find_conserved().thin(lag), valid.thin(lag)

            def make_plain_model(trained: Modules) -> MacroModel:
                return MacroModel(description, statistics=statistics.thin(lag), modules=trained)

            def make_model(trained: Modules) -> MacroModel:
                model = make_plain_model(trained)
                model.enclose(train)
                model.origin = origin
                return model

            def validate(model: MacroModel) -> float:
                error = rollout_rmse(model, thinned, members=training.validation_members)
                if np.isfinite(error):
                    model.origin = origin.model_copy(update={"validation": error})
                return error

            history = run_training(
                trainer,
                keeper,
                make_model=make_model,
                validate=validate,
                deadline=deadline,
                progress=progress,
            )

            def choose() -> MacroModel:
                model = keeper.best_model()
                if model is None:
                    say(
                        "the training was left before all parts of the model were trained: do "
                        "not use it"
                    )
                    model = make_model(trainer.averaged())
                return model

            model = _copy_model(ranks, choose, lambda: make_plain_model(trainer.averaged()))
        model.history = history.epochs
        return model.to(device).eval()

    def _describe_origin(self, train: Dataset, valid: Dataset, training: TrainingSpec) -> Origin:
        return Origin(
            method=type(self).__name__,
            settings=self.model_dump(mode="json"),
            training=training.model_dump(mode="json"),
            trajectories=len(train),
            initial_states=train.count_initial_states(),
            validation_trajectories=len(valid),
            versions=list_versions(),
        )


def _copy_model(
    ranks: Ranks, choose: Callable[[], MacroModel], make: Callable[[], MacroModel]
) -> MacroModel:
    """The leader's model on every rank.

    Arguments:
        ranks: The ranks.
        choose: The model, on the leader.
        make: Makes one of the same architecture, on the others.
    """
    if ranks.size == 1:
        return choose()
    chosen: list[MacroModel] = []

    def send() -> tuple[dict[str, torch.Tensor], Origin]:
        chosen.append(choose().cpu())
        return chosen[0].state_dict(), chosen[0].origin

    tensors, origin = ranks.lead(send)
    if chosen:
        return chosen[0]
    model = make().cpu()
    model.take(tensors)
    model.origin = origin
    return model


def make_trainer(
    method: Method,
    train: Dataset,
    *,
    architecture: ModelSpec,
    training: TrainingSpec,
    device: str = "cpu",
    statistics: Statistics | None = None,
    ranks: Ranks = ALONE,
) -> Trainer:
    """A trainer at its first epoch: frames on the device, weights from the training's seed.

    Arguments:
        method: The method.
        train: The training set.
        architecture: The architecture; the method's own latent dimension takes precedence.
        training: Seed, batches and lengths.
        device: Where to train.
        statistics: Those of the training set, where they are known already.
        ranks: Those that the training is shared with; each gets its part of the training set.
    """
    if architecture.transition.name in _INTERNAL:
        raise InputError(
            f"`model.transition.name` is {architecture.transition.name!r}, which `tampl+` builds "
            "by itself; choose another"
        )
    if getattr(architecture.transition, "lags", None) is not None:
        raise InputError(
            "`model.transition.lags` is what a method sets: give `lags` to `tampl`, or to the "
            "first part of `tampl+`"
        )
    if method.latent_dim is not None:
        architecture = architecture.model_copy(update={"latent_dim": method.latent_dim})
    statistics = statistics or train.statistics
    frames = Frames.load(
        train,
        statistics,
        lag=training.lag,
        device=device,
        partitions=training.partitions,
        ranks=ranks,
    )
    if isinstance(architecture.encoder, ModuleEncoderSpec):
        _refuse_other_size(architecture, frames)
    with ambient_seed(training.seed, "weights"):
        modules = method.modules(architecture, train.description).to(device)
    turns = method.turns(training)
    return Trainer(turns, modules, frames=frames, training=training, ranks=ranks)


def rollout_rmse(model: MacroModel, valid: Dataset, *, members: int) -> float:
    """RMSE of the mean of rollouts against single trajectories, the measure of validation.

    Standardised units, t = 0 excluded; free rollouts, which nothing holds back.
    """
    count, frames, observables = valid.y.shape
    sizes = Sizes(count, members if model.stochastic else 1, frames - 1, observables)
    mean = np.empty(valid.y.shape)
    for part in model.roll_out(valid.x[:, 0], valid.y[:, 0], sizes=sizes):
        mean[part.states, part.times] = part.y.mean(axis=1)
    ours, truth = (model.normalization.standardize(y[:, 1:]) for y in (mean, valid.y))
    known = ... if valid.present is None else valid.present[:, 1:]
    return float(np.sqrt(np.mean((ours[known] - truth[known]) ** 2)))


def _refuse_arrays(train: object, valid: object) -> None:
    for name, data in (("train", train), ("valid", valid)):
        if data is not None and not isinstance(data, Dataset):
            raise InputError(
                f"`{name}` is a {type(data).__name__}; give a tampl.Dataset(x, y, ...) of arrays"
            )


def _refuse_long_lag(train: Dataset, valid: Dataset, lag: int) -> None:
    # A model is validated on frames that are whole lags after t = 0.
    if train.count_pairs(lag) and not np.isnan(valid.y[:, lag::lag]).all():
        return
    short = min(data.y.shape[1] for data in (train, valid))
    raise InputError(
        f"`lag` is {lag} and trajectories have {short} frames; training needs two frames that are "
        "a lag apart, and validation one that is a lag after the first: choose a smaller lag, or "
        "longer trajectories"
    )


def _complete_training(
    training: TrainingSpec, epochs: int | None, seed: int | None, lag: int
) -> TrainingSpec:
    changes = {"epochs": epochs, "seed": seed, "lag": lag}
    given = {key: value for key, value in changes.items() if value is not None}
    return TrainingSpec.model_validate({**training.model_dump(), **given})


def _split_validation(train: Dataset) -> tuple[Dataset, Dataset]:
    states = train.count_initial_states()
    if states < 2:
        say("there is one initial state only: it trains and validates, so expect worse on others")
        return train, train
    fraction = max(_VALIDATION, 1 / states)
    rest, valid = train.split(1 - fraction, fraction, seed=0)
    return rest, valid


@torch.no_grad()
def _refuse_other_size(architecture: ModelSpec, frames: Frames) -> None:
    """Refuses a user's module that does not give latent states of the stated size."""
    module = architecture.encoder.build(frames.microstate, architecture.latent_dim)
    first = frames.x(frames.pairs[:2])
    try:
        z = module.to(first.device).eval()(first)
    except (RuntimeError, ValueError, TypeError) as error:
        raise InputError(
            f"`encoder` does not take a batch of network input of shape {tuple(first.shape)}: "
            f"{' '.join(str(error).split())}"
        ) from error
    wanted = (len(first), architecture.latent_dim)
    if z.shape != wanted:
        raise InputError(
            f"`encoder` gives latent states of shape {tuple(z.shape)} where {wanted} are needed: "
            "give the method that `latent_dim`, or change the module"
        )
