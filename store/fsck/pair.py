"""What was seen of a pair of person and app."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple

from store import keys
from store.engine.scripts import Reply


class DocumentRow(NamedTuple):
    """A name: the metadata (empty: none), the bytes of the sealed document (0: none), the score (None: not named)."""

    meta: bytes
    sealed: int
    score: bytes | None


def rows_of(reply: Reply) -> dict[bytes, DocumentRow]:
    """A page."""
    return {name: DocumentRow(meta, sealed, score) for name, meta, sealed, score in reply.rows("rows")}


@dataclass(slots=True)
class Pair:
    """What was seen of a pair, all of one moment: the store's time; ms left of the keys by noun (-2: not there); the
    grant; whether there is the person, one who is being deleted, the app in the row, the person in the list of the
    shard; documents, metadata and names; usage; and for each name metadata, bytes of what is sealed, score."""

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
        """Another one after every change of the documents: a write moves the sequence, a deletion their number."""
        return self.usage.get("sequence"), self.usage.get("documents"), self.counts

    @property
    def named(self) -> dict[str, str]:
        """The keys by noun."""
        return {**keys.hosted(self.user, self.client), "grant": keys.grant(self.user, self.client)}
