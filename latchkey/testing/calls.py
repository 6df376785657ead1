"""HTTP calls of the service, on the standard library alone."""

from __future__ import annotations

import contextlib
import http.client
import json
from collections.abc import Sequence
from html.parser import HTMLParser
from typing import Any
from urllib.parse import urlencode, urlsplit

SECONDS = 30.0
"""The limit for one call."""


class LatchkeyError(Exception):
    """The service refused a call of the test. `status` is the HTTP status, `error` the code, both as an app would see
    them."""

    def __init__(self, status: int, error: str, description: str) -> None:
        super().__init__(f"{status} {error}: {description}")
        self.status, self.error = status, error


class Calls:
    """Calls of the service at `url`. Each raises LatchkeyError if the service refuses."""

    def __init__(self, url: str) -> None:
        self.url = url

    def post(self, call: str, given: dict[str, Any]) -> Any:
        """POST /testing/`call`, with the fields that are not None."""
        body = json.dumps({name: value for name, value in given.items() if value is not None})
        return self.ask("POST", f"/testing/{call}", body)

    def ask(self, method: str, path: str, body: str | None = None) -> Any:
        """The JSON of an answer."""
        headers = {"Content-Type": "application/json"} if body is not None else {}
        status, _, answer = self._send(method, path, body, headers)
        if status != 200:
            raise _error(status, answer)
        return json.loads(answer)

    def send_form(self, path: str, fields: dict[str, str], headers: dict[str, str]) -> Any:
        """The JSON of the answer to a form, as an app's back end sends one."""
        kind = {"Content-Type": "application/x-www-form-urlencoded"}
        status, _, answer = self._send("POST", path, urlencode(fields), kind | headers)
        if status != 200:
            raise _error(status, answer)
        return json.loads(answer)

    def open(self, url: str, answer: str) -> tuple[str, dict[str, str] | None]:
        """Opens an authorization request like a browser, for a person who gives this answer. Returns the address to
        which the browser is sent, and the fields that it posts there (`response_mode=form_post`) or None."""
        parts = urlsplit(url)
        if f"{parts.scheme}://{parts.netloc}" != self.url:
            raise ValueError(f"this is no address at {self.url}: {url}")
        sent = {"Accept": "application/json", "Latchkey-Consents": answer}
        status, headers, body = self._send("GET", f"{parts.path}?{parts.query}", None, sent)
        if location := headers.get("Location"):
            return location, None
        page = _Posting()
        page.feed(body.decode("utf-8", "replace"))
        if page.action is None:
            raise _error(status, body)
        return page.action, page.fields

    def _send(
        self, method: str, path: str, body: str | None, headers: dict[str, str]
    ) -> tuple[int, http.client.HTTPMessage, bytes]:
        parts = urlsplit(self.url)
        # A connection for each call: at a breakpoint, a test may wait longer than a connection is kept.
        with contextlib.closing(http.client.HTTPConnection(parts.netloc, timeout=SECONDS)) as connection:
            connection.request(method, path, body, headers)
            response = connection.getresponse()
            return response.status, response.headers, response.read()


class _Posting(HTMLParser):
    """The page that posts the answer to the app by itself."""

    action: str | None = None

    def __init__(self) -> None:
        super().__init__()
        self.fields: dict[str, str] = {}

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Reads the form and its fields."""
        given = {name: value or "" for name, value in attrs}
        if tag == "form" and "data-submit-now" in given:
            self.action = given["action"]
        elif tag == "input" and self.action is not None:
            self.fields[given["name"]] = given["value"]


def listed(scopes: str | Sequence[str]) -> str | list[str]:
    """Scopes in a form that JSON has: names separated by spaces, or a list."""
    return scopes if isinstance(scopes, str) else list(scopes)


def _error(status: int, body: bytes) -> LatchkeyError:
    try:
        error = json.loads(body)
        return LatchkeyError(status, error["error"], error["error_description"])
    except (ValueError, KeyError, TypeError):
        return LatchkeyError(status, "no_redirect", "the browser stays on a page of Latchkey's")
