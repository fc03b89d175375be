"""The provenance of a result: hardware, versions, commit and command."""

import os
import platform
import subprocess
import sys
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from ..version import __version__

__all__ = ["provenance"]

PACKAGES = ("torch", "numpy", "scipy", "numba", "h5py", "zuko")


def provenance(device: str = "cpu") -> dict[str, object]:
    """Describes this process and machine as plain data.

    Arguments:
        device: The device that was used.
    """
    return {
        "tampl": __version__,
        "python": platform.python_version(),
        "packages": {name: _find_version(name) for name in PACKAGES},
        "cpu": _find_cpu(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "device": torch.cuda.get_device_name(device) if device.startswith("cuda") else "cpu",
        "commit": _find_commit(),
        "command": _describe_command(),
    }


def _describe_command() -> str:
    program = Path(sys.argv[0])
    words = [program.name]
    if program.name == "__main__.py":
        words = ["python", "-m", program.parent.name]
    # A script of the tree is named as one calls it there; the folder of an entry point is noise.
    elif program.suffix == ".py" and program.absolute().is_relative_to(Path.cwd()):
        words = ["python", str(program.absolute().relative_to(Path.cwd()))]
    return " ".join([*words, *sys.argv[1:]])


def _find_version(package: str) -> str | None:
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _find_cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    return next((line.split(":")[1].strip() for line in lines if "model name" in line), "unknown")


@cache
def _find_commit() -> str | None:
    """The commit of the source tree, marked where it has changes; None outside a checkout.

    Git is asked once, since the process runs the code as it was loaded, whatever is committed
    meanwhile. For a copy of the tree without its history, the environment variable TAMPL_COMMIT
    gives the commit.
    """
    if told := os.environ.get("TAMPL_COMMIT"):
        return told
    root = Path(__file__).parents[3]
    if not (root / ".git").exists():  # installed, perhaps below some other project's checkout
        return None
    git = ["git", "-C", str(root), "describe", "--always", "--dirty"]
    try:
        answer = subprocess.run(git, capture_output=True, text=True, check=True, timeout=10)
    except (OSError, subprocess.SubprocessError):
        return None
    return answer.stdout.strip()
