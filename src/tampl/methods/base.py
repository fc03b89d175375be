"""What a method is: turns of stages for the one trainer.

A *stage* says which modules move and by which loss; a *turn* runs its stages in order, some number
of times. TAMPL repeats one turn of two stages, joint training one stage; methods in two steps have
two turns. A loss is pure: all randomness reaches it as data, drawn beforehand from a passed
generator.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence

from ..description import Description
from ..frozen import Frozen
from ..models import ModelSpec, Modules
from ..training.settings import TrainingSpec
from ..training.stages import Turn

__all__ = ["Method"]


class Method(Frozen, ABC):
    """Losses and schedule; what training yields is a `MacroModel` that needs no method.

    A method is a frozen record of its own settings, such as the weights of its losses.
    """

    @abstractmethod
    def modules(self, spec: ModelSpec, description: Description) -> Modules:
        """Builds the modules that are trained.

        Arguments:
            spec: The recipe's architecture; a method that needs another one builds that.
            description: The system.
        """

    @abstractmethod
    def turns(self, training: TrainingSpec) -> Sequence[Turn]:
        """The stages for the trainer."""
