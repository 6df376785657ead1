"""GET /openapi.json on the operations port: the management interface as an OpenAPI 3.1 document, from the route map."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

import orjson

from handlers.admin.interface_operations import ADMIN_OPERATIONS, AdminOperation
from handlers.admin.interface_schemas import ADMIN_SCHEMAS, COUNT, FLAG, TEXT, JsonSchema, maybe, reference
from handlers.core.errors import CATALOGUE
from handlers.core.params import JSON
from handlers.core.route import Route
from handlers.ops.operations import OpsHandler
from store.operators.cursors import MOST_AT_ONCE, USUAL
from store.operators.roles import ALLOWED

PATH_PARTS = {"([0-9a-f]{32})": "person", "([A-Za-z0-9_-]{22})": "id", "([A-Za-z0-9_-]{1,64})": "client_id"}
"""The names of groups in patterns."""
CHOICES = "(suspend|resume)"
ERRORS = (
    *("invalid_request", "invalid_token", "insufficient_credits", "insufficient_role", "access_denied", "not_found"),
    *("idempotency_in_progress", "idempotency_reply_gone", "idempotency_mismatch", "payload_too_large"),
    *("unsupported_media_type", "rate_limited", "temporarily_unavailable", "server_error"),
)
FLAGS = ("dry_run", "purge", "documents", "follow")


class AdminOpenApiHandler(OpsHandler):
    """Serves the document. It has no data of this server, so it needs no key."""

    def get(self) -> None:
        """Answers with the document, which was made at start."""
        self.write_whole(self.application.openapi, {})


def admin_document(routes: Sequence[Route], url: str) -> dict[str, Any]:
    """The document of an operations port at this address."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        for method, act in route.policy.acts:
            operation = ADMIN_OPERATIONS[f"{route.name} {method}"]
            for path in _paths(route.pattern):
                roles = ", ".join(ALLOWED[act])
                paths.setdefault(path, {})[method.lower()] = _operation(route.name, method, path, operation, roles)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Latchkey management", "version": "1", "summary": "People, apps and the server itself"},
        "servers": [{"url": url}],
        "security": [{"operatorKey": []}],
        "paths": paths,
        "components": {
            "schemas": ADMIN_SCHEMAS,
            "responses": {str(status): _error(status) for status in sorted({CATALOGUE[one].status for one in ERRORS})},
            "securitySchemes": {
                "operatorKey": {
                    "type": "http",
                    "scheme": "bearer",
                    "description": "A key of `latchkey operator-key create`, which begins with `lk_ok_`.",
                }
            },
        },
    }


def admin_document_bytes(routes: Sequence[Route], url: str) -> bytes:
    """The document as JSON."""
    return orjson.dumps(admin_document(routes, url))


def _paths(pattern: str) -> list[str]:
    for group, name in PATH_PARTS.items():
        pattern = pattern.replace(group, "{" + name + "}")
    if CHOICES not in pattern:
        return [pattern]
    return [pattern.replace(CHOICES, choice) for choice in CHOICES.strip("()").split("|")]


def _operation(name: str, method: str, path: str, operation: AdminOperation, roles: str) -> JsonSchema:
    made: JsonSchema = {
        "operationId": re.sub(r"[^a-z]+", "-", f"{name} {method.lower()} {path.rpartition('/')[2]}".lower()).strip("-"),
        "summary": operation.summary,
        "description": f"Roles: {roles}.",
        "responses": {str(operation.status): _success(operation)}
        | ({"200": _success(operation)} if operation.status == 201 else {})
        | {
            str(status): {"$ref": f"#/components/responses/{status}"}
            for status in sorted({CATALOGUE[one].status for one in ERRORS})
        },
    }
    parts: list[JsonSchema] = [
        {"name": part, "in": "path", "required": True, "schema": TEXT} for part in re.findall(r"\{(\w+)\}", path)
    ]
    queries = [
        {"name": one, "in": "query", "required": one in operation.required, "schema": _parameter(one)}
        for one in operation.query
    ]
    header: list[JsonSchema] = [{"name": "Idempotency-Key", "in": "header", "required": False, "schema": TEXT}]
    if parameters := [*parts, *queries, *(header if operation.once else [])]:
        made["parameters"] = parameters
    if operation.body and not path.endswith("/resume"):
        required = bool(ADMIN_SCHEMAS[operation.body].get("required"))
        made["requestBody"] = {"required": required, "content": {JSON: {"schema": reference(operation.body)}}}
    if operation.image:
        kinds = ("image/jpeg", "image/png", "image/webp")
        made["requestBody"] = {"required": True, "content": {kind: {"schema": {}} for kind in kinds}}
    return made


def _parameter(name: str) -> JsonSchema:
    if name == "limit":
        return {"type": "integer", "minimum": 1, "maximum": MOST_AT_ONCE, "default": USUAL}
    return FLAG if name in FLAGS else TEXT


def _success(operation: AdminOperation) -> JsonSchema:
    if not operation.answer:
        kinds = ("application/jsonl", "application/zip", "text/plain")
        return {"description": "the export", "content": {kind: {"schema": {}} for kind in kinds}}
    schema = reference(operation.answer)
    if operation.many:
        members = {"items": {"type": "array", "items": schema}, "nextCursor": maybe(TEXT)}
        if operation.counted:
            members["total"] = maybe(COUNT)
        also = {"more": FLAG} if operation.endless else {}
        schema = {
            "type": "object",
            "properties": members | also,
            "required": [*members],
            "additionalProperties": False,
        }
    return {"description": operation.summary, "content": {JSON: {"schema": schema}}}


def _error(status: int) -> JsonSchema:
    codes = [one for one in ERRORS if CATALOGUE[one].status == status]
    told = "\n\n".join(f"`{code}`: {CATALOGUE[code].description}" for code in codes)
    return {"description": told, "content": {JSON: {"schema": reference("Error")}}}
