"""People in the answers of a server elsewhere, as local commands show them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cli.terminal.outcome import CommandResult


def user_of(record: Mapping[str, Any]) -> dict[str, Any]:
    """A person as local commands show them."""
    shown = {"sub": record["id"], **{name: record[name] for name in ("email", "email_verified", "name", "status")}}
    if "groups" in record:
        shown["groups"] = record["groups"]
    return {**shown, "createdAt": record["createdAt"]}


def person_of(record: Mapping[str, Any], more: Mapping[str, Any] | None = None, note: str = "") -> CommandResult:
    """A person as the result of a command."""
    planned = {"deletionAt": record["deletionAt"]} if record.get("deletionAt") else {}
    shown = {**user_of(record), **(record.get("suspension") or {}), **planned, **(more or {})}
    return CommandResult(shown, note=note, words={} if shown.get("groups") else {"groups": ""})
