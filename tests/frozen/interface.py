"""The HTTP interface: routes with their methods, the OpenAPI document without its words, and the forms of pages."""

from __future__ import annotations

import http.client
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from tornado.routing import URLSpec
from tornado.web import Application

from tests.support.browser.pages import Element, Page, pages, render

SAMPLE = "x" * 22
"""Fits every pattern of a part of a path."""


def patterns(app: Application) -> list[tuple[str, str]]:
    """The pattern and the name of each route, in the order in which Tornado has them."""
    known = [one for one in app.wildcard_router.rules if isinstance(one, URLSpec) and one.name]
    return [(one.regex.pattern.removesuffix("$"), str(one.name)) for one in known]


def allowed(port: int, path: str) -> str:
    """The methods of a path, as the server names them to a method that there is not; empty where no route is."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        connection.request("BREW", path)
        response = connection.getresponse()
        response.read()
        return response.headers.get("Allow") or "" if response.status == 405 else ""
    finally:
        connection.close()


def routes(app: Application, port: int) -> Iterator[str]:
    """A line for each route: methods, pattern, name."""
    for pattern, name in patterns(app):
        path = re.sub(r"\([^)]*\)", SAMPLE, pattern).replace("\\", "")
        yield f"{pattern}  {allowed(port, path)}  {name}"


def operations(document: Mapping[str, Any]) -> Iterator[str]:
    """The OpenAPI document: what each operation takes and answers, and the fields of every schema."""
    shared = document["components"]

    def found(one: Mapping[str, Any]) -> Mapping[str, Any]:
        while "$ref" in one:
            kind, _, name = one["$ref"].removeprefix("#/components/").partition("/")
            one = shared[kind][name]
        return one

    def named(one: Mapping[str, Any]) -> str:
        return str(one["$ref"]).rpartition("/")[2] if "$ref" in one else kind_of(one)

    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            at = f"{method.upper()} {path}"
            yield f"{at} is {operation['operationId']}"
            for one in operation.get("security", ()):
                shown = (" ".join([name, *scopes]) for name, scopes in one.items())
                yield f"{at} needs {' and '.join(shown) or 'nothing'}"
            if window := operation.get("x-rate-limit"):
                yield f"{at} is limited by {window['group']}: {window['limit']} in {window['seconds']} s"
            for parameter in map(found, operation.get("parameters", ())):
                needed = ", required" if parameter.get("required") else ""
                yield f"{at} takes {parameter['in']} {parameter['name']}: {kind_of(parameter['schema'])}{needed}"
            for media, body in found(operation.get("requestBody", {})).get("content", {}).items():
                yield f"{at} takes {media}: {named(body['schema'])}"
            for status, answer in operation["responses"].items():
                whole = found(answer)
                answers = sorted({code for body in whole.get("content", {}).values() for code in codes(body["schema"])})
                if int(status) < 400:
                    answers = [f"{media} {named(body['schema'])}" for media, body in whole.get("content", {}).items()]
                headers = ", ".join(sorted(whole.get("headers", {})))
                yield f"{at} answers {status} {', '.join(answers)} with {headers}"
    for name, schema in shared["schemas"].items():
        yield from fields(f"schema {name}", schema)


def kind_of(schema: Mapping[str, Any]) -> str:
    """What a value may be, without words."""
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return f"{several}({', '.join(sorted(map(kind_of, schema[several])))})"
    facts = {
        name: value
        for name, value in schema.items()
        if name not in ("description", "example", "examples", "title", "properties", "items", "required", "type")
    }
    kind = schema.get("type", "any")
    kind = "|".join(kind) if isinstance(kind, list) else kind
    if "items" in schema:
        kind = f"{kind} of {kind_of(schema['items'])}"
    return " ".join([kind, *(f"{name}={value}" for name, value in sorted(facts.items()))])


def fields(at: str, schema: Mapping[str, Any]) -> Iterator[str]:
    """A line for each field of a schema, however deep."""
    yield f"{at}: {kind_of(schema)}"
    for name, one in schema.get("properties", {}).items():
        needed = ", required" if name in schema.get("required", ()) else ""
        yield f"{at}.{name}: {kind_of(one)}{needed}"
        yield from (line for line in fields(f"{at}.{name}", one) if not line.startswith(f"{at}.{name}:"))
    for several in ("anyOf", "oneOf", "allOf"):
        for one in schema.get(several, ()):
            yield from (line for line in fields(at, one) if not line.startswith(f"{at}:"))
    if "items" in schema:
        yield from (line for line in fields(f"{at}[]", schema["items"]) if not line.startswith(f"{at}[]:"))


def catalogue(document: Mapping[str, Any]) -> Iterator[str]:
    """A line for each status and code that an operation may answer, and for each type of the SDK's errors."""
    for methods in document["paths"].values():
        for operation in methods.values():
            for status, answer in operation["responses"].items():
                name = str(answer.get("$ref", "")).rpartition("/")[2]
                for body in document["components"]["responses"].get(name, answer).get("content", {}).values():
                    if int(status) >= 400:
                        yield from (f"{status} {code}" for code in codes(body["schema"]))


def codes(schema: Any) -> Iterator[str]:
    """The error codes, or types of errors, that an answer may have."""
    if isinstance(schema, Mapping):
        for name in ("error", "type"):
            one = schema.get("properties", {}).get(name, {}) if isinstance(schema.get("properties"), Mapping) else {}
            yield from one.get("enum", ())
        for value in schema.values():
            yield from codes(value)
    elif isinstance(schema, list):
        for value in schema:
            yield from codes(value)


def forms() -> Iterator[str]:
    """A line for each field of a form of a page: the template, the method and address of the form, the field."""
    for state in pages("X"):
        page = render(state, "X")
        for form in page.all("form"):
            where = "base/layout.html" if any(one.tag == "header" for one in form.parents) else state.split()[0]
            at = f"{where} {(form.get('method') or 'get').upper()} {form.get('action') or 'itself'}"
            yield from sorted({f"{at} {field}" for field in _fields(page, form)})


def _fields(page: Page, form: Element) -> Iterable[str]:
    elsewhere = page.sending(form)
    for field in (*page.inside(form, "input", "textarea", "select", "button"), *elsewhere):
        name, kind = field.get("name"), field.get("type") if field.tag == "input" else field.tag
        if name:
            # The button of a row stands for any other row's.
            value = f"={field.get('value')}" if kind in ("radio", "button") and field not in elsewhere else ""
            yield f"{name}{value} ({kind or 'text'})"
