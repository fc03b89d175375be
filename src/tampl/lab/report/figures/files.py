"""Figures as files and as bytes, the same bytes for the same figure."""

import io
from pathlib import Path

from matplotlib import rc_context
from matplotlib.figure import Figure

from ....files import replacing
from . import style

__all__ = ["png_bytes", "save_figure"]


def save_figure(figure: Figure, stem: str | Path) -> tuple[Path, Path]:
    """Writes `stem`.png (150 dpi) and `stem`.pdf and returns both paths."""
    stem = Path(stem)
    png, pdf = (stem.with_name(f"{stem.name}.{form}") for form in ("png", "pdf"))
    for path in (png, pdf):
        with replacing(path) as temporary:
            temporary.write_bytes(_rendered(figure, path.suffix[1:]))
    return png, pdf


def png_bytes(figure: Figure) -> bytes:
    """The figure as a PNG image (150 dpi), for a page that holds its images itself."""
    return _rendered(figure, "png")


@rc_context(style.RC)
def _rendered(figure: Figure, form: str) -> bytes:
    buffer = io.BytesIO()
    # Without a date the same figure gives the same bytes.
    metadata = {"CreationDate": None} if form == "pdf" else None
    figure.savefig(
        buffer, format=form, dpi=150, bbox_inches="tight", pad_inches=0.05, metadata=metadata
    )
    return buffer.getvalue()
