"""/api/v1/data: hosted documents. SPEC 4.6."""

from __future__ import annotations

import base64
import binascii
import re
from functools import partial

import orjson

from handlers.core.api import ApiHandler
from handlers.core.base import http_date
from handlers.core.params import once, parse_pairs
from store.documents.documents import Conditions, DocumentPage, document_record
from store.json_text import NotJSON, check_json
from store.refused import Refused
from store.results import Caller

COLLECTION = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")
DOCUMENT_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:@~-]{0,127}")
PREFIX = re.compile(r"[A-Za-z0-9_.:@~-]{0,128}")
MOST_IF_MATCH = 4096
"""The longest If-Match, in characters: 170 of the longest ETags."""
_ETAG = re.compile(r'"(\d{1,20})"')
MOST_ITEMS = 200


def check_names(collection: str, document_id: str | None = None) -> None:
    """Raises Refused("invalid_request") for an invalid name of a collection or a document."""
    if not COLLECTION.fullmatch(collection):
        raise Refused(
            "invalid_request", "A collection is 1 to 64 of A-Z a-z 0-9 _ . - and begins with one of A-Z a-z 0-9."
        )
    if document_id is not None and not DOCUMENT_ID.fullmatch(document_id):
        raise Refused(
            "invalid_request",
            "A document id is 1 to 128 of A-Z a-z 0-9 _ . : @ ~ - and begins with one of A-Z a-z 0-9.",
        )


