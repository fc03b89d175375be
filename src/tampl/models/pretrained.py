"""ImageNet weights of ResNet-34: torchvision's public file, checked and adapted to gray pictures.

The file is looked for where torch keeps what it has downloaded (`torch.hub.get_dir()`), and
fetched once if it is not there; or its path is given. It is checked against its SHA-256, whose
first digits are in its name, before it is read, and it is read as tensors only, so no code in it
runs.
"""

import hashlib
from pathlib import Path

import torch
from torch import Tensor

from ..errors import InputError
from ..nn.images import IMAGENET_MEAN, ResNet

__all__ = ["URL", "load_imagenet"]

URL = "https://download.pytorch.org/models/resnet34-b627a593.pth"
DIGEST = "b627a593bcbe140c234610266fe4f8ae95ea42fc881d091c9b6052e6b1d0590f"


def load_imagenet(encoder: ResNet, weights: str) -> None:
    """Gives a ResNet-34 the weights of torchvision, all but those of its last layer.

    Arguments:
        encoder: The network; changed.
        weights: "imagenet", or the path of torchvision's file.
    """
    tensors = _read(_fetch() if weights == "imagenet" else Path(weights))
    # A gray picture has three equal channels: their weights add up.
    tensors["conv1.weight"] = tensors["conv1.weight"].sum(dim=1, keepdim=True)
    own = {name: value for name, value in encoder.state_dict().items() if name.startswith("fc.")}
    encoder.load_state_dict({**tensors, **own, "mean": torch.tensor(IMAGENET_MEAN)})


def _fetch() -> Path:
    path = Path(torch.hub.get_dir()) / "checkpoints" / Path(URL).name
    if path.is_file():
        return path
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.hub.download_url_to_file(URL, str(path), hash_prefix=DIGEST, progress=False)
    except (OSError, RuntimeError) as error:
        raise InputError(
            f"the ImageNet weights could not be had from {URL} ({error}): give the path of that "
            "file as `model.encoder.weights`, or start from random weights by "
            'weights = "none"'
        ) from error
    return path


def _read(path: Path) -> dict[str, Tensor]:
    if not path.is_file():
        raise InputError(
            f"`weights` is {str(path)!r}, and no such file exists: give torchvision's "
            f'{Path(URL).name}, or choose "imagenet" or "none"'
        )
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    if not digest.startswith(DIGEST):
        raise InputError(
            f"{path} is not torchvision's file: its SHA-256 begins with {digest[:8]}, not with "
            f"{DIGEST[:8]} (in full, it is {digest}, not {DIGEST}); get {URL} again"
        )
    return torch.load(path, map_location="cpu", weights_only=True)
