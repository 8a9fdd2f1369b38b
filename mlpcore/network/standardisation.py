"""Scaling of features before the first layer of a network that learned a stream."""

from mlpcore.checks import Record


class Standardisation(Record, frozen=True):
    """A feature x becomes (x - mean) factor, but no more than `limit` and no less than -`limit`."""

    means: tuple[float, ...]
    factors: tuple[float, ...]
    limit: float