class DocumentHandler(ApiHandler):
    """One document."""

    @property
    def max_body(self) -> int:
        """The document's own limit, which replaces the server's."""
        return self.store.documents.quotas.document_bytes

    too_large = "document_too_large"

    async def get(self, collection: str, document_id: str) -> None:
        """Answers with the bytes that were stored. Ignores conditions of a GET in v1 (SPEC 9)."""
        caller = await self.caller()
        check_names(collection, document_id)
        found, content, window = await self.store.documents.read(caller, self.needed, collection, document_id)
        self.write_window(window)
        headers = {
            "Etag": f'"{found.etag}"',
            "Last-Modified": http_date(found.updated // 1000),
            "Cache-Control": "private, no-cache",
        }
        self.write_whole(content, headers)

    async def put(self, collection: str, document_id: str) -> None:
        """Stores the body unchanged. The answer never has the content."""
        caller = await self.caller()
        check_names(collection, document_id)
        kind = self.request.headers.get("Content-Type", "application/json").partition(";")[0].strip().lower()
        if kind != "application/json" and not kind.endswith("+json"):
            raise Refused("unsupported_media_type", "A document is application/json.")
        conditions, body = self.conditions(), self.request.body
        counted = await self.check_content(caller, body)
        found, created, window = await self.store.documents.write(
            caller, self.needed, collection, document_id, body, conditions, counted=counted
        )
        self.write_window(window)
        self.set_header("ETag", f'"{found.etag}"')
        self.write_json(document_record(found), 201 if created else 200)

    async def check_content(self, caller: Caller, body: bytes) -> bool:
        """Whether the window has counted this request; see `read_body`. Raises Refused."""

        def read() -> None:
            try:
                check_json(body)
            except NotJSON as error:
                raise Refused("invalid_request", str(error)) from None

        check = partial(self.store.documents.check, caller, self.needed)
        _, window = await self.read_body(caller.user, read, check)
        return window is not None

    async def delete(self, collection: str, document_id: str) -> None:
        """Answers 204."""
        caller = await self.caller()
        check_names(collection, document_id)
        conditions = self.conditions()
        if conditions.if_none_match:
            raise Refused("invalid_request", "If-None-Match is not supported here.")
        window = await self.store.documents.delete(caller, self.needed, collection, document_id, conditions)
        self.write_window(window)
        self.set_status(204)
        self.finish()

    def conditions(self) -> Conditions:
        """The conditions of RFC 9110 13.1.1 and 13.1.2. A weak or foreign ETag matches nothing."""
        if_match = self._condition("If-Match")
        if_none = self._condition("If-None-Match")
        if if_none not in (None, "*"):
            raise Refused("invalid_request", "The only condition of If-None-Match on a write is *.")
        if if_match is not None and if_match != "*":
            if len(if_match) > MOST_IF_MATCH:
                raise Refused("invalid_request", "If-Match is too long.")
            numbers = (_ETAG.fullmatch(tag.strip()) for tag in if_match.split(","))
            # No document has the ETag 0.
            if_match = " ".join(match[1] if match else "0" for match in numbers)
        return Conditions(if_match or "", if_none == "*")

    def _condition(self, name: str) -> str | None:
        """The header, or None if it is missing. A header without a tag is a condition that nothing meets."""
        lines = self.request.headers.get_list(name)
        return ",".join(lines).strip() if lines else None


class CollectionHandler(ApiHandler):
    """The documents of a collection."""

    async def get(self, collection: str) -> None:
        """Answers with a page in order of ids. An unknown collection is empty."""
        caller = await self.caller()
        check_names(collection)
        params = once(parse_pairs(self.request.query))
        prefix = params.get("prefix") or ""
        if not PREFIX.fullmatch(prefix):
            raise Refused("invalid_request", "prefix has a character that no document id has.")
        include = params.get("include")
        if include not in (None, "data"):
            raise Refused("invalid_request", "include is data or left out.")
        page, window = await self.store.documents.list(
            caller,
            self.needed,
            collection,
            prefix=prefix,
            after=_read_cursor(params.get("cursor")),
            most=_read_limit(params.get("limit")),
            content=include == "data",
        )
        self.write_window(window)
        cursor = _cursor(page.items[-1][0].document_id) if page.more else None
        if include is None:
            items = [document_record(found, with_collection=False) for found, _ in page.items]
            self.write_json({"items": items, "nextCursor": cursor})
        else:
            self.write_whole(_spliced(page, cursor), {})


class UsageHandler(ApiHandler):
    """The storage that the app uses for the person."""

    async def get(self) -> None:
        """Answers with the use and the limits."""
        usage, window = await self.store.documents.usage(await self.caller(), self.needed)
        documents = self.store.documents
        quotas = documents.quotas
        # One app can't store more than the limit of all apps together.
        most, most_bytes = min(quotas.documents, quotas.person_documents), min(quotas.bytes, documents.person_bytes)
        self.write_window(window)
        self.write_json(
            {
                "documents": {"used": usage.documents, "limit": most},
                "bytes": {"used": usage.bytes, "limit": most_bytes},
                "maxDocumentBytes": quotas.document_bytes,
                "collections": [
                    {"name": name, "documents": number, "bytes": size} for name, number, size in usage.collections
                ],
            }
        )


def _spliced(page: DocumentPage, cursor: str | None) -> bytes:
    """A page with the text of its documents. The text is copied, because parsing and writing it could change it."""
    items = []
    for found, content in page.items:
        assert content is not None
        head = orjson.dumps(document_record(found, with_collection=False))
        items.append(b'%b,"data":%b}' % (head[:-1], content))
    return b'{"items":[%b],"nextCursor":%b}' % (b",".join(items), orjson.dumps(cursor))


def _read_limit(text: str | None) -> int:
    if text is None:
        return 50
    if not re.fullmatch(r"[0-9]{1,3}", text) or not 1 <= int(text) <= MOST_ITEMS:
        raise Refused("invalid_request", f"limit is 1 to {MOST_ITEMS}.")
    return int(text)


def _cursor(document_id: str) -> str:
    return base64.urlsafe_b64encode(document_id.encode()).rstrip(b"=").decode()


def _read_cursor(text: str | None) -> str:
    if text is None:
        return ""
    try:
        document_id = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        document_id = ""
    if not DOCUMENT_ID.fullmatch(document_id):
        raise Refused("invalid_request", "cursor is not one this server gave.")
    return document_id
