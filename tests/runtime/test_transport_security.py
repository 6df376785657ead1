"""HSTS, and whose forwarded addresses are trusted. RFC 6797, RFC 9700 4.13."""

from __future__ import annotations

import logging
from dataclasses import replace
from ipaddress import ip_network

import pytest

from handlers.core.application import Latchkey
from tests.support.http.driver import Service, send
from tests.support.http.http_servers import request, running

pytestmark = pytest.mark.gen_test(timeout=30)

both = pytest.mark.parametrize("http", ["fast", "tornado"])
REQUESTS = (
    ("GET", "/signin", 200),
    ("GET", "/nowhere", 404),
    ("GET", "/account", 303),
    ("GET", "/api/oauth/userinfo", 401),
    ("GET", "/api/nowhere", 404),
    ("OPTIONS", "/api/oauth/token", 204),
    ("POST", "/signin", 403),
    ("GET", "/static/latchkey.css", 200),
    ("GET", "/static/nowhere", 404),
    ("GET", "/healthz", 200),
)


@pytest.mark.fapi("5.2.3-1 stripping")
@both
@pytest.mark.parametrize(
    ("base_url", "subdomains", "said"),
    [
        pytest.param("https://id.example", False, "max-age=31536000", id="https"),
        pytest.param("https://id.example", True, "max-age=31536000; includeSubDomains", id="https, subdomains too"),
        pytest.param("http://id.example", True, None, id="http"),
    ],
)
async def test_every_answer_under_an_https_base_url_keeps_browsers_on_https(
    http: str, service: Service, app: Latchkey, base_url: str, subdomains: bool, said: str | None
) -> None:
    app.site = replace(app.site, base_url=base_url, hsts_subdomains=subdomains)
    async with running(app, http) as server:
        for method, path, status in REQUESTS:
            async with await server.connect() as client:
                client.write(request(method, path, "Connection: close", body=b""))
                answer = await client.answer()
                assert (path, answer.status) == (path, status)
                assert answer.fields.get("strict-transport-security") == said, path
        app.bound = 0
        for path in ("/signin", "/api/oauth/userinfo"):
            for method in ("GET", "POST"):
                async with await server.connect() as client:
                    client.write(request(method, path, body=b""))
                    answer = await client.answer()
                    assert (answer.status, answer.fields.get("strict-transport-security")) == (503, said)


@pytest.mark.parametrize(
    ("head", "status"),
    [
        pytest.param(b"nonsense\r\n\r\n", 400, id="no request"),
        pytest.param(b"GET /" + b"a" * 70_000 + b" HTTP/1.1\r\n\r\n", 414, id="a line too long"),
        pytest.param(b"GET / HTTP/1.1\r\nX: " + b"a" * 70_000 + b"\r\n\r\n", 431, id="headers too long"),
    ],
)
async def test_malformed_requests_are_refused_with_hsts_too(
    service: Service, app: Latchkey, head: bytes, status: int
) -> None:
    app.site = replace(app.site, base_url="https://id.example")
    async with running(app) as server, await server.connect() as client:
        client.write(head)
        answer = await client.answer()
        assert (answer.status, answer.fields["strict-transport-security"]) == (status, "max-age=31536000")


@both
async def test_every_answer_has_a_content_security_policy_and_nosniff(
    http: str, service: Service, app: Latchkey
) -> None:
    picture = str((await service.web.userinfo((await service.tokens())["access_token"])).body).partition("/picture/")[2]
    requests = [*REQUESTS, ("GET", f"/picture/{picture.partition(chr(34))[0]}", 200)]
    async with running(app, http) as server:
        for full in (False, True):
            app.bound = 0 if full else app.most
            for method, path, status in requests:
                async with await server.connect() as client:
                    client.write(request(method, path, "Connection: close", "Accept: text/html", body=b""))
                    answer = await client.answer()
                    fields = answer.fields
                    assert answer.status == (503 if full and path != "/healthz" else status), path
                    assert fields["content-security-policy"].startswith("default-src 'none'; "), path
                    assert "frame-ancestors 'none'" in fields["content-security-policy"], path
                    assert fields["x-content-type-options"] == "nosniff", path


@pytest.mark.parametrize(
    ("trusted", "warnings"),
    [pytest.param("10.0.0.0/8", 1, id="of nobody we trust"), pytest.param("127.0.0.0/8", 0, id="of a trusted proxy")],
)
async def test_a_forwarded_address_from_an_untrusted_peer_is_logged_once(
    service: Service, app: Latchkey, caplog: pytest.LogCaptureFixture, trusted: str, warnings: int
) -> None:
    app.site = replace(app.site, trusted_proxies=(ip_network(trusted),), peers={})
    with caplog.at_level(logging.WARNING, "latchkey.http"):
        for _ in range(3):
            form = {"grant_type": "refresh_token", "refresh_token": "lk_rt_none", "client_id": service.web.client_id}
            headers = {"X-Forwarded-For": "203.0.113.7"}
            await send(f"{service.base_url}/api/oauth/token", "POST", form=form, headers=headers)
    said = [record.getMessage() for record in caplog.records if "X-Forwarded-For" in record.getMessage()]
    assert len(said) == warnings
    assert all("trusted_proxies" in line and "203.0.113.7" not in line for line in said)
