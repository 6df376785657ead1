"""Tools for the documents that the app keeps for the person."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

import orjson

from handlers.documents.documents import DOCUMENT_ID, MOST_ITEMS, PREFIX, check_names
from handlers.mcp.tool import NUMBER, TEXT, Tool, ToolAnswer, ToolCall, ToolSchema
from store.documents.documents import Conditions, document_record
from store.refused import Refused

USUAL_ITEMS = 50
_ETAG = re.compile(r'"?(\d{1,20})"?')
_RECORD = {"id": TEXT, "etag": TEXT, "size": NUMBER, "createdAt": TEXT, "updatedAt": TEXT}
_COLLECTION: ToolSchema = {**TEXT, "description": "Name of the collection: letters, digits and _ . -"}
_ID: ToolSchema = {**TEXT, "description": "Name of the document in its collection: letters, digits and _ . : @ ~ -"}
_IF_MATCH: ToolSchema = {
    **TEXT,
    "description": "The etag from your last read: nothing is done if the document has changed since.",
}


async def list_collections(call: ToolCall) -> ToolAnswer:
    """The collections, with what is in them and how much more may be."""
    documents = call.request.store.documents
    usage, window = await documents.usage(call.caller, call.needed)
    call.request.write_window(window)
    quotas = documents.quotas
    rows = [{"name": name, "documents": number, "bytes": size} for name, number, size in usage.collections]
    most, most_bytes = min(quotas.documents, quotas.person_documents), min(quotas.bytes, documents.person_bytes)
    used = {"documents": usage.documents, "bytes": usage.bytes}
    limits = {"documents": most, "bytes": most_bytes, "documentBytes": quotas.document_bytes}
    return ToolAnswer({"collections": rows, "used": used, "limits": limits})


async def list_documents(call: ToolCall) -> ToolAnswer:
    """A page of a collection."""
    arguments = call.arguments
    collection, prefix = arguments.text("collection"), arguments.optional("prefix") or ""
    check_names(collection)
    if not PREFIX.fullmatch(prefix):
        raise Refused("invalid_request", "prefix has a character that no document id has.")
    after, most = _after(arguments.optional("cursor")), arguments.whole("limit", USUAL_ITEMS, MOST_ITEMS)
    page, window = await call.request.store.documents.list(
        call.caller, call.needed, collection, prefix=prefix, after=after, most=most
    )
    call.request.write_window(window)
    items = [document_record(found, with_collection=False) for found, _ in page.items]
    last = page.items[-1][0].document_id if page.more else None
    cursor = last and base64.urlsafe_b64encode(last.encode()).rstrip(b"=").decode()
    return ToolAnswer({"items": items, "nextCursor": cursor})


async def get_document(call: ToolCall) -> ToolAnswer:
    """A document with its content. The text has the content as it was stored."""
    collection, document_id = _named(call)
    found, content, window = await call.request.store.documents.read(call.caller, call.needed, collection, document_id)
    call.request.write_window(window)
    record = document_record(found)
    text = b'%b,"content":%b}' % (orjson.dumps(record)[:-1], content)
    try:
        value = orjson.loads(content)
    except orjson.JSONDecodeError:  # it has a number beyond a double
        value = content.decode()
    return ToolAnswer({**record, "content": value}, text.decode())


async def save_document(call: ToolCall) -> ToolAnswer:
    """Creates or replaces a document."""
    collection, document_id = _named(call)
    try:
        content = orjson.dumps(call.arguments.value("content"))
    except TypeError:
        raise Refused("invalid_request", "content has a whole number of more than 64 bits.") from None
    documents = call.request.store.documents
    if len(content) > documents.quotas.document_bytes:
        raise Refused("document_too_large", f"A document has at most {documents.quotas.document_bytes} bytes.")
    conditions = Conditions(_match(call), call.arguments.flag("only_if_new"))
    found, created, window = await documents.write(
        call.caller, call.needed, collection, document_id, content, conditions
    )
    call.request.write_window(window)
    return ToolAnswer({**document_record(found), "created": created})


async def delete_document(call: ToolCall) -> ToolAnswer:
    """Removes a document."""
    collection, document_id = _named(call)
    documents = call.request.store.documents
    window = await documents.delete(call.caller, call.needed, collection, document_id, Conditions(_match(call)))
    call.request.write_window(window)
    return ToolAnswer({"deleted": True})


def _named(call: ToolCall) -> tuple[str, str]:
    collection, document_id = call.arguments.text("collection"), call.arguments.text("id")
    check_names(collection, document_id)
    return collection, document_id


def _match(call: ToolCall) -> str:
    etag = call.arguments.optional("if_match")
    if not etag:
        return ""
    if not (found := _ETAG.fullmatch(etag)):
        raise Refused("invalid_request", "if_match is the etag of a document, as another tool gave it.")
    return found[1]


def _after(cursor: str | None) -> str:
    if not cursor:
        return ""
    try:
        found = base64.b64decode(cursor[:256] + "=" * (-len(cursor) % 4), altchars=b"-_", validate=True).decode("ascii")
    except (binascii.Error, ValueError):
        found = ""
    if not DOCUMENT_ID.fullmatch(found):
        raise Refused("invalid_request", "cursor is the nextCursor of an earlier answer.")
    return found


_SAVED: dict[str, Any] = {"collection": TEXT, **_RECORD}

TOOLS = (
    Tool(
        "list_collections",
        "List collections of documents",
        "Lists the collections of JSON documents that this app keeps for the person, and how much more it may keep.",
        "data:read",
        list_collections,
        {
            "collections": {
                "type": "array",
                "items": {"type": "object", "properties": {"name": TEXT, "documents": NUMBER, "bytes": NUMBER}},
            },
            "used": {"type": "object"},
            "limits": {"type": "object"},
        },
        reads=True,
    ),
    Tool(
        "list_documents",
        "List documents",
        "Lists the documents of a collection in order of their ids, without their content. Pass `nextCursor` as "
        "`cursor` to get the next page.",
        "data:read",
        list_documents,
        {
            "items": {"type": "array", "items": {"type": "object", "properties": _RECORD}},
            "nextCursor": {"type": ["string", "null"]},
        },
        {
            "collection": _COLLECTION,
            "prefix": {**TEXT, "description": "Only documents whose ids begin with this."},
            "cursor": {**TEXT, "description": "nextCursor of the page before."},
            "limit": {**NUMBER, "minimum": 1, "maximum": MOST_ITEMS, "default": USUAL_ITEMS},
        },
        ("collection",),
        reads=True,
    ),
    Tool(
        "get_document",
        "Read a document",
        "Reads a JSON document with its etag.",
        "data:read",
        get_document,
        {**_SAVED, "content": {}},
        {"collection": _COLLECTION, "id": _ID},
        ("collection", "id"),
        reads=True,
    ),
    Tool(
        "save_document",
        "Save a document",
        "Creates a JSON document or replaces its whole content. To change a document, read it first and pass its etag "
        "as `if_match`, so that you overwrite nobody else's change.",
        "data:write",
        save_document,
        {**_SAVED, "created": {"type": "boolean"}},
        {
            "collection": _COLLECTION,
            "id": _ID,
            "content": {"description": "The new content: any JSON value."},
            "if_match": _IF_MATCH,
            "only_if_new": {"type": "boolean", "description": "Do nothing if there is a document of this name."},
        },
        ("collection", "id", "content"),
        destroys=True,
    ),
    Tool(
        "delete_document",
        "Delete a document",
        "Deletes a document for good.",
        "data:write",
        delete_document,
        {"deleted": {"type": "boolean"}},
        {"collection": _COLLECTION, "id": _ID, "if_match": _IF_MATCH},
        ("collection", "id"),
        destroys=True,
    ),
)
