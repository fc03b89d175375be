"""The base of all plain data that recipes, stores and models are made of."""

from pydantic import BaseModel, ConfigDict

__all__ = ["Frozen"]


class Frozen(BaseModel):
    """Plain data with types, checked when it is made and never changed afterwards.

    Unknown keys and numbers that are not finite are refused.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
