"""Who may control a server for tests: programs of this machine and its own pages, no other page and no proxy."""

from __future__ import annotations

import httpx
import pytest

from testkit.routes import TESTING_ROUTES
from tests.support.processes.processes import Server
from tests.testkit.conftest import ADA
from tests.testkit.test_testing_http import app_in, request_of

DRIVEN_FROM_ELSEWHERE = {
    "a page of another origin": {"Origin": "https://evil.example"},
    "a page of another port of this machine": {"Origin": "http://localhost:3000"},
    "a page in a sandbox": {"Origin": "null"},
    "a page of another site, by what the browser says": {"Sec-Fetch-Site": "cross-site"},
    "a page of the same site": {"Sec-Fetch-Site": "same-site"},
    "another name for this machine": {"Host": "rebound.example"},
    "a name that begins like this machine's": {"Host": "localhost.evil.example"},
    "a proxy": {"X-Forwarded-For": "192.0.2.1"},
    "a standard proxy": {"Forwarded": "for=192.0.2.1"},
}


@pytest.mark.parametrize("headers", [pytest.param(sent, id=name) for name, sent in DRIVEN_FROM_ELSEWHERE.items()])
def test_other_origins_cannot_use_the_controls(http: httpx.Client, headers: dict[str, str]) -> None:
    for method, path in (("POST", "/testing/reset"), ("GET", f"/testing/credits?email={ADA}")):
        answer = http.request(method, path, headers=headers, json={} if method == "POST" else None)
        assert (answer.status_code, answer.json()["error"]) == (403, "access_denied")
        assert "Access-Control-Allow-Origin" not in answer.headers


def test_the_servers_own_pages_can_use_the_controls(http: httpx.Client, server: Server) -> None:
    headers = {"Origin": server.url, "Sec-Fetch-Site": "same-origin"}
    assert http.post("/testing/reset", json={}, headers=headers).status_code == 200
    at = server.here.removeprefix("http://")
    assert http.post("/testing/reset", json={}, headers={"Host": at}).status_code == 200


@pytest.mark.parametrize(
    "kind", ["application/x-www-form-urlencoded", "text/plain", "multipart/form-data; boundary=b", ""]
)
def test_form_content_types_are_refused(http: httpx.Client, kind: str) -> None:
    for path, _ in TESTING_ROUTES:
        body = b"--b--\r\n" if "boundary" in kind else b"{}"
        answer = http.post(path, content=body, headers={"Content-Type": kind})
        assert answer.status_code == 415, path


def test_preflights_are_not_answered(http: httpx.Client) -> None:
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    for path, _ in TESTING_ROUTES:
        answer = http.options(path, headers=preflight)
        assert answer.status_code in (403, 405), path
        assert not [name for name in answer.headers if name.startswith("access-control-")]


def test_a_foreign_host_gets_the_normal_sign_in(http: httpx.Client) -> None:
    app = app_in(http)
    answer = http.get(request_of(app["client_id"]), headers={"Host": "rebound.example"})
    assert answer.headers["Location"].startswith("/signin?")
