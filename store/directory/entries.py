"""The entries of a person in the index: which texts, in which section and in which order.

The index has three families. `address` has the folded address, `name` the folded name begun at each of its words,
`domain` a digest of the domain and then the local part. A section has the entries that begin with the same two bytes
(of a domain: with the same byte of the digest), so sections follow the order of the texts. The first bytes are not
repeated in the entries.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Mapping
from functools import lru_cache
from typing import NamedTuple

from store.directory.folding import fold, name_texts

ADDRESS, NAME, DOMAIN = "address", "name", "domain"
FAMILIES = (ADDRESS, NAME, DOMAIN)
MAX_TEXT = 48
"""Bytes of a text in the index: with the id and the overhead, an entry stays within 64 bytes. People with the same
first 48 bytes differ by their rows."""
DOMAIN_BYTES = 4
"""Bytes of the digest of a domain. Domains that share them differ by the rows."""
ID_BYTES = 16


class Section(NamedTuple):
    """A section of a family; `begin`: the bytes with which all its texts begin."""

    family: str
    begin: bytes


class IndexEntry(NamedTuple):
    """An entry: its section, and the rest of the text with the id of the person."""

    section: Section
    rest: bytes

    @property
    def key(self) -> bytes:
        """The place of the entry in the order of its section."""
        return key_of(self.rest)


def begin_length(family: str) -> int:
    """How many bytes name a section of this family."""
    return 1 if family == DOMAIN else 2


def key_of(rest: bytes) -> bytes:
    """The place of an entry in the order of its section (`key_of` in `lua/include/directory/buckets.lua`)."""
    return rest[:-ID_BYTES] + b"\0" + rest[-ID_BYTES:]


def user_of(rest: bytes) -> str:
    """The user id of an entry."""
    return rest[-ID_BYTES:].hex()


def domain_text(domain: str, local: str) -> bytes:
    """The text in the family `domain`, for a folded local part or the beginning of one."""
    return _digest(domain) + local.encode()


@lru_cache(4096)
def _digest(domain: str) -> bytes:
    return hashlib.sha256(domain.encode()).digest()[:DOMAIN_BYTES]


def texts_of(family: str, email: str, name: str) -> list[bytes]:
    """The texts of a person in a family, in full. The index has their first MAX_TEXT bytes."""
    if family == NAME:
        return [text.encode() for text in name_texts(name)]
    if family == ADDRESS:
        return [fold(email).encode()]
    local, _, domain = email.rpartition("@")
    return [domain_text(domain, fold(local))]


def add_entries(into: Mapping[tuple[str, bytes], list[bytes]], user: str, email: str, name: str) -> None:
    """Adds the entries of a person to lists of rests, by family and beginning. A name may give an entry twice."""
    own = bytes.fromhex(user)
    for family in FAMILIES:
        length = begin_length(family)
        for text in texts_of(family, email, name):
            into[family, text[:length]].append(text[length:MAX_TEXT] + own)


def is_entry_of(entry: IndexEntry, user: str, email: str, name: str) -> bool:
    """Whether this is one of the `entries_of` a person."""
    (family, begin), rest = entry
    length, own = begin_length(family), bytes.fromhex(user)
    return bool(email) and any(
        text[:length] == begin and text[length:MAX_TEXT] + own == rest for text in texts_of(family, email, name)
    )


def entries_of(user: str, email: str, name: str) -> set[IndexEntry]:
    """All entries of a person; none without an address."""
    found: dict[tuple[str, bytes], list[bytes]] = defaultdict(list)
    if email:
        add_entries(found, user, email, name)
    return {IndexEntry(Section(*section), rest) for section, rests in found.items() for rest in rests}
