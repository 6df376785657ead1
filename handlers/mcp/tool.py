"""What a tool is: its name and words for assistants, the scope it needs, its schemas, and what it does."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from handlers.core.site import Site
from handlers.mcp.arguments import ToolArguments
from store.results import Caller, Window
from store.wiring import Store

ToolSchema = Mapping[str, Any]


class ToolHost(Protocol):
    """The request that carries a tool call."""

    @property
    def site(self) -> Site:
        """The server's settings and services."""

    @property
    def store(self) -> Store:
        """The open store."""

    def write_window(self, window: Window) -> None:
        """Notes the figures of the window that counted the call."""

    def take_long(self, hang_up: Callable[[], None], stop: Callable[[], None]) -> None:
        """From here on the call may take minutes. `hang_up` is called if the client hangs up, `stop` if the server
        stops."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, by the app and for the person of its token."""

    request: ToolHost
    caller: Caller
    arguments: ToolArguments
    needed: str
    """The scopes of which the token must have one."""


@dataclass(frozen=True, slots=True)
class ToolAnswer:
    """The answer of a tool: a JSON object by its schema, and the same as text; empty for plain JSON of the object."""

    value: dict[str, Any]
    text: str = ""


@dataclass(frozen=True, slots=True)
class Tool:
    """`scope`: what an app asks for to use the tool. `others`: scopes that do as well. `reads`: it changes nothing;
    `destroys`: it overwrites or removes something; `again`: a second identical call changes nothing more; `outside`: it
    reaches a server outside. `takes`: the schemas of its arguments, of which `required` must be there; `gives`: those
    of the members of its answer."""

    name: str
    title: str
    description: str
    scope: str
    run: Callable[[ToolCall], Awaitable[ToolAnswer]]
    gives: ToolSchema
    takes: ToolSchema = field(default_factory=dict)
    required: tuple[str, ...] = ()
    others: tuple[str, ...] = ()
    reads: bool = False
    destroys: bool = False
    again: bool = False
    outside: bool = False

    @property
    def needed(self) -> str:
        """The scopes of which the token must have one."""
        return " ".join((self.scope, *self.others))

    @property
    def input_schema(self) -> dict[str, Any]:
        """The JSON Schema of the arguments."""
        return {
            "type": "object",
            "properties": dict(self.takes),
            "required": list(self.required),
            "additionalProperties": False,
        }

    @property
    def output_schema(self) -> dict[str, Any]:
        """The JSON Schema of the answer. Every member is there."""
        return {"type": "object", "properties": dict(self.gives), "required": list(self.gives)}


TEXT: ToolSchema = {"type": "string"}
NUMBER: ToolSchema = {"type": "integer"}
