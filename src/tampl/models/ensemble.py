r"""Several trained models of one system, whose forecasts are pooled.

Trainings that differ in their seed agree where the data decide and differ where they do not. With
mean mu_k and variance s_k^2 of the n_k members of model k, in units of the training set's standard
deviation,

    W = <s_k^2>,        B = Var_k(mu_k) - <s_k^2 / n_k>

are the variances within and between models, both averaged over models, observables and times
t > 0; the last term takes away what the means of finite ensembles differ by. B is the part of a
forecast's variance that no single model knows of, and sqrt(B) is the forecast's *disagreement*.
"""

import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, overload

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from ..data.dataset import Normalization
from ..description import Description, refuse_other_system
from ..errors import ForecastWarning, InputError
from ..forecast import Forecast, Moments
from ..seeding import stream
from .model import MacroModel, load_model

__all__ = ["MEMBER_FILES", "Ensemble", "load"]

MEMBER_FILES = "model-*.safetensors"
"""The models of an ensemble in its folder."""


class Ensemble:
    """Models of one system that forecast together.

    Arguments:
        models: Two or more trained models, usually of the same settings and different seeds.

    Example:
        >>> model = tampl.TamplPlus().fit(train, models=3)  # doctest: +SKIP
        >>> tampl.Ensemble([first, second, third]).forecast(x0).mean  # doctest: +SKIP
    """

    def __init__(self, models: Sequence[MacroModel]) -> None:
        self.models = tuple(models)
        if len(self.models) < 2 or not all(isinstance(m, MacroModel) for m in self.models):
            names = [type(model).__name__ for model in self.models]
            raise InputError(f"`models` is {names}; an ensemble needs two trained models or more")
        for model in self.models[1:]:
            refuse_other_system(self.description, model.description, whose="the first model")

    def __repr__(self) -> str:
        return f"Ensemble({len(self.models)} models, the first: {self.models[0]!r})"

    @property
    def description(self) -> Description:
        """What the models were trained on."""
        return self.models[0].description

    @property
    def normalization(self) -> Normalization:
        """Statistics of the training macrostates, those of the first model."""
        return self.models[0].normalization

    @property
    def mean_trajectory(self) -> Tensor | None:
        """The mean training trajectory of the first model."""
        return self.models[0].mean_trajectory

    @property
    def stochastic(self) -> bool:
        """Whether two rollouts of one of the models differ."""
        return any(model.stochastic for model in self.models)

    @property
    def needs_macrostates(self) -> bool:
        """Whether one of the models starts from y_0 instead of x_0."""
        return any(model.needs_macrostates for model in self.models)

    @property
    def carries_macrostate(self) -> bool:
        """Whether y is part of the state of one of the models."""
        return any(model.carries_macrostate for model in self.models)

    @overload
    def forecast(
        self,
        x0: ArrayLike,
        y0: ArrayLike | None = None,
        *,
        horizon: int | None = None,
        members: int = 64,
        seed: int = 0,
        limits: bool = True,
        keep: Literal["samples"] = "samples",
        progress: bool = True,
    ) -> Forecast: ...

    @overload
    def forecast(
        self,
        x0: ArrayLike,
        y0: ArrayLike | None = None,
        *,
        horizon: int | None = None,
        members: int = 64,
        seed: int = 0,
        limits: bool = True,
        keep: Literal["moments"],
        progress: bool = True,
    ) -> Moments: ...

    def forecast(
        self,
        x0: ArrayLike,
        y0: ArrayLike | None = None,
        *,
        horizon: int | None = None,
        members: int = 64,
        seed: int = 0,
        limits: bool = True,
        keep: Literal["samples", "moments"] = "samples",
        progress: bool = True,
    ) -> Forecast | Moments:
        """Forecasts with all models and pools their members.

        Arguments are those of `MacroModel.forecast`. `members` is the number of all of them, as
        evenly shared between the models as can be; a deterministic model gives one.
        """
        count = len(self.models)
        if not isinstance(members, int | np.integer) or members < count:
            raise InputError(f"`members` is {members!r}; {count} models need {count} at least")
        found: list[Any] = []
        settings: dict[str, Any] = {
            "horizon": horizon, "limits": limits, "keep": keep, "progress": progress
        }  # fmt: skip
        with warnings.catch_warnings():
            # What single models are warned of is said once, of the pooled forecast.
            warnings.simplefilter("ignore", ForecastWarning)
            for number, model in enumerate(self.models):
                own = int(members) // count + (number < members % count)
                noise = int(stream(seed, "ensemble", number).generate_state(1)[0])
                found.append(model.forecast(x0, y0, members=own, seed=noise, **settings))
        disagreement = _find_disagreement(found, self.normalization.std)
        pooled: Forecast | Moments = found[0].pool(found[1:], disagreement)
        for line in pooled.warnings:
            warnings.warn(line, ForecastWarning, stacklevel=2)
        return pooled

    def save(self, path: str | Path) -> None:
        """Saves every model to one file in a new folder, which `tampl.load` takes."""
        folder = Path(path)
        if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
            raise InputError(f"`path` is {folder}, which exists; an ensemble needs a new folder")
        folder.mkdir(parents=True, exist_ok=True)
        for number, model in enumerate(self.models):
            model.save(folder / MEMBER_FILES.replace("*", f"{number:03d}"))


def load(
    path: str | Path,
    *,
    encoder: torch.nn.Module | None = None,
    device: torch.device | str = "auto",
) -> MacroModel | Ensemble:
    """Loads a model from the file, or an ensemble of models from the folder, that `save` wrote.

    Arguments:
        path: The file or the folder.
        encoder: As for `load_model`; not for ensembles.
        device: Where to put the models; "auto" takes a GPU where there is one.
    """
    files = sorted(Path(path).glob(MEMBER_FILES)) if Path(path).is_dir() else []
    if not files:
        return load_model(path, encoder=encoder, device=device)
    if encoder is not None:
        raise InputError("`encoder` is given; load the models of an ensemble one by one with it")
    return Ensemble([load_model(file, device=device) for file in files])


def _find_disagreement(
    forecasts: Sequence[Forecast | Moments], scale: NDArray[np.float64]
) -> NDArray[np.float64]:
    """sqrt(B) of every initial state, (G,)."""
    means = np.stack([forecast.mean[:, 1:] for forecast in forecasts]) / scale
    variances = np.stack([(forecast.std[:, 1:] / scale) ** 2 for forecast in forecasts])
    counts = np.array([forecast.members for forecast in forecasts])[:, None, None, None]
    between = means.var(axis=0, ddof=1) - (variances / counts).mean(axis=0)
    return np.sqrt(np.maximum(between.mean(axis=(1, 2)), 0.0))
