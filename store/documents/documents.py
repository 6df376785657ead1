"""Hosted documents: JSON that an app keeps on a person's behalf. SPEC 4.6; each call is one script."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any, NamedTuple

from store import keys
from store.crypto.cipher import Cipher
from store.documents.hosting import Hosting
from store.engine.memory import ROW, Headroom
from store.engine.scripts import Reply, Scripts
from store.lifetimes import Group
from store.moments import at, timestamp
from store.oauth.guard import admitted, check_token
from store.rates import Rates
from store.refused import Refused
from store.results import Caller, Window

MAX_PAGE_BYTES = 2**20
PERSON_PART = 64
LEAST_PERSON_BYTES = 4 * 2**20
_FULL = {
    **{
        what: f"The app keeps as many {what} for this person as it may."
        for what in ("documents", "collections", "bytes")
    },
    "person_documents": "All apps together keep as many documents for this person as they may.",
    "owner": "All apps of this app's owner together keep as much as they may.",
    "store": "All apps of this server together keep as much as they may.",
    "person_bytes": "All apps together keep as many bytes for this person as they may.",
}


@dataclass(frozen=True, slots=True)
class Quotas:
    """Quotas of one (app, user) pair, and of all apps for one person. Sizes are in bytes. With a `person_part` of n,
    `person_bytes` is also at most an nth of the store's limit, but never less than `LEAST_PERSON_BYTES`."""

    documents: int = 10_000
    collections: int = 1_000
    bytes: int = 64 * 2**20
    document_bytes: int = 256 * 2**10
    person_documents: int = 40_000
    person_bytes: int = 256 * 2**20
    person_part: int = PERSON_PART


class Conditions(NamedTuple):
    """The conditions of a request (RFC 9110 13.1). `if_match` is empty (none), `*`, or ETag numbers with spaces."""

    if_match: str = ""
    if_none_match: bool = False


class Metadata(NamedTuple):
    """A document without its content. `etag` is the number in the ETag; `size` is the bytes of the document as sent;
    `created` and `updated` are in epoch ms."""

    collection: str
    document_id: str
    etag: str
    size: int
    created: int
    updated: int

    @property
    def created_at(self) -> datetime:
        """When the document was created."""
        return at(self.created)

    @property
    def updated_at(self) -> datetime:
        """When the document was last written."""
        return at(self.updated)

    @property
    def name(self) -> str:
        """The document's name in the store: `collection/id`."""
        return f"{self.collection}/{self.document_id}"


def document_record(found: Metadata, *, with_collection: bool = True) -> dict[str, object]:
    """A document without its content, with the field names of the interface."""
    return {
        **({"collection": found.collection} if with_collection else {}),
        "id": found.document_id,
        "etag": f'"{found.etag}"',
        "size": found.size,
        "createdAt": timestamp(found.created_at),
        "updatedAt": timestamp(found.updated_at),
    }


class DocumentPage(NamedTuple):
    """A page of a collection. `content` belongs to the items, if requested; `more`: others follow."""

    items: tuple[tuple[Metadata, bytes | None], ...]
    more: bool


class Usage(NamedTuple):
    """The usage of a pair: documents, bytes, and (name, documents, bytes) of each collection, by name."""

    documents: int
    bytes: int
    collections: tuple[tuple[str, int, int], ...]


