"""How to train: seed, epochs, batches and optimisers, the same for all methods compared."""

from typing import Any, Literal

from pydantic import (
    Field,
    NonNegativeInt,
    PositiveFloat,
    SerializerFunctionWrapHandler,
    model_serializer,
)

from ..frozen import BatchSize, Count, Frozen
from ..microstates import Symmetry

__all__ = ["OptimiserSpec", "TrainingSpec"]


class OptimiserSpec(Frozen):
    """AdamW with a cosine schedule, gradient clipping and an average of the weights.

    Attributes:
        learning_rate: The rate at the start.
        final_fraction: The rate at the end over the rate at the start; 1 keeps it constant.
        weight_decay: AdamW's decoupled decay.
        clip: Largest norm of a step's gradient; 0 for no clipping.
        average: Decay of the exponential average of the weights that the model is made of; 0 to
            use the last weights.
    """

    learning_rate: PositiveFloat = 1e-3
    final_fraction: float = Field(0.01, ge=0, le=1)
    weight_decay: float = Field(0.01, ge=0)
    clip: float = Field(1.0, ge=0)
    average: float = Field(0.0, ge=0, lt=1)


class TrainingSpec(Frozen):
    """How long and how to train; the same for every method of a comparison.

    Attributes:
        seed: Governs initial weights, batch order and noise.
        epochs: Epochs of each of a method's turns.
        batch_size: Pairs in a batch.
        lag: Frames of the data in one step of the model; longer than one, its forecasts have as
            much fewer frames.
        window: Frames in a window; batches are made of windows, of one pair each by default.
        order: Of the windows in a pass: "random", or "blocks": blocks of the data in random order,
            some of them at a time, whose windows are mixed. Blocks are for data that are read
            from a disk which is slow at random places.
        fraction: Share of the windows that an epoch sees.
        partitions: Parts that the trajectories are cut into, of which every batch takes equally
            many windows. Several processes that train together hold whole partitions, so their
            number must divide this one.
        symmetries: Motions that the system's laws and observables allow; every trajectory is moved
            anew in each part of the training.
        representation: Optimiser of stages that move the encoder.
        transition: Optimiser of stages on a frozen representation.
        validate_every: Epochs between validations, in the second half of the training.
        validation_members: Rollouts from each validation microstate.
        save_every: Epochs between checkpoints to resume from.
    """

    seed: NonNegativeInt = 42
    epochs: Count
    batch_size: BatchSize = 512
    lag: Count = 1
    window: int = Field(2, ge=2)
    order: Literal["random", "blocks"] = "random"
    fraction: float = Field(1.0, gt=0, le=1)
    partitions: Count = 1
    symmetries: tuple[Symmetry, ...] = ()
    representation: OptimiserSpec = OptimiserSpec()
    transition: OptimiserSpec = OptimiserSpec()
    validate_every: Count = 5
    validation_members: Count = 8
    save_every: Count = 5

    @model_serializer(mode="wrap")
    def _leave_out_the_usual(self, dump: SerializerFunctionWrapHandler) -> dict[str, Any]:
        # Runs from before there was such a choice are those of the same recipe.
        usual = {"lag": 1, "order": "random", "partitions": 1}
        return {k: v for k, v in dump(self).items() if k not in usual or v != usual[k]}

    @property
    def averaged(self) -> OptimiserSpec:
        """`representation` with the average of `transition`.

        For stages that move the encoder and are not alternated with others: nothing has to follow
        the encoder step by step, and what an average gains, no method goes without.
        """
        return self.representation.model_copy(update={"average": self.transition.average})
