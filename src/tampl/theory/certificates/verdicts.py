"""The verdicts of certificates: one word or two for each answer that there is.

A certificate's docstring says which of them it gives. Those of a batch are an array of plain
strings, which compare equal to these.
"""

from enum import StrEnum

__all__ = ["Verdict"]


class Verdict(StrEnum):
    """What a certificate says."""

    UNDECIDED = "undecided"
    DOES_NOT_APPLY = "does not apply"

    # Of realisations: whether there is one, and whether this is one.
    EXISTS = "exists"
    NONE_EXISTS = "none exists"
    EXACT = "exact"
    INEXACT = "inexact"

    # Of the weight of reconstruction.
    NO_ROOM = "no room"
    HARMFUL = "harmful"
    HARMLESS = "harmless"

    # Of one block of a round: the transition, and the scale of the encoder.
    CONTRACTS = "contracts"
    DIVERGES = "diverges"
    ANCHORED = "anchored"
    DISPLACED = "displaced"
    SHRINKS = "shrinks"
    FREE = "free"
    NOT_FORCED = "not forced"

    # Of points that updates go to or leave.
    CONVERGES = "converges"
    UNSTABLE = "unstable"
    ATTRACTOR = "attractor"
    SADDLE = "saddle"
    ORDERED = "ordered"
    NOT_ORDERED = "not ordered"
