"""The figures: predictions, twins, comparison, strip, calibration, training curves, sensitivity.

Each function returns a `matplotlib.figure.Figure` made without pyplot, so that no window system
and no global state is involved; `save_figure` writes it as PNG and PDF. Bands are one standard
deviation over members on each side of the mean.
"""

from .drawing import png_bytes, save_figure
from .forecasts import comparison, predictions, strip, twins
from .training import latent_scale, latent_scales, sensitivity, training_curves
from .trust import calibration, markov

__all__ = [
    "calibration",
    "comparison",
    "latent_scale",
    "latent_scales",
    "markov",
    "png_bytes",
    "predictions",
    "save_figure",
    "sensitivity",
    "strip",
    "training_curves",
    "twins",
]
