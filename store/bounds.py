"""How many connected apps, sessions and token families a person may have at a time.

Scripts that read all of a person's rows read no more than these, so nobody makes the store slow for everybody else. A
store may hold more, written by an earlier release or before a bound was lowered. It keeps them: only new ones are
checked against the bound.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Bounds:
    """Bounds shared by all nouns of the store; a reload of the settings changes them in place.

    `grants`: connected apps, and disconnected apps whose documents are kept; beyond it a consent is refused.
    `sessions`: signed-in browsers; beyond it the browser idle the longest is signed out. `families`: token families of
    one person for one app; beyond it the family that would expire first ends.
    """

    grants: int = 200
    sessions: int = 100
    families: int = 100

    def take(self, other: Bounds) -> None:
        """Replaces these bounds with the others."""
        self.grants, self.sessions, self.families = other.grants, other.sessions, other.families
