"""What requests and answers look like, and microstates on their way.

A microstate travels as shape, type and bytes in base 64, row by row and low byte first, which a
program makes of an array by `base64.b64encode(array.tobytes())`. A file of `numpy.save` travels as
it is; its header is read with care, because a file of some bytes may claim an array of any size.
"""

import base64
import binascii
import math
from io import BytesIO
from typing import Annotated, Any, Literal

import numpy as np
from numpy.typing import NDArray
from pydantic import BaseModel, ConfigDict, Field

from ..errors import InputError

__all__ = [
    "ClosureAnswer",
    "DrawAnswer",
    "DrawRequest",
    "ExhibitAnswer",
    "FamilyAnswer",
    "ForecastAnswer",
    "ForecastRequest",
    "HeldOutAnswer",
    "LatentAnswer",
    "ModelAnswer",
    "Problem",
    "SimulationRequest",
    "SliderAnswer",
    "StateAnswer",
    "StateRequest",
    "TrainingAnswer",
    "WireState",
    "pack_array",
    "read_npy",
]

MOST_MEMBERS = 256
MOST_STEPS = 65_536
"""Members times frames of one forecast."""

Seed = Annotated[int, Field(ge=0, lt=2**31)]
Members = Annotated[int, Field(ge=1, le=MOST_MEMBERS)]
Size = Annotated[int, Field(ge=1, le=2**20)]
Curve = list[list[float | None]]


class _Record(BaseModel):
    model_config = ConfigDict(extra="forbid", allow_inf_nan=False, frozen=True)


class WireState(_Record):
    """A microstate: shape, type, and bytes in base 64."""

    shape: list[Size] = Field(min_length=1, max_length=3)
    dtype: Literal["uint8", "uint16", "int64", "float32", "float64"]
    data: str

    def to_array(self) -> NDArray[Any]:
        """The array; refuses bytes that are too few or too many."""
        try:
            found = base64.b64decode(self.data, validate=True)
        except (binascii.Error, ValueError) as error:
            raise InputError(f"`data` is not in base 64 ({error})") from error
        dtype = np.dtype(self.dtype).newbyteorder("<")
        wanted = math.prod(self.shape) * dtype.itemsize
        if len(found) != wanted:
            raise InputError(
                f"`data` has {len(found)} bytes; {self.dtype} of shape {self.shape} has {wanted}"
            )
        return np.frombuffer(found, dtype).reshape(self.shape).astype(self.dtype)


def pack_array(array: NDArray[Any]) -> dict[str, Any]:
    """An array as a `WireState`."""
    plain = np.ascontiguousarray(array, array.dtype.newbyteorder("<"))
    return {
        "shape": list(array.shape),
        "dtype": array.dtype.name,
        "data": base64.b64encode(plain.tobytes()).decode(),
    }


def read_npy(content: bytes) -> NDArray[Any]:
    """The array of numbers in the bytes of an .npy file."""
    refusal = InputError("the file is not an .npy file of numbers; make one with numpy.save")
    file = BytesIO(content)
    try:
        version = np.lib.format.read_magic(file)
        reader = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }[version]
        shape, fortran, dtype = reader(file)
    except Exception as error:  # a header is an expression: whatever reading it raises
        raise refusal from error
    if dtype.kind not in "biuf" or dtype.itemsize > 8:
        raise InputError(f"the file holds {dtype}; a microstate is an array of plain numbers")
    data = content[file.tell() :]
    if any(size < 0 for size in shape) or math.prod(shape) * dtype.itemsize != len(data):
        raise InputError(f"the file is damaged: its array of shape {shape} is not complete")
    order: Literal["F", "C"] = "F" if fortran else "C"
    array = np.frombuffer(data, dtype).reshape(shape, order=order)
    return np.ascontiguousarray(array, dtype.newbyteorder("="))


class StateRequest(_Record):
    """A microstate."""

    state: WireState


class ForecastRequest(_Record):
    """A microstate to forecast from."""

    state: WireState
    y0: list[float] | None = Field(None, description="The macrostate at t = 0, where it is known.")
    horizon: Annotated[int, Field(ge=1, le=100_000)] | None = Field(
        None, description="Frames ahead; as many as a training trajectory has by default."
    )
    members: Members = 64
    seed: Seed = 0
    samples: bool = Field(False, description="Whether all members are wanted too.")


class SimulationRequest(_Record):
    """A microstate to simulate from."""

    state: WireState
    members: Members = 64
    seed: Seed = 0


class DrawRequest(_Record):
    """A family to draw microstates from."""

    family: Annotated[str, Field(max_length=100)]
    values: dict[Annotated[str, Field(max_length=100)], float] = Field(default={}, max_length=20)
    seed: Seed = 0
    count: Annotated[int, Field(ge=1, le=12)] = 1


class Problem(_Record):
    """Why a request was refused, in one line."""

    detail: str


class SliderAnswer(_Record):
    """A number that a family is drawn with."""

    key: str
    label: str
    lower: float
    upper: float
    step: float
    default: float


class FamilyAnswer(_Record):
    """A family of microstates."""

    name: str
    sliders: list[SliderAnswer]
    random: bool


class ModelAnswer(_Record):
    """A model that can be asked for forecasts by its number."""

    number: int
    name: str
    summary: str
    scale: list[float] = Field(description="Standard deviations of the training macrostates.")


class ExhibitAnswer(_Record):
    """What there is to see."""

    version: str
    system: str
    microstate: dict[str, Any]
    microstate_in_words: str
    state_names: list[str]
    observables: list[dict[str, Any]]
    interval: float
    frames: int
    time_unit: str
    models: list[ModelAnswer]
    families: list[FamilyAnswer]
    simulates: bool
    closures: list[str]
    held_out: int = Field(description="How many test states there are.")
    held_out_members: int
    start: "StateAnswer | None" = Field(description="A state to begin with.")


class StateAnswer(_Record):
    """A microstate in stored form, and its macrostate where it is known."""

    state: WireState
    y: list[float] | None
    label: str


class DrawAnswer(_Record):
    """Microstates of a family or of the test set."""

    states: list[StateAnswer]


class HeldOutAnswer(_Record):
    """What followed a test state."""

    macrostates: list[Curve]
    microstates: WireState | None
    every: int


class ForecastAnswer(_Record):
    """A forecast of one model."""

    times: list[float]
    mean: Curve
    std: Curve
    levels: list[float]
    quantiles: list[Curve]
    members: int
    held: float | None
    warnings: list[str]
    observed: bool
    seconds: float
    samples: list[Curve] | None


class LatentAnswer(_Record):
    """Latent trajectories in the plane of two principal components."""

    paths: list[Curve]


class ClosureAnswer(_Record):
    """The trajectory of a closure."""

    name: str
    macrostates: Curve


class TrainingAnswer(_Record):
    """The cloud of training states and the log of the training."""

    cloud: Curve | None
    epochs: list[int]
    losses: dict[str, list[float | None]]
    latent_std: list[float | None]
    validation: list[float | None]
    collapsed: list[bool]
    health: str
