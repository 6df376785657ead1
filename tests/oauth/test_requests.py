"""Forms of requests: bodies, repeated parameters, broken text, sizes, methods. SPEC 1, 7."""

from __future__ import annotations

import asyncio
import base64
import logging
import time
from urllib.parse import parse_qsl, unquote_to_bytes, urlencode, urlsplit

import pytest

from handlers.core.params import decode_form, parse_pairs
from tests.support.http.driver import CALLBACK, VERIFIER, Browser, Service, fields_of, json_of, send, send_raw
from tests.support.lists.offenders import each

FORM = "application/x-www-form-urlencoded"
JSON = "application/json"
API_POSTS = ("/api/oauth/token", "/api/oauth/revoke", "/api/oauth/introspect", "/api/oauth/par")
PAGE_POSTS = (
    "/api/oauth/authorize",
    "/signin",
    "/signup",
    "/signout",
    "/account/security",
)
GETS = (
    "/",
    "/signin",
    "/signup",
    "/account",
    "/account/apps",
    "/account/security",
    "/oauth/authorize",
    "/api/oauth/userinfo",
    "/.well-known/oauth-authorization-server",
    "/.well-known/jwks.json",
    "/healthz",
    "/readyz",
    "/static/latchkey.css",
    "/nowhere",
    "/api/nowhere",
)


async def post(service: Service, path: str, body: bytes | str, kind: str | None, browser: Browser | None = None) -> int:
    """Posts a body; its status, after asserting the shape of an error. A page's XSRF token goes in the header."""
    headers = {"Content-Type": kind} if kind is not None else {}
    if browser is None:
        response = await send(service.base_url + path, "POST", body=body, headers=headers)
        if response.code != 200:
            assert set(json_of(response)) == {"error", "error_description"}
            assert json_of(response)["error"] == "invalid_request", response.body
    else:
        xsrf = fields_of(await browser.get("/account"), "/signout")["_xsrf"]
        response = await browser.send(path, "POST", headers={**headers, "X-Xsrftoken": xsrf}, body=body)
    return response.code


MALFORMED = [
    pytest.param(b"", JSON, id="nothing where JSON should be"),
    pytest.param(b"{", JSON, id="broken JSON"),
    pytest.param(b'{"token": "a"} x', JSON, id="something after the JSON"),
    pytest.param(b'["token"]', JSON, id="a JSON array"),
    pytest.param(b'"token"', JSON, id="a JSON string"),
    pytest.param(b"null", JSON, id="null"),
    pytest.param(b'{"token": "a", "token": "b"}', JSON, id="a JSON key twice"),
    pytest.param(b'{"token": "a", "tok\\u0065n": "b"}', JSON, id="a JSON key twice, escaped"),
    pytest.param(b'{"token": "a", "x": {"y": 1, "y": 2}}', JSON, id="a JSON key twice, deep inside"),
    pytest.param(b'{"token": "a", "x": NaN}', JSON, id="NaN"),
    pytest.param(b'{"token": "a\\u0000"}', JSON, id="a NUL in JSON"),
    pytest.param(b'{"token": "a", "x\\u0000": "y"}', JSON, id="a NUL in a JSON key"),
    pytest.param(b'{"token": "\\ud800"}', JSON, id="a lone surrogate in JSON"),
    pytest.param(b'{"\\udfff": "a", "token": "a"}', JSON, id="a lone surrogate in a JSON key"),
    pytest.param(b'{"token": "a", "resource": ["\\ud800"]}', JSON, id="a lone surrogate in a JSON list"),
    pytest.param(b'{"token": "a", "x": [1, [["a\\u0000"]]]}', JSON, id="a NUL in lists of lists"),
    pytest.param(b'{"token": "\xff"}', JSON, id="no UTF-8 in JSON"),
    pytest.param(b"\xff\xfe{\x00}\x00", JSON, id="UTF-16"),
    pytest.param(b'\xef\xbb\xbf{"token": "a"}', JSON, id="a byte order mark"),
    pytest.param(b'{"token": "a", "x": ' + b"9" * 5000 + b"}", JSON, id="a number of 5,000 digits"),
    pytest.param(b"[" * 30_000, JSON, id="nested without end"),
    pytest.param(b'{"a":' * 10_000 + b"1" + b"}" * 10_000, JSON, id="nested 10,000 deep"),
    pytest.param(b"token=a&token=b", FORM, id="a parameter twice"),
    pytest.param(b"token=a&x=1&x=2", FORM, id="an unknown parameter twice"),
    pytest.param(b"token=a&tok%65n=b", FORM, id="a parameter twice, escaped"),
    pytest.param(b"token=a&token=", FORM, id="a parameter twice, once empty"),
    pytest.param(b"token=%ff", FORM, id="escaped bytes that are no UTF-8"),
    pytest.param(b"token=\xff\xfe", FORM, id="bytes that are no UTF-8"),
    pytest.param(b"token=%ed%a0%80", FORM, id="an escaped surrogate"),
    pytest.param(b"token=%c0%80", FORM, id="an overlong NUL"),
    pytest.param(b"tok%ffen=a", FORM, id="a name that is no UTF-8"),
    pytest.param(b"token=a%00", FORM, id="an escaped NUL"),
    pytest.param(b"token=a\x00", FORM, id="a NUL"),
    pytest.param(b"\x00=a", FORM, id="a NUL for a name"),
    pytest.param(b"&".join(b"a%d=" % number for number in range(201)), FORM, id="201 parameters"),
    pytest.param(b"%&" * 30_000, FORM, id="fields of a percent sign"),
]


