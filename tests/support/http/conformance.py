"""Checks answers against the OpenAPI document: every answer that a test gets must be described there."""

from __future__ import annotations

import json
import re
from functools import lru_cache
from typing import Any
from urllib.parse import parse_qs

from jsonschema_rs import Draft202012Validator

from handlers.openapi.document import document
from handlers.routes import ROUTES

_NUMBER = re.compile(r"-?[0-9]+")
# Answers given before any operation: unknown method, unknown address.
BEFORE = {405}


class Interface:
    """A document's descriptions of answers."""

    def __init__(self, described: dict[str, Any]) -> None:
        # As it is served: schemas hold phrases, and the validator takes plain strings alone.
        self._document = json.loads(json.dumps(described))
        self._validators: dict[str, Draft202012Validator] = {}
        parts = {path: re.sub(r"\\{\w+\\}", "[^/]+", re.escape(path)) for path in described["paths"]}
        # Fixed addresses come before those with parameters, as in the server's route map.
        self._paths = [(re.compile(parts[path]), path) for path in sorted(parts, key=lambda path: ("{" in path, path))]

    def operation(self, method: str, path: str) -> dict[str, Any] | None:
        """The description of a request; None for a page or an unknown method."""
        known = next((known for pattern, known in self._paths if pattern.fullmatch(path)), None)
        method = "get" if method == "HEAD" else method.lower()
        found: dict[str, Any] | None = self._document["paths"].get(known, {}).get(method)
        return found

    def check(self, method: str, path: str, status: int, headers: dict[str, str], body: bytes) -> None:
        """Raises AssertionError for an answer that does not match. Header names are in lower case."""
        operation = self.operation(method, path)
        if operation is None or "x-request-id" not in headers:  # a page; refused by the HTTP server
            return
        response = operation["responses"].get(str(status))
        place = f"{method} {path} {status}"
        assert response is not None, f"{place}: this status is not described: {body[:300]!r}"
        response = self._resolved(response)
        for name, ref in response.get("headers", {}).items():
            self._check_header(place, name, self._resolved(ref), headers.get(name.lower()))
        content = response.get("content")
        if content is None or method == "HEAD":
            assert method == "HEAD" or not body, f"{place}: a body that is not described: {body[:300]!r}"
            return
        kind = headers.get("content-type", "").partition(";")[0]
        assert kind in content, f"{place}: the type {kind!r} is not described"
        if kind == "application/json":
            self._validate(place, content[kind]["schema"], read(body))

    def check_query(self, method: str, path: str, query: str) -> None:
        """Raises AssertionError unless the query of a request that succeeded is described."""
        described = (self.operation(method, path) or {}).get("parameters", [])
        names = {one["name"]: one["required"] for one in described if one["in"] == "query"}
        sent = set(parse_qs(query, keep_blank_values=True))
        assert sent <= set(names), f"{method} {path}: parameters that are not described: {sent - set(names)}"
        missing = {name for name, required in names.items() if required} - sent
        assert not missing, f"{method} {path}: answered without {missing}, which are described as required"

    def _check_header(self, place: str, name: str, header: dict[str, Any], value: str | None) -> None:
        assert value is not None or not header["required"], f"{place}: {name} is missing"
        if value is not None:
            number = header["schema"].get("type") == "integer" and _NUMBER.fullmatch(value)
            self._validate(f"{place}: {name}", header["schema"], int(value) if number else value)

    def _validate(self, place: str, schema: dict[str, Any], value: Any) -> None:
        name = json.dumps(schema)
        if name not in self._validators:
            whole = {**schema, "components": self._document["components"]}
            self._validators[name] = Draft202012Validator(whole, validate_formats=True)
        error = next(self._validators[name].iter_errors(value), None)
        assert error is None, f"{place}: {error.message} at {list(error.instance_path)}"

    def _resolved(self, ref: dict[str, Any]) -> dict[str, Any]:
        if "$ref" not in ref:
            return ref
        _, _, kind, name = ref["$ref"].split("/")
        found: dict[str, Any] = self._document["components"][kind][name]
        return found


def read(body: bytes) -> Any:
    """JSON, with replacements for numbers that no schema can handle: some documents have thousands of digits."""
    return json.loads(body, parse_int=lambda text: int(text[:18]), parse_float=lambda text: 0.5)


@lru_cache(maxsize=1)
def interface() -> Interface:
    """That of our server."""
    return Interface(document(ROUTES, "http://localhost:8080"))
