"""All that exists because a paper is reproduced: experiments, their runner, the paper's numbers and the ledger.

The core, everything else in `lapbook`, imports nothing from here.
"""

from lapbook.reproduction import paper

__all__ = ["paper"]