def test_forms_are_decoded_like_the_standard_library_and_quickly() -> None:
    for raw in (b"%41%c3%a9%2", b"%%41%", b"%zz%4g%4", b"a+b%2B%2b", b"100%", b"%C3%A9%e2%82%ac", b"%c3%a9%" * 40):
        assert decode_form(raw) == unquote_to_bytes(raw.replace(b"+", b" ")).decode()
    for raw in (b"a=b&c=d", b"a=b&&c", b"&a=b&", b"=b", b"a==b=", b"a b=c d;e", b"", b"a=%62&c=d", b"a=b+&c=%"):
        wanted = [(name, value) for name, value in parse_qsl(raw.decode(), keep_blank_values=True)]
        assert parse_pairs(raw) == parse_pairs(raw.decode()) == wanted, raw
    begun = time.thread_time()
    for unit in (b"%", b"%4", b"%zz", b"%41", b"+"):
        parse_pairs(b"&".join(b"a%d=" % field + unit * (300 // len(unit)) for field in range(199)))
    assert time.thread_time() - begun < 0.1, "five forms of 60 KB"


@pytest.mark.gen_test
@pytest.mark.trap(20)
@pytest.mark.trap(21)
@pytest.mark.spec("1")
@pytest.mark.spec("7")
@pytest.mark.parametrize(("body", "kind"), MALFORMED)
async def test_malformed_bodies_are_400_on_every_endpoint(service: Service, body: bytes, kind: str) -> None:
    browser = await service.signed_in()
    for path in API_POSTS:
        assert await post(service, path, body, kind) == 400
    for path in PAGE_POSTS:
        assert await post(service, path, body, kind, browser) == 400, path


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "value",
    ["7", "true", '["a"]', '{"a": "b"}', "1.5", "[]"],
    ids=["number", "true", "list", "object", "float", "none"],
)
async def test_a_non_string_value_of_a_string_parameter_is_400(service: Service, value: str) -> None:
    secret = service.web.secret
    code = await service.code()
    good = f'"client_id": "web-app", "client_secret": "{secret}", "redirect_uri": "{CALLBACK}"'
    for body in (
        f'{{"grant_type": {value}, {good}}}',
        f'{{"grant_type": "authorization_code", "code": {value}, {good}}}',
        f'{{"grant_type": "authorization_code", "code": "{code}", "code_verifier": {value}, {good}}}',
        f'{{"grant_type": "refresh_token", "refresh_token": {value}, {good}}}',
        f'{{"grant_type": "refresh_token", "refresh_token": "x", "scope": {value}, {good}}}',
        f'{{"grant_type": "refresh_token", "refresh_token": "x", "client_id": {value}}}',
    ):
        assert await post(service, "/api/oauth/token", body, JSON) == 400
    for body in (f'{{"token": {value}}}', f'{{"token": "x", "token_type_hint": {value}}}'):
        assert await post(service, "/api/oauth/revoke", body, JSON) == 400
    assert (await service.web.exchange(code)).code == 200


@pytest.mark.gen_test
@pytest.mark.spec("1")
async def test_unknown_parameters_are_ignored_and_null_means_missing(service: Service) -> None:
    form = urlencode({"token": "x", "resource": "https://x", "nonce": "n"})
    assert await post(service, "/api/oauth/revoke", form, FORM) == 200
    body = '{"token": "x", "extra": [1, {"a": [null]}], "token_type_hint": null}'
    assert await post(service, "/api/oauth/revoke", body, JSON) == 200


@pytest.mark.gen_test
@pytest.mark.spec("1")
@each(
    ("kind", "status"),
    [
        pytest.param(FORM, 200, id="form"),
        pytest.param(FORM + "; charset=UTF-8", 200, id="form with a charset"),
        pytest.param("Application/X-WWW-Form-URLencoded", 200, id="form in another case"),
        pytest.param("text/plain", 415, id="text"),
        pytest.param("application/xml", 415, id="XML"),
        pytest.param("application/jsonp", 415, id="almost JSON"),
        pytest.param("application/json-patch+json", 415, id="a relative of JSON"),
        pytest.param(FORM + "x", 415, id="almost a form"),
        pytest.param("", 415, id="none"),
        pytest.param(";", 415, id="an empty one"),
        pytest.param("\u00e9", 415, id="letters beyond ASCII"),
    ],
)
async def test_other_content_types_are_415(service: Service, kind: str, status: int) -> None:
    assert await post(service, "/api/oauth/revoke", b"token=x", kind) == status
    assert await post(service, "/api/oauth/token", b"token=x", kind) == (415 if status == 415 else 400)
    browser = await service.signed_in()
    assert await post(service, "/signin", b"email=x", kind, browser) == (415 if status == 415 else 400)


@pytest.mark.gen_test
async def test_multipart_is_415(service: Service) -> None:
    body = b'--b\r\nContent-Disposition: form-data; name="token"\r\n\r\nx\r\n--b--\r\n'
    assert await post(service, "/api/oauth/revoke", body, "multipart/form-data; boundary=b") == 415


@pytest.mark.rfc("9126 2.3 413")
@pytest.mark.gen_test
@pytest.mark.trap(21)
async def test_too_large_is_413(service: Service) -> None:
    limit = 65536
    for body, kind in ((b"token=" + b"x" * (limit - 6), FORM), (b'{"token": "' + b"x" * (limit - 13) + b'"}', JSON)):
        assert len(body) == limit
        assert await post(service, "/api/oauth/revoke", body, kind) == 200
        for path in API_POSTS:
            assert await post(service, path, body + b" ", kind) == 413
    browser = await service.signed_in()
    assert await post(service, "/signin", b"x" * (limit + 1), FORM, browser) == 413


BROKEN_HEADS = {
    "a NUL in a header": b"X-Any: a\x00b",
    "a NUL in the authorization": b"Authorization: Bearer a\x00b",
    "no UTF-8 in the authorization": b"Authorization: Bearer \xff\xfe",
    "no UTF-8 in Basic": b"Authorization: Basic \xff\xfe",
    "NUL within Basic": b"Authorization: Basic " + base64.b64encode(b"\x00:\x00"),
    "no UTF-8 in a cookie": b"Cookie: latchkey_session=\xff\xfe; latchkey_xsrf=\xc3",
    "a NUL in a cookie": b"Cookie: latchkey_session=a\x00b",
    "an octal escape in a cookie": b'Cookie: latchkey_session="\\377\\000"; latchkey_xsrf="2|\\000|\\000|1"',
    "a cookie of nothing": b"Cookie: ;;=;latchkey_session",
    "an odd XSRF cookie": b"Cookie: latchkey_xsrf=2|zz|zz|zz",
    "an endless cookie": b"Cookie: latchkey_session=lk_ss_" + b"A" * 30_000,
    "no UTF-8 in the user agent": b"User-Agent: \xff\xfe\xed\xa0\x80",
    "no UTF-8 in the origin": b"Origin: http://\xff",
    "no UTF-8 in Accept": b"Accept: \xff",
    "no UTF-8 in the content type": b"Content-Type: \xff/\xff",
    "no UTF-8 in forwarded addresses": b"X-Forwarded-For: \xff, \x7f",
    "no UTF-8 in If-None-Match": b'If-None-Match: "\xff"',
    "a broken range": b"Range: bytes=\xff-9999999999999999999999",
    "a header without a name": b": x",
    "a header without a colon": b"nonsense",
    "a broken second authorization": b"Authorization: Bearer x\r\nAuthorization: Basic \xff",
}
BROKEN_TARGETS = (
    b"%s?a=%%ff",
    b"%s?a=\xff\xfe",
    b"%s?a=%%00",
    b"%s?%%00=%%ff&client_id=%%ed%%a0%%80",
    b"%s?client_id=web-app&redirect_uri=%%00",
    b"%s?client_id=web-app&redirect_uri=https://app.example/callback&state=%%ff",
    b"%s?client_id=\xc3\x28",
    b"%s?next=%%ff&invite=%%00",
    b"%s?" + b"a=b&" * 2000,
    b"%s?" + b"&" * 5000,
    b"%s/%%ff",
    b"%s/%%00",
    b"%s/\xff\xfe",
    b"%s/..%%2f..%%2fsetup.cfg",
    b"%s%%2e%%2e/%%2e%%2e/setup.cfg",
    b"/%%ff%s",
    b"//evil.test%s",
    b"http://evil.test%s",
)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(21)
@pytest.mark.parametrize("method", ["GET", "POST", "OPTIONS"])
async def test_broken_text_in_headers_and_cookies_is_never_500(
    service: Service, caplog: pytest.LogCaptureFixture, method: str
) -> None:
    for name, header in BROKEN_HEADS.items():
        for path in (*GETS, *API_POSTS, *PAGE_POSTS, "/account/apps/web-app/revoke"):
            status, answer = await send_raw(service.base_url, f"{method} {path} HTTP/1.1\r\n".encode() + header)
            assert 200 <= status < 500, (name, path, answer)
    assert not [record for record in caplog.records if record.levelno >= logging.WARNING]


@pytest.mark.gen_test(timeout=60)
@pytest.mark.trap(21)
@pytest.mark.parametrize("method", [b"GET", b"POST", b"HEAD", b"NONSENSE"])
async def test_broken_text_in_path_and_query_is_never_500(
    service: Service, caplog: pytest.LogCaptureFixture, method: bytes
) -> None:
    for path in (*GETS, "/api/oauth/token", "/api/oauth/authorize", "/account/apps/x/revoke", "/static/"):
        for target in BROKEN_TARGETS:
            line = method + b" " + target % path.encode() + b" HTTP/1.1\r\n"
            status, answer = await send_raw(service.base_url, line + b"Content-Type: " + FORM.encode())
            assert 200 <= status < 500, (line, answer)
            assert b"[tool:pytest]" not in answer  # nothing outside of static/ is served
    assert not [record for record in caplog.records if record.levelno >= logging.ERROR]


@pytest.mark.gen_test
@pytest.mark.trap(21)
async def test_broken_text_in_a_query_reaches_no_app(service: Service) -> None:
    browser = await service.signed_in()
    await browser.consent(service.web.authorize_url())
    url = service.web.authorize_url(state=None)
    for state in ("%ff", "%00", "a%00b", "%ed%a0%80", "%c0%af"):
        response = await browser.get(f"{url}&state={state}")
        assert response.code == 400
        assert "Location" not in response.headers
    ordinary = await browser.get(f"{url}&state=%E2%82%AC%0a")
    assert ordinary.headers["Location"].count("state=%E2%82%AC%0A") == 1


@pytest.mark.rfc("9126 2.3 405")
@pytest.mark.gen_test
@pytest.mark.spec("1")
@each(
    ("method", "path"),
    [
        ("GET", "/api/oauth/token"),
        ("GET", "/api/oauth/revoke"),
        ("GET", "/api/oauth/introspect"),
        ("GET", "/api/oauth/par"),
        ("GET", "/api/oauth/authorize"),
        ("PUT", "/api/oauth/token"),
        ("DELETE", "/api/oauth/userinfo"),
        ("PATCH", "/api/oauth/revoke"),
        ("POST", "/.well-known/oauth-authorization-server"),
        ("HEAD", "/api/oauth/token"),
        ("NONSENSE", "/api/oauth/userinfo"),
        ("GET", "/signout"),
        ("GET", "/account/apps/web-app/revoke"),
        ("DELETE", "/healthz"),
    ],
)
async def test_another_method_is_405(service: Service, method: str, path: str) -> None:
    response = await send(service.base_url + path, method)
    assert response.code == 405
    if path.startswith(("/api/", "/.well-known/")) and method != "HEAD" and "authorize" not in path:
        assert json_of(response)["error"] == "method_not_allowed"
    # RFC 9110 15.5.6
    allowed = [word.strip() for word in response.headers["Allow"].split(",")]
    assert method not in allowed
    for word in allowed:
        assert (await send(service.base_url + path, word)).code != 405


@pytest.mark.gen_test
@pytest.mark.parametrize("path", ["/api", "/api/", "/api/oauth", "/api/oauth/token/", "/api/v1/nothing", "/nothing"])
async def test_unknown_addresses_are_404(service: Service, path: str) -> None:
    for method in ("GET", "POST", "DELETE"):
        response = await send(service.base_url + path, method)
        assert response.code == 404
        if path.startswith("/api/"):
            assert json_of(response)["error"] == "not_found"
        else:
            assert response.headers["Content-Type"].startswith("text/html")
            assert b"Not found" in response.body
        as_json = await send(service.base_url + path, method, headers={"Accept": "application/json"})
        assert json_of(as_json)["error"] == "not_found"


@pytest.mark.gen_test
async def test_verifier_and_code_in_the_query_are_ignored(service: Service) -> None:
    code = await service.code()
    query = urlencode({"code": code, "code_verifier": VERIFIER, "client_secret": service.web.secret})
    response = await send(
        f"{service.base_url}/api/oauth/token?{query}", "POST", form={"grant_type": "authorization_code"}
    )
    assert response.code == 400
    assert (await service.web.exchange(code)).code == 200


@pytest.mark.gen_test
@pytest.mark.trap(39)
@pytest.mark.parametrize("start", ["/", "/api/v1/data/notes/", "/picture/", "/static/", "/account/apps/"])
async def test_a_path_that_is_too_long_is_not_found(service: Service, start: str) -> None:
    for tail in ("%41" * 1_400, "a/" * 2_100, "a" * 4_100):
        response = await send(f"{service.base_url}{start}{tail}")
        assert response.code == 404, tail[:9]


@pytest.mark.gen_test
@each("path", ["/signin", "/api/oauth/userinfo", "/api/oauth/token", "/nowhere"])
@each(
    "host",
    [
        *("Host: local host\r\n", "Host: local/host\r\n", "Host: localhost, localhost\r\n", ""),
        f"Host: localhost:{'9' * 5_000}\r\n",
    ],
)
async def test_an_invalid_host_is_refused_everywhere(service: Service, path: str, host: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", urlsplit(service.base_url).port)
    writer.write(f"GET {path} HTTP/1.1\r\n{host}Connection: close\r\n\r\n".encode())
    answer = await reader.read()
    writer.close()
    await writer.wait_closed()
    assert answer.startswith(b"HTTP/1.1 400 "), answer


@pytest.mark.gen_test
@pytest.mark.parametrize("host", ["localhost", "localhost:8080", "id.example.com:443", "[::1]:80", "127.0.0.1", "a_b"])
async def test_a_host_may_be_any_name(service: Service, host: str) -> None:
    for path, status in (("/healthz", 200), ("/api/oauth/userinfo", 401)):
        assert (await send(service.base_url + path, headers={"Host": host})).code == status
