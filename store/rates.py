"""The rate limits of SPEC 8.1, which an operator may change."""

from __future__ import annotations

from dataclasses import dataclass, replace

from store.lifetimes import AI, DATA_LIST, DATA_READ, DATA_WRITE, OAUTH, Group


@dataclass(slots=True)
class Rates:
    """Windows shared by all nouns of the store; a reload of the settings changes them in place."""

    oauth: Group = OAUTH
    data_read: Group = DATA_READ
    data_write: Group = DATA_WRITE
    data_list: Group = DATA_LIST
    ai: Group = AI

    def take(self, *, oauth: int, data_read: int, data_write: int, data_list: int, ai: int) -> None:
        """Sets the requests that each window admits in a minute."""
        self.oauth = replace(OAUTH, limit=oauth)
        self.data_read = replace(DATA_READ, limit=data_read)
        self.data_write = replace(DATA_WRITE, limit=data_write)
        self.data_list = replace(DATA_LIST, limit=data_list)
        self.ai = replace(AI, limit=ai)

    def all(self) -> tuple[Group, ...]:
        """The windows as they are now."""
        return self.oauth, self.data_read, self.data_write, self.data_list, self.ai
