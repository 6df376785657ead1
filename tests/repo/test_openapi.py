"""The OpenAPI document matches the server exactly."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator
from openapi_spec_validator import OpenAPIV31SpecValidator
from tornado.web import RequestHandler

from handlers.core.application import Latchkey
from handlers.core.errors import CATALOGUE, PUBLIC_NAME
from handlers.openapi.document import ERROR_SCHEMAS, document
from handlers.openapi.operations import OPERATIONS
from handlers.openapi.words import TAGS
from handlers.routes import POLICIES, ROUTES
from store import lifetimes
from store.names import SCOPES
from tests.oauth.test_cors_errors import assert_cors
from tests.support.http.conformance import Interface
from tests.support.http.driver import Service, json_of, send

BASE = "http://localhost:8080"
DOCUMENT = json.loads(json.dumps(document(ROUTES, BASE)))
ADDRESS = "/openapi.json"
# Codes without a response of their own: they appear in redirects, or outside of operations.
ELSEWHERE = {
    *("consent_required", "interaction_required", "method_not_allowed", "request_uri_not_supported"),
    *("insufficient_role", "conflict", "not_implemented"),
}
"""Errors that only redirects or the operations port have, or that every path has."""


def is_interface(handler: type[RequestHandler], name: str) -> bool:
    """Whether a route is for programs: what apps and operators call, and the two ends of an authorization. Messages to
    the MCP server are described by that protocol, and by the server's own list of tools."""
    if name == "mcp":
        return False
    ours: Any = handler
    return ours.lean or name in ("authorize", "decide", "logout", "healthz", "readyz")


def operations() -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in DOCUMENT["paths"].items():
        for method, operation in methods.items():
            yield path, method, operation


def answered(handler: type[RequestHandler]) -> set[str]:
    """The methods of a handler; HEAD goes with GET, and OPTIONS is CORS."""
    methods = {
        name
        for name in handler.SUPPORTED_METHODS
        if getattr(handler, name.lower()) is not getattr(RequestHandler, name.lower())
    }
    return {name.lower() for name in methods - {"HEAD", "OPTIONS"}}


def test_the_document_is_valid_openapi() -> None:
    OpenAPIV31SpecValidator(json.loads(json.dumps(DOCUMENT))).validate()


def test_the_document_has_exactly_the_apis_routes_and_methods() -> None:
    served = {route.name: answered(route.handler) for route in ROUTES if is_interface(route.handler, route.name)}
    for name in ("authorize", "logout"):
        served[name] -= {"post"}  # leads to the same address by GET, which is described
    assert {name: set(methods) for name, methods in OPERATIONS.items()} == served
    patterns = {route.name: re.compile(route.pattern) for route in ROUTES}
    for path, methods in DOCUMENT["paths"].items():
        concrete = re.sub(r"\{\w+\}", "n1", path)
        (name,) = [name for name in served if patterns[name].fullmatch(concrete)][:1]
        assert set(methods) == served[name]
    assert len(DOCUMENT["paths"]) == len(served)
    # Stripe's events are not an interface for apps: docs/operating.md describes them.
    assert {route.name for route in ROUTES if route.pattern.startswith("/api/")} - {"stripe-events"} <= set(served)


