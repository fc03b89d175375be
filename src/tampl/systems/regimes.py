"""Three chains of 300 beads whose futures differ: fast, medium and slow to unfold.

The test split of the polymer starts from these fixed configurations. They are coordinates,
(3, 300, 3) in single precision, in a file beside this one, made by
`results/polymer_calibration.py`: snapshots of chains in flow, chosen for their extension and for
the distribution of the times in which they go on to unfold.
"""

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import InputError

__all__ = ["BEADS", "NAMES", "PATH", "load_regimes", "save_regimes"]

NAMES = ("fast", "medium", "slow")
BEADS = 300
PATH = Path(__file__).with_name("polymer_regimes.npy")


def load_regimes(path: Path = PATH) -> dict[str, NDArray[np.float32]]:
    """The configurations by name, each (300, 3) relative to its centre of mass."""
    if not path.is_file():
        raise InputError(
            f"{path} is missing, and with it the configurations that the test split starts from: "
            "make it by `python results/polymer_calibration.py regimes` on a machine with a GPU, "
            "or choose `system.regimes = false` for random coils"
        )
    try:
        chains = np.load(path, allow_pickle=False)
        if chains.shape != (len(NAMES), BEADS, 3):
            raise ValueError(f"an array of shape {chains.shape}")
    except (OSError, ValueError, EOFError) as error:
        raise InputError(f"{path} is damaged ({error}): install tampl again") from error
    return dict(zip(NAMES, chains, strict=True))


def save_regimes(chains: dict[str, NDArray[Any]], path: Path = PATH) -> None:
    """Writes the configurations, given by name."""
    np.save(path, np.stack([chains[name] for name in NAMES]).astype(np.float32))
