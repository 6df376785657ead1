"""How many connected apps, sessions and token families a person may have at a time.

Scripts that read all of a person's look at no more than these, so nobody makes the store slow for everybody else. A
store that has more, of an earlier release or from before a bound was lowered, keeps them: only what is new is held
against it.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(slots=True)
class Bounds:
    """Shared by the nouns that hold something against it, and changed in place where settings are read again.

    `grants`: apps connected, with those disconnected of which documents are kept; beyond it a consent is refused.
    `sessions`: browsers signed in; beyond it the one idle the longest is signed out. `families`: token families of one
    person for one app; beyond it the one that would end first ends.
    """

    grants: int = 200
    sessions: int = 100
    families: int = 100

    def take(self, other: Bounds) -> None:
        """From now on these hold."""
        self.grants, self.sessions, self.families = other.grants, other.sessions, other.families
