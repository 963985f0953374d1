"""Where we do otherwise than the paper, or had to choose: from claims.toml."""

from typing import NamedTuple

from lapbook.reproduction.paper import TEXTS


class Deviation(NamedTuple):
    """Where we do otherwise than the paper, or had to choose."""

    what: str
    paper: str
    here: str
    chapter: str
    """Number of the one that tells more."""


DEVIATIONS = tuple(Deviation(**deviation) for deviation in TEXTS["deviations"])
