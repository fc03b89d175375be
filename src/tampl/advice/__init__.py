"""Advice on data before a model is trained: what they show by themselves, and in short trainings.

    print(tampl.advise(data))
    print(tampl.advise(data, full=True))

The room lies above methods and evaluation, because `full` trains; what it knows are arrays.
"""

from .quick import Advice, Remark, SeriesFacts, advise
from .series import autocorrelation, correlation_time, variogram
from .study import LearningCurve, Study, Training, fit_learning_curve

__all__ = [
    "Advice",
    "LearningCurve",
    "Remark",
    "SeriesFacts",
    "Study",
    "Training",
    "advise",
    "autocorrelation",
    "correlation_time",
    "fit_learning_curve",
    "variogram",
]
