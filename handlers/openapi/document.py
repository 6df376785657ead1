"""GET /openapi.json: the HTTP interface as an OpenAPI 3.1 document, from the routes, policies and catalogue.

Texts about operations are in `operations.py` and `parameters.py`, fields in `schemas.py`, examples in `examples.py`,
and the introduction in `words.py`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any

import orjson

from handlers.ai.errors import kind_of
from handlers.ai.limit_headers import NAMES
from handlers.core.api import ApiHandler
from handlers.core.auth.dpop import AT_RESOURCE, AT_SERVER
from handlers.core.errors import CATALOGUE, PUBLIC_NAME
from handlers.core.params import FORM, JSON
from handlers.core.policy import Policy
from handlers.core.route import Route
from handlers.core.scopes import SCOPE_WORDS
from handlers.openapi.examples import EVENTS, OF_PARAMETERS, as_form, examples_of, of_error, shown
from handlers.openapi.operation import HTML, Operation, Success
from handlers.openapi.operations import OPERATIONS
from handlers.openapi.parameters import PARAMETERS
from handlers.openapi.schemas import SCHEMAS
from handlers.openapi.shapes import TEXT, Schema, form_of, ref
from handlers.openapi.words import SUMMARY, TAGS, describe, introduction, limit, needs
from store import lifetimes

GROUPS = {group.name: group for group in vars(lifetimes).values() if isinstance(group, lifetimes.Group)}
AI_TAGS = ("AI", "AI for the SDKs")
ERROR_SCHEMAS = {"": "Error", "messages": "SdkError", "openai": "OpenAIError", "shared": "SharedError"}
_OPEN_PART = re.compile(r"\(.*?\)")

LIMIT_HEADERS: tuple[str, ...] = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")
_FIGURES = ({"type": "integer"}, {"type": "integer"}, {"type": "string"})
_FIGURE_WORDS = ("requests per window", "requests left", "when the window is empty again, or in how much time")
HEADERS: dict[str, tuple[Schema, str]] = {
    "X-Request-Id": ({"type": "string"}, "the id of the request in the log"),
    "X-RateLimit-Limit": ({"type": "integer"}, "requests per window"),
    "X-RateLimit-Remaining": ({"type": "integer"}, "requests left"),
    "X-RateLimit-Reset": ({"type": "integer"}, "epoch milliseconds at which the window is empty again"),
    **{name: (_FIGURES[at % 3], f"{_FIGURE_WORDS[at % 3]}, for SDKs") for at, name in enumerate(NAMES)},
    "Retry-After": ({"type": "integer", "minimum": 1}, "whole seconds"),
    "WWW-Authenticate": ({"type": "string"}, "RFC 6750 3, RFC 7617, RFC 9449 7.1"),
    "WWW-Authenticate-IfMended": ({"type": "string"}, "RFC 6750 3: unless the person has paused the app"),
    "DPoP-Nonce": ({"type": "string"}, "for the next proof, if the request had a DPoP proof"),
    "ETag": ({"type": "string", "pattern": '^"[0-9]{1,20}"$'}, "strong, never reused for a document of the pair"),
    "Last-Modified": ({"type": "string"}, "of the last write"),
    "Location": ({"type": "string"}, "where the browser goes"),
    "Pragma": ({"type": "string", "const": "no-cache"}, "RFC 6749 5.1"),
    "Idempotent-Replayed": (
        {"type": "string", "const": "true"},
        "this is the reply of an earlier call with this Idempotency-Key",
    ),
}
IF_MENDED = "-IfMended"
"""The end of the name of a header that only some errors of a status have."""
OPTIONAL = {"Idempotent-Replayed", "DPoP-Nonce", "WWW-Authenticate" + IF_MENDED, *NAMES}


class OpenApiHandler(ApiHandler):
    """Serves the document to client generators."""

    def get(self) -> None:
        """Answers with the document, which was made at start."""
        self.write_whole(self.application.openapi, {"Cache-Control": "public, max-age=300"})


def document_bytes(routes: Sequence[Route], base_url: str) -> bytes:
    """The document as JSON."""
    return orjson.dumps(document(routes, base_url))


def document(routes: Sequence[Route], base_url: str) -> dict[str, Any]:
    """The document for a server at this base URL. Operations are sorted by group, and in the order of `OPERATIONS`
    within a group."""
    unchanging = _unchanging(tuple(routes))
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Latchkey",
            "version": "1",
            "summary": SUMMARY,
            "description": introduction(
                base_url, [(name, HEADERS[name][1]) for name in (*LIMIT_HEADERS, "Retry-After")]
            ),
            "license": {"name": "MIT", "identifier": "MIT"},
        },
        "servers": [{"url": base_url, "description": "this server"}],
        **unchanging,
        "components": {**unchanging["components"], "securitySchemes": _security_schemes(base_url)},
    }


@cache
def _unchanging(routes: tuple[Route, ...]) -> dict[str, Any]:
    """The parts of the document that are the same at every base URL."""
    served = {route.name: route for route in routes}
    described = [
        (served[name], method, operation)
        for tag in TAGS
        for name, methods in OPERATIONS.items()
        if name in served
        for method, operation in methods.items()
        if operation.tag == tag
    ]
    paths: dict[str, dict[str, Any]] = {}
    for route, method, operation in described:
        paths.setdefault(path_of(route.pattern, operation), {})[method] = _operation(route, method, operation)
    return {
        "tags": [{"name": name, "description": text} for name, text in TAGS.items()],
        "paths": paths,
        "components": {
            "schemas": {**SCHEMAS, "Page": TEXT, **_forms()},
            "parameters": {name: {**one, "example": OF_PARAMETERS[name]} for name, one in PARAMETERS.items()},
            "headers": {
                name: {"schema": schema, "description": text, "required": name not in OPTIONAL}
                for name, (schema, text) in HEADERS.items()
            },
            "responses": _errors(described),
        },
    }


def operation_id(name: str, method: str) -> str:
    """The name of an operation: its route's name, with the method if the route has several."""
    return name if len(OPERATIONS[name]) == 1 else f"{name}-{method}"


