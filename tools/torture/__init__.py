"""Campaigns of hostile tries: kills, power cuts, full disks, damaged files, wrong arguments.

Each campaign is a module with a function ``run(seconds, seed)`` that tries for so long and returns
a `Result`. `CAMPAIGNS` in `torture.command` names them. The tests use their parts for short series.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TypeAlias


@dataclass
class Result:
    """What a campaign found.

    Attributes
    ----------
    tried : int
    violated : int
        The tries after which a promise did not hold.
    what : list of str
        A line for each violation: how to repeat it, and what happened.
    note : str
        Why less was tried than could be, such as a missing permission.
    """

    tried: int = 0
    violated: int = 0
    what: list[str] = field(default_factory=list)
    note: str = ""

    def count(self, problem: str = "") -> None:
        """Count a try, and what was wrong with it, if anything."""
        self.tried += 1
        if problem:
            self.violated += 1
            self.what.append(problem)


#: Tries for so many seconds, with random numbers from a seed.
Campaign: TypeAlias = Callable[[float, int], Result]
