"""The figures: predictions, twins, comparison, strip, training curves, latent scale, schematic.

Each function returns a `matplotlib.figure.Figure` made without pyplot, so that no window system
and no global state is involved; `save_figure` writes it as PNG and PDF. Bands are one standard
deviation over members on each side of the mean.
"""

from .cases import predictions, twins
from .comparisons import comparison, strip
from .files import png_bytes, save_figure
from .histories import latent_scale, latent_scales, training_curves
from .schematics import schematic
from .sweeps import sensitivity

__all__ = [
    "comparison",
    "latent_scale",
    "latent_scales",
    "png_bytes",
    "predictions",
    "save_figure",
    "schematic",
    "sensitivity",
    "strip",
    "training_curves",
    "twins",
]
