"""A request of the Anthropic Messages API, checked as far as its cost depends on it. SPEC 4.6."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from handlers.core.params import Params
from outbound.ai.dialects.messages_same import FIELDS, check
from outbound.ai.dialects.rules import Untranslatable
from store.refused import Refused

ROLES = ("user", "assistant", "system")
_PLAIN = ("model", "system", "service_tier", "speed", "inference_geo", "container")
"""The form fields that are text. The others are JSON text."""
_READ = ("model", "max_tokens", "stream")
MOST_TOKENS = 10**9


@dataclass(frozen=True, slots=True)
class AIRequest:
    """`body` goes to the model's server as it came, without model and stream."""

    model: str
    stream: bool
    body: dict[str, Any]


def read_request(params: Params, *, form: bool, counting: bool = False) -> AIRequest:
    """The request in a body. If tokens are only counted, max_tokens may be missing. Raises
    Refused("invalid_request")."""
    model = params.require("model")
    max_tokens, stream = (_value(params, name, form) for name in ("max_tokens", "stream"))
    # What nobody knows here changes nothing in what is billed, as far as is known: it is the server's to judge.
    given = {name: _value(params, name, form) for name in FIELDS} if form else params.everything()
    if max_tokens is None and counting:
        max_tokens = 1
    if not _is_whole(max_tokens) or not 1 <= max_tokens <= MOST_TOKENS:
        raise Refused("invalid_request", "max_tokens must be a whole number above 0.")
    if stream is not None and not isinstance(stream, bool):
        raise Refused("invalid_request", "stream must be true or false.")
    forwarded = {name: value for name, value in given.items() if value is not None and name not in _READ}
    check_messages(forwarded.get("messages"))
    check_system(forwarded.get("system"))
    try:
        check(forwarded)
    except Untranslatable as error:
        raise Refused("invalid_request", str(error), param=error.param) from None
    return AIRequest(model, stream is True, {**forwarded, "max_tokens": max_tokens})


def check_messages(messages: object) -> None:
    """Requires a list that is not empty, of objects with a role and text or blocks."""
    if not isinstance(messages, list) or not messages:
        raise Refused("invalid_request", "messages must be a list with something in it.")
    for message in messages:
        if not isinstance(message, dict) or message.get("role") not in ROLES:
            raise Refused("invalid_request", "A message has a role: user, assistant or system.")
        _check_content(message.get("content"))


def check_system(system: object) -> None:
    """Requires text, or blocks of text."""
    if system is not None:
        _check_content(system)


def _check_content(content: object) -> None:
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        raise Refused("invalid_request", "content is text or a list of blocks.")
    for block in _blocks(content):
        if not isinstance(block, dict) or not isinstance(block.get("type"), str):
            raise Refused("invalid_request", "A block of content is an object with a type.")
        if block["type"] == "text" and not isinstance(block.get("text"), str):
            raise Refused("invalid_request", "A block of text has text.")


def _blocks(content: list[Any]) -> Iterator[Any]:
    """All blocks, also those inside tool results and documents."""
    waiting = list(content)
    while waiting:
        block = waiting.pop()
        yield block
        if isinstance(block, dict):
            inner = block.get("content")
            waiting += inner if isinstance(inner, list) else []
            source = block.get("source")
            inner = source.get("content") if isinstance(source, dict) else None
            waiting += inner if isinstance(inner, list) else []


def _value(params: Params, name: str, form: bool) -> Any:
    if form and name not in _PLAIN:
        return params.structured(name)
    return params.value(name)


def _is_whole(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)