class Documents:
    """An app's operations on its documents. Each method raises Refused("invalid_token", "insufficient_scope" or
    "rate_limited"); the token must carry one of the scopes in `needed`."""

    def __init__(
        self, scripts: Scripts, cipher: Cipher, quotas: Quotas, hosting: Hosting, headroom: Headroom, rates: Rates
    ) -> None:
        self._scripts = scripts
        self._cipher = cipher
        self.quotas = quotas
        self._hosting = hosting
        self._headroom = headroom
        self._rates = rates

    @property
    def person_bytes(self) -> int:
        """The bytes that all apps together may keep for one person."""
        quotas, limit = self.quotas, self._headroom.seen.limit
        if not quotas.person_part or not limit:
            return quotas.person_bytes
        return min(quotas.person_bytes, max(LEAST_PERSON_BYTES, limit // quotas.person_part))

    def _full(self, owner: str) -> str:
        """Which limit stops documents from growing: `store` or `owner`; otherwise empty."""
        return "store" if self._headroom.low else "owner" if self._hosting.is_full(owner) else ""

    async def _run(self, script: str, caller: Caller, group: Group, needed: str, **args: Any) -> tuple[Reply, Window]:
        reply = await self._scripts.run(
            script,
            {
                **keys.token(caller.user, caller.client, caller.family, caller.generation),
                **keys.hosted(caller.user, caller.client),
                "window": keys.limit(caller.user, group.name, caller.client),
            },
            needed=caller.demands(needed),
            limit=group.limit,
            period=group.period,
            proof=caller.proof,
            **args,
        )
        window = admitted(reply, group, needed)
        if reply.word == "not_found":
            raise Refused("not_found", "There is no such document.", window=window)
        if reply.word == "precondition_failed":
            raise Refused("precondition_failed", window=window)
        if reply.word == "quota_exceeded":
            what = reply.text("what")
            raise Refused("quota_exceeded", _FULL[what], window=window)
        return reply, window

    async def check(self, caller: Caller, needed: str) -> Window:
        """Admits and counts a write before its body is read; tell `write` that it was `counted`."""
        return await check_token(self._scripts, caller, needed, self._rates.data_write, caller.client)

    async def read(
        self, caller: Caller, needed: str, collection: str, document_id: str
    ) -> tuple[Metadata, bytes, Window]:
        """The document, byte for byte as sent. Raises Refused("not_found")."""
        name = f"{collection}/{document_id}"
        reply, window = await self._run("read_document", caller, self._rates.data_read, needed, name=name)
        content = self._cipher.open(caller.user, caller.client, name, reply.raw("sealed"))
        return _metadata(collection, document_id, reply.number("size"), reply), content, window

    async def write(
        self,
        caller: Caller,
        needed: str,
        collection: str,
        document_id: str,
        content: bytes,
        conditions: Conditions,
        *,
        counted: bool = False,
    ) -> tuple[Metadata, bool, Window]:
        """Creates or replaces a document; True if it was created. `counted`: `check` has counted this request already.
        Raises Refused("precondition_failed" or "quota_exceeded")."""
        name = f"{collection}/{document_id}"
        reply, window = await self._run(
            "write_document",
            caller,
            self._rates.data_write,
            needed,
            name=name,
            collection=collection,
            sealed=self._cipher.seal(caller.user, caller.client, name, content),
            size=len(content),
            if_match=conditions.if_match,
            if_none="*" if conditions.if_none_match else "",
            max_documents=self.quotas.documents,
            max_collections=self.quotas.collections,
            max_bytes=self.quotas.bytes,
            usages=keys.usage_prefix(caller.user),
            person_documents=self.quotas.person_documents,
            person_bytes=self.person_bytes,
            full=self._full(caller.owner),
            counted="1" if counted else "",
        )
        created, growth = reply.word == "created", reply.number("growth")
        self._hosting.grew(caller.owner, int(created), growth)
        self._headroom.grew(growth + (ROW if created else 0))
        return _metadata(collection, document_id, len(content), reply), created, window

    async def delete(
        self, caller: Caller, needed: str, collection: str, document_id: str, conditions: Conditions
    ) -> Window:
        """Deletes a document. Raises Refused("not_found" or "precondition_failed")."""
        reply, window = await self._run(
            "delete_document",
            caller,
            self._rates.data_write,
            needed,
            name=f"{collection}/{document_id}",
            collection=collection,
            if_match=conditions.if_match,
        )
        self._hosting.grew(caller.owner, -1, -reply.number("size"))
        return window

    async def list(
        self,
        caller: Caller,
        needed: str,
        collection: str,
        *,
        prefix: str = "",
        after: str = "",
        most: int = 50,
        content: bool = False,
    ) -> tuple[DocumentPage, Window]:
        """A page of a collection in id order: ids that begin with `prefix`, after the id `after`, at most `most`. With
        content, a page ends with the document that exceeds 1 MiB in total."""
        reply, window = await self._run(
            "list_documents",
            caller,
            self._rates.data_list,
            needed,
            first=f"{collection}/{prefix}",
            # A cursor of another listing may sort before the prefix; it must not widen this listing.
            after=f"{collection}/{after}" if after and after >= prefix else "",
            past=f"{collection}/{prefix}\x7f",
            most=most,
            max_bytes=MAX_PAGE_BYTES if content else 0,
        )
        items = []
        for row in reply.rows("rows"):
            found = metadata_of(row)
            opened = self._cipher.open(caller.user, caller.client, found.name, row[5]) if content else None
            items.append((found, opened))
        return DocumentPage(tuple(items), reply.number("more") == 1), window

    async def usage(self, caller: Caller, needed: str) -> tuple[Usage, Window]:
        """The app's usage for the person."""
        reply, window = await self._run("read_usage", caller, self._rates.data_read, needed)
        return usage_of(reply.rows("fields")), window


def metadata_of(row: list[Any]) -> Metadata:
    """Parses a row of a listing: name, ETag, size, created, updated."""
    collection, _, document_id = row[0].decode().partition("/")
    return Metadata(collection, document_id, row[1].decode(), int(row[2]), int(row[3]), int(row[4]))


def usage_of(fields: list[bytes]) -> Usage:
    """Parses the usage row of a pair, an answer to HGETALL."""
    row = dict(zip(fields[::2], fields[1::2], strict=True))
    collections = sorted(
        (field[2:].decode(), int(number), int(row[b"b:" + field[2:]]))
        for field, number in row.items()
        if field.startswith(b"n:")
    )
    return Usage(int(row.get(b"documents", 0)), int(row.get(b"bytes", 0)), tuple(collections))


def _metadata(collection: str, document_id: str, size: int, reply: Reply) -> Metadata:
    return Metadata(
        collection,
        document_id,
        reply.text("etag"),
        size,
        reply.number("created_at"),
        reply.number("updated_at"),
    )
