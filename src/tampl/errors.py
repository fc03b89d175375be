"""The one error for wrong input, and the one warning.

Whatever a user can get wrong (an argument, a recipe, a file) raises `InputError` with one line
that says what, where and what to do. The command line turns it into exit code 2; every other
exception is a bug of ours and exits with 1.
"""


class InputError(ValueError):
    """Wrong input: the message names the argument or file, the violated rule and the remedy."""


class ForecastWarning(UserWarning):
    """A forecast that is not to be trusted: it starts, or runs, far from the training data."""