def test_documented_scopes_and_limits_match_the_policy() -> None:
    groups = {group.name: group for group in vars(lifetimes).values() if isinstance(group, lifetimes.Group)}
    names = {operation["operationId"]: operation for _, _, operation in operations()}
    for name, methods in OPERATIONS.items():
        for method in methods:
            policy = POLICIES[name]
            writes = method != "get"
            operation = names.get(name) or names[f"{name}-{method}"]
            scopes = [alternative["oauth2"] for alternative in operation["security"] if "oauth2" in alternative]
            assert [[one] for one in ((writes and policy.write_scope) or policy.scope).split()] == scopes
            window = (writes and policy.write_window) or policy.window
            group = groups.get(window)
            limit = group and {"group": window, "limit": group.limit, "seconds": group.period // 1000}
            assert operation.get("x-rate-limit") == limit
    flow = DOCUMENT["components"]["securitySchemes"]["oauth2"]["flows"]["authorizationCode"]
    assert tuple(flow["scopes"]) == SCOPES


def test_documented_errors_and_the_catalogue_match() -> None:
    named: set[str] = set()
    for _, _, operation in operations():
        for status, response in operation["responses"].items():
            if "$ref" in response:
                name = response["$ref"].rpartition("/")[2]
                codes = [one for one in name.split(".") if one not in ("page", *ERROR_SCHEMAS)]
                assert {CATALOGUE[code].status for code in codes} == {int(status)}
                named |= {*codes}
    assert named == set(CATALOGUE) - ELSEWHERE


def test_every_component_is_used() -> None:
    text = json.dumps(DOCUMENT)
    kinds = ("schemas", "parameters", "headers", "responses")
    used = {kind: set(re.findall(rf"#/components/{kind}/([\w.-]+)", text)) for kind in kinds}
    assert {kind: set(DOCUMENT["components"][kind]) for kind in kinds} == used


def test_operations_are_described_in_ordered_groups() -> None:
    made = [operation for _, _, operation in operations()]
    described = [operation for methods in OPERATIONS.values() for operation in methods.values()]
    assert all(operation.summary and operation.description for operation in described)
    assert list(dict.fromkeys(operation["tags"][0] for operation in made)) == list(TAGS)
    assert all(len(operation["tags"]) == 1 for operation in made)
    assert [tag["name"] for tag in DOCUMENT["tags"]] == list(TAGS)
    assert all(parameter["description"] for parameter in DOCUMENT["components"]["parameters"].values())
    # The introduction has errors, scopes and headers of limits.
    words = DOCUMENT["info"]["description"]
    names = {PUBLIC_NAME.get(code, code) for code in CATALOGUE} | set(SCOPES) | {"X-RateLimit-Reset", "Retry-After"}
    assert [name for name in names if f"`{name}`" not in words] == []
    assert "BASE_URL" not in words


def media() -> Iterator[tuple[str, dict[str, Any]]]:
    """Every body, of requests and answers, and where it is."""
    for path, method, operation in operations():
        bodies = {"request": operation.get("requestBody", {}), **operation["responses"]}
        for what, body in bodies.items():
            if "$ref" in body:
                body = DOCUMENT["components"]["responses"][body["$ref"].rpartition("/")[2]]
            for kind, content in body.get("content", {}).items():
                yield f"{method} {path} {what} {kind}", content


def test_every_body_and_parameter_has_valid_examples() -> None:
    def problems(place: str, schema: dict[str, Any], value: Any) -> Iterator[str]:
        whole = Draft202012Validator({**schema, "components": DOCUMENT["components"]}, validate_formats=True)
        yield from (f"{place}: {error.message} of {value}" for error in whole.iter_errors(value))

    found: list[str] = []
    for place, content in media():
        examples = (
            [content["example"]] if "example" in content else [one["value"] for one in content["examples"].values()]
        )
        assert examples, place
        for example in examples:
            found += problems(place, content["schema"], example)
            for field in example if "x-www-form-urlencoded" in place else ():
                assert isinstance(example[field], str | int | bool), f"{place}: {field} cannot be in a form"
    for name, parameter in DOCUMENT["components"]["parameters"].items():
        found += problems(name, parameter["schema"], parameter["example"])
    assert found == []


@pytest.mark.gen_test
async def test_the_document_is_served_as_built_on_start(service: Service, app: Latchkey) -> None:
    response = await send(service.base_url + ADDRESS)
    assert response.code == 200
    assert response.body == app.openapi
    assert json_of(response) == document(ROUTES, service.base_url)
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "public, max-age=300"
    assert_cors(response)
    head = await send(service.base_url + ADDRESS, "HEAD")
    assert (head.code, head.body) == (200, b"")
    preflight = await send(service.base_url + ADDRESS, "OPTIONS", headers={"Origin": "https://docs.example"})
    assert preflight.code == 204
    assert_cors(preflight)
    assert (await send(service.base_url + ADDRESS, "POST")).code == 405


def refused(method: str, path: str, status: int, headers: dict[str, str], body: bytes) -> str:
    try:
        INTERFACE.check(method, path, status, headers, body)
    except AssertionError as error:
        return str(error)
    return ""


INTERFACE = Interface(DOCUMENT)
FINE = {"content-type": "application/json", "x-request-id": "a"}
LIMITED = {**FINE, "x-ratelimit-limit": "1", "x-ratelimit-remaining": "1", "x-ratelimit-reset": "1"}


def test_the_conformance_check_finds_wrong_answers() -> None:
    """The check that `tests/support/http/driver.py` applies to every answer in the tests."""
    body = b'{"error":"not_found","error_description":"x"}'
    assert not refused("GET", "/api/v1/data/notes/n1", 404, FINE, body)
    assert not refused("GET", "/api/v1/data/notes/n1", 200, {**LIMITED, "etag": '"1"', "last-modified": "x"}, b"[1]")
    assert "status" in refused("GET", "/api/v1/data/notes/n1", 402, FINE, body)
    assert "error" in refused("GET", "/api/v1/data/notes/n1", 404, FINE, body.replace(b"not_found", b"invalid_grant"))
    assert "extra" in refused("GET", "/healthz", 200, FINE, b'{"status":"ok","extra":1}')
    assert "etag" in refused("GET", "/api/v1/data/notes/n1", 200, LIMITED, b"1").lower()
    assert "X-RateLimit-Limit" in refused("GET", "/api/v1/apps", 200, FINE, b'{"apps":[]}')
    assert "text/plain" in refused("GET", "/healthz", 200, {**FINE, "content-type": "text/plain"}, b"ok")
    assert not refused("GET", "/account", 418, {}, b"")
