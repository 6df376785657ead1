"""The form of an operation of the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from handlers.core.params import JSON

HTML = "text/html"
EVENTS = "text/event-stream"


@dataclass(frozen=True, slots=True)
class Success:
    """A success. `schema` names the schema of the body; empty if there is none. `headers` come in addition to those of
    every answer and of the window."""

    description: str
    schema: str = ""
    kinds: tuple[str, ...] = (JSON,)
    headers: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Operation:
    """`description`, in Markdown: what the operation does beyond its summary. `errors`: codes of the catalogue in
    addition to those that follow from the policy. `path` names the groups of the route's pattern. `body` names the
    schema of the request; `document`: JSON only. `calls_store`: 503 while the store is away. `page`: errors are pages
    for a client that does not ask for JSON. `proof`: takes a DPoP proof without an access token. `envelope`: the API
    whose SDKs know the errors, `messages`, `openai`, or `shared` by both. `security`: alternatives to the scopes of the
    policy."""

    tag: str
    summary: str
    description: str
    answers: Mapping[int, Success]
    errors: tuple[str, ...] = ()
    path: tuple[str, ...] = ()
    parameters: tuple[str, ...] = ()
    body: str = ""
    document: bool = False
    calls_store: bool = True
    page: bool = False
    proof: bool = False
    envelope: str = ""
    security: tuple[tuple[str, ...], ...] = field(default=())
