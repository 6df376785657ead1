"""Notes that the server keeps for the person: hosted documents, which this part alone knows of.

A note is the document `{"text": …}` in the collection `notes`. Its ETag says which version was read; sent back with a
change, it keeps a change that was made elsewhere meanwhile from being overwritten.
"""

from __future__ import annotations

import re
import secrets
import time
from dataclasses import dataclass, field
from typing import Any

from oauth_client import OAuthClient, Tokens, Trouble

SHOWN = 50
_ID = re.compile(r"[a-z0-9-]{1,40}")
_ETAG = re.compile(r'"[0-9]{1,30}"')


@dataclass
class Note:
    """A note as it was read."""

    note_id: str
    etag: str
    text: str


@dataclass
class Notes:
    """The person's notes, the newest first, or why there are none to show. `may_read`, `may_write`: what is allowed."""

    items: list[Note] = field(default_factory=list)
    trouble: str = ""
    may_read: bool = False
    may_write: bool = False


async def read_notes(client: OAuthClient, tokens: Tokens) -> Notes:
    """The notes. Raises Trouble("invalid_token"); the notes carry any other trouble."""
    notes = Notes(may_read=tokens.may("data:read"), may_write=tokens.may("data:write"))
    if not notes.may_read:
        return notes
    try:
        found = await client.call(tokens, f"{_collection(client)}?include=data&limit={SHOWN}")
    except Trouble as trouble:
        if trouble.code == "invalid_token":
            raise
        notes.trouble = trouble.message
        return notes
    notes.items = [Note(item["id"], item["etag"], _text(item["data"])) for item in found["items"]]
    return notes


async def add_note(client: OAuthClient, tokens: Tokens, text: str) -> None:
    """Keeps a new note. Raises Trouble."""
    # The server lists by id: what counts down from the far future lists the newest first.
    name = f"{10**13 - int(time.time() * 1000):013d}-{secrets.token_hex(4)}"
    await _change(client, tokens, name, text, {"If-None-Match": "*"})


async def edit_note(client: OAuthClient, tokens: Tokens, name: str, etag: str, text: str) -> None:
    """Changes a note that is still as it was read. Raises Trouble."""
    await _change(client, tokens, name, text, {"If-Match": _checked(_ETAG, etag)})


async def delete_note(client: OAuthClient, tokens: Tokens, name: str, etag: str) -> None:
    """Deletes a note that is still as it was read. Raises Trouble."""
    await _change(client, tokens, name, None, {"If-Match": _checked(_ETAG, etag)})


async def _change(client: OAuthClient, tokens: Tokens, name: str, text: str | None, condition: dict[str, str]) -> None:
    url = f"{_collection(client)}/{_checked(_ID, name)}"
    body = None if text is None else {"text": text}
    method = "DELETE" if body is None else "PUT"
    try:
        await client.call(tokens, url, body, method=method, headers=condition)
    except Trouble as trouble:
        if trouble.code not in ("precondition_failed", "not_found"):
            raise
        words = "This note was changed or deleted elsewhere meanwhile, so nothing was done. Go back and look at it."
        raise Trouble(words, 409, trouble.code, typed=text or "") from None


def _collection(client: OAuthClient) -> str:
    return f"{client.issuer}/api/v1/data/notes"


def _checked(form: re.Pattern[str], text: str) -> str:
    """What a form sent, which goes into an address or a header. Raises Trouble."""
    if not form.fullmatch(text):
        raise Trouble("This is no note of yours.")
    return text


def _text(data: Any) -> str:
    return str(data.get("text", "")) if isinstance(data, dict) else ""
