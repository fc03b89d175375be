"""Pictures: a folder of PNG or TIFF files for each trajectory, or a TIFF of many pages.

Pictures are taken in the natural order of their names. Colours become gray, and 16 bits become 8:
a stored picture has one byte for each pixel.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import InputError
from .order import natural_key
from .tracks import Piece, Reading, Track

__all__ = ["PICTURES", "read_pictures"]

PICTURES = (".png", ".tif", ".tiff")


def read_pictures(text: str, reading: Reading) -> list[Track]:
    """The one track of a folder of pictures or of a TIFF file."""
    if reading.kind not in (None, "image"):
        raise InputError(f"`--kind` is {reading.kind!r}; {text} holds pictures, of kind `image`")
    path = Path(text)
    if path.is_file():
        with _open(path) as picture:
            pages = int(getattr(picture, "n_frames", 1))
        return [Track(str(path), path, pages, lambda frames: Piece(_read_pages(path, frames)))]
    if not path.is_dir():
        raise InputError(f"{path} does not exist: give the folder of a trajectory's pictures")
    inside = [file for file in path.iterdir() if not file.name.startswith(".")]
    files = sorted(
        (file for file in inside if file.suffix.lower() in PICTURES),
        key=lambda file: natural_key(file.name),
    )
    if not files:
        raise InputError(f"{path} holds no pictures, PNG or TIFF: give one folder a trajectory")
    if len({file.suffix.lower() for file in files}) > 1:
        raise InputError(f"{path} holds PNG and TIFF pictures; keep those of one format")
    return [Track(str(path), path, len(files), lambda frames: Piece(_read_files(files, frames)))]


def _read_files(files: list[Path], frames: range) -> NDArray[np.uint8]:
    def pictures() -> Iterator[tuple[str, NDArray[np.uint8]]]:
        for k in frames:
            with _open(files[k]) as picture:
                yield str(files[k]), _to_gray(picture, str(files[k]))

    return _stack(pictures())


def _read_pages(path: Path, frames: range) -> NDArray[np.uint8]:
    def pictures() -> Iterator[tuple[str, NDArray[np.uint8]]]:
        with _open(path) as picture:
            for k in frames:
                picture.seek(k)
                yield f"{path}, page {k}", _to_gray(picture, f"{path}, page {k}")

    return _stack(pictures())


def _stack(pictures: Iterator[tuple[str, NDArray[np.uint8]]]) -> NDArray[np.uint8]:
    stack: list[NDArray[np.uint8]] = []
    for name, picture in pictures:
        if stack and picture.shape != stack[0].shape:
            raise InputError(
                f"{name} has {picture.shape[0]} x {picture.shape[1]} pixels, where the pictures "
                f"before it have {stack[0].shape[0]} x {stack[0].shape[1]}"
            )
        stack.append(picture)
    return np.stack(stack)


def _open(path: Path) -> Any:  # noqa: ANN401
    from PIL import Image, UnidentifiedImageError

    try:
        return Image.open(path)
    except (UnidentifiedImageError, OSError, ValueError) as error:
        raise InputError(f"{path} is no picture that can be read ({error})") from error


def _to_gray(picture: Any, name: str) -> NDArray[np.uint8]:  # noqa: ANN401
    if picture.mode == "F":
        raise InputError(
            f"{name} holds floating-point pixels, whose white nobody says: save it with 8 or 16 "
            "bits"
        )
    try:
        if picture.mode.startswith("I"):
            # 65535 becomes 255, and 257 levels become one.
            return (np.asarray(picture).astype(np.uint32) // 257).astype(np.uint8)
        return np.asarray(picture.convert("L"))
    except (OSError, ValueError, SyntaxError) as error:
        raise InputError(f"{name} is a damaged picture ({error})") from error
