"""Every route answers alike on the fast HTTP server and on Tornado's: the status, the header fields and the body.

This is why `make crosscheck` need not repeat the tests of what a request does, only those of how requests arrive and
answers leave."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from typing import Any, NamedTuple

import pytest

from handlers.core.application import Latchkey
from handlers.core.route import Route
from handlers.core.site import Site
from handlers.routes import ROUTES
from tests.support.http.driver import Service
from tests.support.http.http_servers import Answer, request, running
from tests.support.lists.offenders import Offenders

pytestmark = pytest.mark.gen_test(timeout=60)

METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS", "PATCH", "PROPFIND")
MOVES = {"date", "x-request-id", "x-ratelimit-reset", "x-ratelimit-remaining", "retry-after"}
"""Fields whose values differ between two requests on one server too."""
ONCE = re.compile(r'lk_[a-z]+_[\w-]+|name="(?:_xsrf|nonce)" value="[^"]+|[0-9a-f]{16,}|_xsrf=[^;]+')
"""Values that a server makes for one answer."""
CHANGING = {"POST", "PUT", "DELETE"}
ENDLESS = {"account-apps-live"}
"""Routes that answer a signed-in person with a stream of events: tests/accounts/live runs on both servers."""
ARCHIVE = "application/zip"
"""Its bytes depend on the time."""


class Ask(NamedTuple):
    """One request."""

    method: str
    path: str
    fields: tuple[str, ...] = ()
    body: bytes = b""


def requests_of(route: Route, cookie: str, access: str) -> Iterator[Ask]:
    """Requests by a stranger, with each kind of body, and by a signed-in person and an app."""
    path = re.sub(r"\([^)]*\)", "a" * 22, route.pattern).replace("\\", "")
    form, json = "Content-Type: application/x-www-form-urlencoded", "Content-Type: application/json"
    for method in METHODS:
        yield Ask(method, path)
        if method in CHANGING:
            yield Ask(method, path, ("Authorization: Bearer wrong", json), b"{")
            yield Ask(method, path, ("Accept: text/html", "Origin: https://app.example", form), b"a=1&a=2&b=%00")
    yield Ask("POST", path, ("Content-Type: multipart/form-data; boundary=b",), b"--b--\r\n")
    for method in ("GET", "HEAD"):
        if route.name not in ENDLESS:
            yield Ask(method, path, (f"Cookie: {cookie}",))
        yield Ask(method, path, (f"Authorization: Bearer {access}",))
    yield Ask("GET", path + "?a=1&a=2&%zz=%ff")
    yield Ask("GET", path + "/")


def seen(answer: Answer) -> tuple[int, dict[str, str], str]:
    """What must be alike."""
    fields = {name: ONCE.sub("…", value) for name, value in answer.fields.items() if name not in MOVES}
    fields |= dict.fromkeys(MOVES & {*answer.fields}, "…")
    text = "" if fields.get("content-type") == ARCHIVE else answer.body.decode("utf-8", "replace")
    if "content-length" in fields and "…" in ONCE.sub("…", text):
        fields["content-length"] = "…"
    return answer.status, fields, ONCE.sub("…", text)


async def ask(server: Any, question: Ask) -> Answer:
    async with await server.connect() as client:
        client.write(request(question.method, question.path, *question.fields, body=question.body))
        answer: Answer = await client.answer(head=question.method == "HEAD")
        return answer


async def test_every_route_answers_alike_on_both_servers(service: Service, app: Latchkey, site: Site) -> None:
    browser = await service.signed_in()
    cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    access = (await service.tokens(browser=browser))["access_token"]
    failed = Offenders()
    statuses = set()
    async with running(app, "fast") as fast, running(app, "tornado") as tornado:
        for route in ROUTES:
            for question in requests_of(route, cookie, access):
                with failed.of(f"{question}"):
                    one, other = seen(await ask(fast, question)), seen(await ask(tornado, question))
                    statuses.add(one[0])
                    assert one == other
        while site.tasks:
            await asyncio.wait(site.tasks)
    failed.check()
    assert statuses >= {200, 303, 400, 401, 403, 404, 405, 415}
