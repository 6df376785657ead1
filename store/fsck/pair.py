"""The state of a (person, app) pair, as a check read it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from store import keys
from store.engine.scripts import Reply


class DocumentRow(NamedTuple):
    """A document: metadata (empty: none), bytes of the sealed document (0: none), index score (None: not there)."""

    meta: bytes
    sealed: int
    score: bytes | None


def rows_of(reply: Reply) -> dict[bytes, DocumentRow]:
    """The rows of a page, by name."""
    return {name: DocumentRow(meta, sealed, score) for name, meta, sealed, score in reply.rows("rows")}


@dataclass(slots=True)
class Pair:
    """The state of a pair at one moment: the store's time; ms left of the keys by noun (-2: missing); the grant;
    whether the person exists, is being deleted, has the app in the row, and is in the list of the shard; the numbers of
    documents, metadata and names; the usage; and a row for each name."""

    user: str
    client: str
    now: int
    lefts: dict[str, int]
    grant: dict[str, bytes]
    person: tuple[bool, ...]
    counts: tuple[int, ...]
    usage: dict[str, bytes]
    rows: dict[bytes, DocumentRow] = field(default_factory=dict)

    @property
    def stamp(self) -> tuple[object, ...]:
        """A stamp that differs after every change: a write moves the sequence, a deletion the number of documents."""
        return self.usage.get("sequence"), self.usage.get("documents"), self.counts

    @property
    def named(self) -> dict[str, str]:
        """The keys of the pair, by noun."""
        return {**keys.hosted(self.user, self.client), "grant": keys.grant(self.user, self.client)}