def path_of(pattern: str, operation: Operation) -> str:
    """The path of a route in OpenAPI's notation."""
    names = iter(operation.path)
    return _OPEN_PART.sub(lambda _: "{" + next(names) + "}", pattern).replace("\\", "")


def codes_of(route: Route, method: str, operation: Operation) -> list[str]:
    """The error codes that an operation can answer."""
    policy = route.policy
    codes = [*operation.errors]
    if policy.scope:
        codes += ["invalid_token", "app_paused", "insufficient_scope", *AT_RESOURCE]
    if operation.proof:
        codes += AT_SERVER
    if policy.window:
        codes += ["rate_limited"]
    if method != "get":
        codes += [route.handler.too_large]
    if operation.body:
        codes += ["unsupported_media_type"]
    if operation.calls_store:
        codes += ["temporarily_unavailable"]
    return [code for code in CATALOGUE if code in codes or code == "server_error"]


def _operation(route: Route, method: str, operation: Operation) -> dict[str, Any]:
    policy = route.policy
    window = (method != "get" and policy.write_window) or policy.window
    responses = {
        # A decision that redirects to the sign-in page was not counted.
        str(status): _answer(
            answer,
            limited=bool(window) and not (operation.page and status != 200),
            proven=bool(policy.scope) or operation.proof,
            more=NAMES if operation.tag in AI_TAGS else (),
        )
        for status, answer in operation.answers.items()
    }
    for status, codes in _by_status(codes_of(route, method, operation)).items():
        responses[str(status)] = {"$ref": f"#/components/responses/{_error_name(codes, operation)}"}
    responses = dict(sorted(responses.items()))
    made: dict[str, Any] = {
        "operationId": operation_id(route.name, method),
        "tags": [operation.tag],
        "summary": operation.summary,
        "description": _description(operation, method, policy, window),
        "responses": responses,
        "security": _security(policy, method, operation),
    }
    proof = ("dpop",) if policy.scope or operation.proof else ()
    parameters = (*operation.path, *operation.parameters, *proof)
    if parameters:
        made["parameters"] = [{"$ref": f"#/components/parameters/{one}"} for one in parameters]
    if operation.body:
        examples = examples_of(operation.body)
        content = {JSON: {"schema": ref(operation.body), **shown(examples)}}
        if not operation.document:
            form = form_of(SCHEMAS[operation.body])
            forms = {name: as_form(example, form) for name, example in examples.items()}
            content[FORM] = {"schema": ref(operation.body + "Form"), **shown(forms)}
        made["requestBody"] = {"required": True, "content": content}
    if window:
        group = GROUPS[window]
        made["x-rate-limit"] = {"group": window, "limit": group.limit, "seconds": group.period // lifetimes.SECOND}
    return made


def _description(operation: Operation, method: str, policy: Policy, window: str) -> str:
    scope = (method != "get" and policy.write_scope) or policy.scope
    demands = [needs(scope.split())] if scope else []
    demands += [limit(GROUPS[window])] if window else []
    return "\n\n".join(filter(None, (operation.description, " ".join(demands))))


def _answer(answer: Success, *, limited: bool, proven: bool, more: tuple[str, ...] = ()) -> dict[str, Any]:
    limits = (*LIMIT_HEADERS, *more) if limited else ()
    names = ("X-Request-Id", *limits, *answer.headers, *(["DPoP-Nonce"] if proven else ()))
    made: dict[str, Any] = {"description": answer.description, "headers": _headers(names)}
    if answer.kinds:
        whole = {"schema": ref(answer.schema), **shown(examples_of(answer.schema))}
        # Any schema is met: programs disagree whether it describes the whole stream or one event.
        events: dict[str, Any] = {"schema": {}, "example": EVENTS}
        kinds = {
            JSON: whole,
            HTML: whole if answer.schema == "Page" else {"schema": ref("Page"), **shown(examples_of("Page"))},
        }
        made["content"] = {kind: kinds.get(kind, events) for kind in answer.kinds}
    return made


def _headers(names: Iterable[str]) -> dict[str, Any]:
    return {name.removesuffix(IF_MENDED): {"$ref": f"#/components/headers/{name}"} for name in names}


def _by_status(codes: Iterable[str]) -> dict[int, tuple[str, ...]]:
    found: dict[int, tuple[str, ...]] = {}
    for code in codes:
        status = CATALOGUE[code].status
        found[status] = (*found.get(status, ()), code)
    return found


def _error_name(codes: tuple[str, ...], operation: Operation) -> str:
    kind = f"{operation.envelope}." if operation.envelope else "page." if operation.page else ""
    return kind + ".".join(codes)


def _errors(described: Iterable[tuple[Route, str, Operation]]) -> dict[str, Any]:
    """Each set of errors that some operation answers under one status."""
    made: dict[str, Any] = {}
    for route, method, operation in described:
        for codes in _by_status(codes_of(route, method, operation)).values():
            name = _error_name(codes, operation)
            if name not in made:
                made[name] = _error(codes, operation)
    return made


def _error(codes: tuple[str, ...], operation: Operation) -> dict[str, Any]:
    headers = ["X-Request-Id"]
    if "rate_limited" in codes:
        headers += [] if operation.page else LIMIT_HEADERS
    if {"rate_limited", "temporarily_unavailable"} & {*codes}:
        headers += ["Retry-After"]
    if {"invalid_token", "insufficient_scope"} & {*codes}:
        headers += ["WWW-Authenticate" + (IF_MENDED if "app_paused" in codes else "")]
    if {*AT_SERVER, *AT_RESOURCE} & {*codes}:
        headers += ["DPoP-Nonce"]
    examples = {code: of_error(code, operation.envelope) for code in codes}
    content = {JSON: {"schema": _error_schema(codes, operation.envelope), **shown(examples)}}
    if operation.page:
        content[HTML] = {"schema": ref("Page"), **shown(examples_of("Page"))}
    described = "\n\n".join(describe(code) for code in codes)
    return {"description": described, "headers": _headers(headers), "content": content}


def _error_schema(codes: tuple[str, ...], envelope: str) -> Schema:
    """The schema of the error body, with the codes possible here."""
    if envelope and envelope != "messages":
        return ref(ERROR_SCHEMAS[envelope])
    if envelope:
        kinds = sorted({kind_of(code) for code in codes})
        named: Schema = {"properties": {"error": {"properties": {"type": {"enum": kinds}}}}}
    else:
        named = {"properties": {"error": {"enum": sorted({PUBLIC_NAME.get(code, code) for code in codes})}}}
        if "rate_limited" in codes:
            named["required"] = ["retryAfter"]
    return {"allOf": [ref(ERROR_SCHEMAS[envelope]), named]}


def _forms() -> dict[str, Schema]:
    """The schemas of forms that can replace JSON objects."""
    bodies = {
        operation.body
        for methods in OPERATIONS.values()
        for operation in methods.values()
        if operation.body and not operation.document
    }
    return {f"{name}Form": form_of(SCHEMAS[name]) for name in sorted(bodies)}


def _security(policy: Policy, method: str, operation: Operation) -> list[dict[str, list[str]]]:
    scope = (method != "get" and policy.write_scope) or policy.scope
    found: list[dict[str, list[str]]] = [{"oauth2": [one]} for one in scope.split()]
    return found + [{name: [] for name in alternative} for alternative in operation.security]


def _security_schemes(base_url: str) -> dict[str, Any]:
    flow = {
        "authorizationUrl": f"{base_url}/oauth/authorize",
        "tokenUrl": f"{base_url}/api/oauth/token",
        "refreshUrl": f"{base_url}/api/oauth/token",
        "scopes": {name: words.title for name, words in SCOPE_WORDS.items()},
    }
    cookie = "__Host-latchkey_session" if base_url.startswith("https://") else "latchkey_session"
    return {
        "oauth2": {
            "type": "oauth2",
            "description": "An access token, as `Authorization: Bearer …` (RFC 6750); with a key, as "
            "`Authorization: DPoP …`, with a proof in the header `DPoP` (RFC 9449).",
            "flows": {"authorizationCode": flow},
        },
        "apiKey": {
            "type": "apiKey",
            "in": "header",
            "name": "X-Api-Key",
            "description": "An access token, for clients of the Messages API that send no `Authorization`. With "
            "`Authorization`, or with anything but an access token, this header is ignored. A token that is bound to a "
            "key is refused here.",
        },
        "client": {
            "type": "http",
            "scheme": "basic",
            "description": "`client_id` and `client_secret`, both form-encoded (RFC 6749 2.3.1); or the two in the "
            "body, never both. A public app sends its `client_id` in the body, and an app with `private_key_jwt` "
            "a `client_assertion` there.",
        },
        "registration": {
            "type": "http",
            "scheme": "bearer",
            "description": "A registration token of the operator, or the `registration_access_token` of an app.",
        },
        "session": {"type": "apiKey", "in": "cookie", "name": cookie, "description": "of the pages; not for apps"},
        "xsrf": {"type": "apiKey", "in": "header", "name": "X-Xsrftoken", "description": "or _xsrf in a form"},
    }
