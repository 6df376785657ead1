"""Multipart forms are read only for picture uploads."""

from __future__ import annotations

import re

import pytest
from tornado import httputil

from handlers.routes import ROUTES
from tests.support.http.driver import Service, send

pytestmark = pytest.mark.gen_test(timeout=60)
PAGES = sorted(
    route.pattern for route in ROUTES if route.policy.xsrf and route.name not in ("account-picture", "developer-logo")
)
BODY = b'--b\r\nContent-Disposition: form-data; name="_xsrf"\r\n\r\na\r\n--b--\r\n'
VARIABLE = re.compile(r"\[(.)[^]]*\](?:\+|\{(?:\d+,)?(\d+)\})")
"""Characters of a class, as often as the last number says."""
HEADERS = {"Content-Type": "multipart/form-data; boundary=b", "Accept": "text/html"}


@pytest.mark.parametrize("method", ["POST", "GET"])
async def test_only_the_upload_parses_multipart_forms(
    service: Service, monkeypatch: pytest.MonkeyPatch, method: str
) -> None:
    taken: list[bytes] = []
    monkeypatch.setattr(httputil, "parse_multipart_form_data", lambda *given, **more: taken.append(given[1]))
    odd = ["/nowhere", "/static/latchkey.css", "/" + "a" * 5_000, "/healthz"]
    for pattern in [*PAGES, *odd]:
        path = VARIABLE.sub(lambda found: found[1] * int(found[2] or 1), pattern)
        path = re.sub(r"[()\\]", "", path)
        answer = await send(service.base_url + path, method, body=BODY, headers=HEADERS, described=False)
        assert answer.code == 415 or pattern in odd, (path, answer.code)
        assert answer.code < 500, path
    assert taken == []
