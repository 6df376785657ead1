"""Parts of content that all dialects have: arguments of tools, images as data URLs, sealed thinking, pieces of text."""

from __future__ import annotations

import base64
import binascii
import re
from typing import Any

from outbound.ai.dialects.rules import Untranslatable
from outbound.ai.events import compact, read_json
from store.json_text import values_in

MOST_VALUES = 200_000
"""Values in all arguments of tools of one request: JSON inside of text escapes the bound of the request itself."""
PICTURES = ("image/jpeg", "image/png", "image/gif", "image/webp")
PDF = "application/pdf"
_SEAL = "lkr1."
_DATA_URL = re.compile(r"data:([a-z]+/[a-z0-9.+-]{1,64});base64,", re.IGNORECASE)
_NO_NAME = re.compile(r"[^A-Za-z0-9_-]")
_THINKING = {"thinking": ("thinking", "signature"), "redacted_thinking": ("data",)}


class Arguments:
    """Reads the arguments of a request's tool calls, within one bound for all of them."""

    def __init__(self) -> None:
        self._left = MOST_VALUES

    def read(self, value: object, param: str) -> dict[str, Any]:
        """The object in a JSON text; an empty text is an empty object. Raises Untranslatable."""
        if not isinstance(value, str):
            raise Untranslatable(param, f"{param} must be the text of a JSON object.")
        if not value.strip():
            return {}
        found = None
        try:
            raw = value.encode()
            self._left -= values_in(raw)
            found = read_json(raw) if self._left >= 0 else None
        except (ValueError, RecursionError):
            pass
        if self._left < 0:
            raise Untranslatable(param, "The arguments of all tool calls have too many values.")
        if not isinstance(found, dict):
            raise Untranslatable(param, f"{param} must be the text of a JSON object.")
        return found


def arguments_of(value: object) -> dict[str, Any]:
    """The arguments of a call that a model made. Arguments that were cut off or are no object count as none."""
    try:
        return Arguments().read(value, "")
    except Untranslatable:
        return {}


def image_block(url: object, param: str) -> dict[str, Any]:
    """A block of the Messages API for an image at a URL, which may be a data URL. Raises Untranslatable."""
    if not isinstance(url, str):
        raise Untranslatable(param, f"{param} must be a URL.")
    if url[:8].lower().startswith(("http://", "https://")):
        return {"type": "image", "source": {"type": "url", "url": url}}
    kind, data = data_url(url, param)
    if kind not in PICTURES:
        raise Untranslatable(param, f"{param} must be of type {', '.join(PICTURES)}.")
    return {"type": "image", "source": {"type": "base64", "media_type": kind, "data": data}}


def data_url(url: object, param: str) -> tuple[str, str]:
    """The media type and the data of a data URL in base64. Raises Untranslatable."""
    match = _DATA_URL.match(url) if isinstance(url, str) else None
    if match is None or not isinstance(url, str):
        raise Untranslatable(param, f"{param} must be an https or data URL in base64.")
    return match[1].lower(), url[match.end() :]


def url_of(source: object, param: str) -> str:
    """The URL of an image of the Messages API. Raises Untranslatable."""
    if isinstance(source, dict):
        if source.get("type") == "url" and isinstance(source.get("url"), str):
            return str(source["url"])
        kind, data = source.get("media_type"), source.get("data")
        if source.get("type") == "base64" and isinstance(kind, str) and isinstance(data, str):
            return f"data:{kind};base64,{data}"
    raise Untranslatable(param)


def seal(block: dict[str, Any]) -> str:
    """A block of thinking as `encrypted_content`: its text and signature, as the upstream wrote them."""
    known = {name: block[name] for name in ("type", "thinking", "signature", "data") if name in block}
    return _SEAL + base64.urlsafe_b64encode(compact([known]).encode("utf-8", "surrogatepass")).decode()


def is_sealed(value: object) -> bool:
    """Whether `encrypted_content` may be ours."""
    return isinstance(value, str) and value.startswith(_SEAL)


def unseal(value: object, param: str) -> dict[str, Any] | None:
    """The block of thinking in `encrypted_content`; None for one of another model, which only that model can read.
    Raises Untranslatable for one of ours that was changed."""
    if not isinstance(value, str) or not value.startswith(_SEAL):
        return None
    wrong = Untranslatable(param, f"{param} was changed. Send it back as it came.")
    try:
        raw = base64.b64decode(value[len(_SEAL) :], b"-_", validate=True)
        # One flat object: text can be long, but nothing else is large.
        found = read_json(raw) if values_in(raw) <= 8 else None
    except (ValueError, binascii.Error):
        raise wrong from None
    block = found[0] if isinstance(found, list) and len(found) == 1 and isinstance(found[0], dict) else {}
    kind = block.get("type")
    names = _THINKING.get(kind) if isinstance(kind, str) else None
    if names is None or block.keys() != {"type", *names} or not all(isinstance(block[name], str) for name in names):
        raise wrong
    return block


def suffix_of(name: object) -> str:
    """An id of a model's server without its prefix, fit for ids of ours."""
    found = name if isinstance(name, str) else ""
    head, mark, tail = found.partition("_")
    return _NO_NAME.sub("", tail if mark and head.isalpha() else found)[:64] or "0"


class Joiner:
    """Joins the halves of characters that two pieces of text share.

    A stream writes a character beyond U+FFFF as two escapes, and may split between them. Each half alone is no text.
    """

    def __init__(self) -> None:
        self._held = ""

    def feed(self, piece: str) -> str:
        """The text that is complete."""
        joined = self._held + piece
        self._held = ""
        if joined and "\ud800" <= joined[-1] <= "\udbff":
            joined, self._held = joined[:-1], joined[-1]
        return whole(joined)

    def end(self) -> str:
        """What is left: half a character that never became whole."""
        left, self._held = self._held, ""
        return left


def whole(text: str) -> str:
    """The text with pairs of surrogates as the characters that they mean."""
    if text.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in text):
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
