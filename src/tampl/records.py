"""The base of all records that recipes, stores and checkpoints are made of.

A record is frozen, refuses keys it does not know and numbers that are not finite.
"""

from pydantic import BaseModel, ConfigDict

__all__ = ["Record"]


class Record(BaseModel):
    """Plain data with types, checked when it is made."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)
