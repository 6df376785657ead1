"""Hosted documents as an app reads, writes and deletes them over HTTP. SPEC 2.4, 4.6, 5.4, 7, 9."""

from __future__ import annotations

from email.utils import parsedate_to_datetime

import pytest

from tests.support.http.driver import Service, bearer_challenge, json_of, send, send_raw
from tests.support.lists.offenders import each
from tests.support.store.documents_http import DATA, LARGEST, Client, assert_refused

pytestmark = pytest.mark.gen_test(timeout=20)


@pytest.mark.spec("8.2")
@pytest.mark.spec("4.6.read")
@pytest.mark.spec("4.6.write")
@pytest.mark.spec("4.6.delete")
async def test_put_get_head_and_delete(service: Service) -> None:
    client = await Client.make(service)
    put = await client.put("notes/n1", '{"a":  1.10}')
    record = json_of(put)
    assert put.code == 201
    assert set(record) == {"id", "collection", "etag", "size", "createdAt", "updatedAt"}, "never the content"
    assert (record["id"], record["collection"], record["size"]) == ("n1", "notes", 12)
    assert record["etag"] == put.headers["ETag"]
    assert record["etag"].startswith('"')
    assert record["etag"].endswith('"')
    assert record["createdAt"] == record["updatedAt"]
    assert record["createdAt"].endswith("Z")
    assert len(record["createdAt"]) == 24

    got = await client.get("notes/n1")
    assert (got.code, got.body) == (200, b'{"a":  1.10}')
    assert got.headers["ETag"] == put.headers["ETag"]
    assert got.headers["Content-Type"] == "application/json"
    assert got.headers["Cache-Control"] == "private, no-cache"
    modified = parsedate_to_datetime(got.headers["Last-Modified"])
    assert f"{modified:%Y-%m-%dT%H:%M:%S}" == record["updatedAt"][:19]

    head = await client.send("HEAD", "notes/n1")
    assert (head.code, head.body, head.headers["Content-Length"]) == (200, b"", "12")
    assert head.headers["ETag"] == put.headers["ETag"]

    again = await client.put("notes/n1", "2")
    assert again.code == 200
    assert again.headers["ETag"] != put.headers["ETag"]
    assert json_of(again)["createdAt"] == record["createdAt"]

    gone = await client.send("DELETE", "notes/n1")
    assert (gone.code, gone.body) == (204, b"")
    for response in (put, got, head, again, gone):
        assert all(response.headers[f"X-RateLimit-{name}"].isdigit() for name in ("Limit", "Remaining", "Reset"))
    for method in ("GET", "DELETE"):
        assert_refused(await client.send(method, "notes/n1"), 404, "not_found")
    assert (await client.send("HEAD", "notes/n1")).code == 404


@pytest.mark.trap(37)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"null", id="null"),
        pytest.param(b" [1,\n 2 ] \t", id="space"),
        pytest.param(b'{"b":1,"a":2,"b":3}', id="a name that comes twice, in its order"),
        pytest.param(b"12345678901234567890.1234567890e-7", id="a number no float holds"),
        pytest.param(b"9" * 5_000, id="5,000 digits"),
        pytest.param('"\u20ac \U0001f600 \\u00e9 \\/"'.encode(), id="text and escapes"),
        pytest.param(b"[" * 200 + b"]" * 200, id="200 deep"),
        pytest.param(b'"' + b"x" * (LARGEST - 2) + b'"', id="the largest"),
    ],
)
async def test_the_bytes_back_are_the_bytes_sent(service: Service, body: bytes) -> None:
    client = await Client.make(service)
    assert (await client.put("notes/n1", body)).code == 201
    assert (await client.get("notes/n1")).body == body
    listed = await client.get("notes?include=data")
    spliced = listed.body.partition(b',"data":')[2]
    assert spliced == body + b'}],"nextCursor":null}'
    assert await client.used() == (1, len(body))


@pytest.mark.spec("9")
@pytest.mark.trap(25)
@each("method", ["GET", "HEAD"])
@each("condition", ["*", "ETAG", "W/ETAG", '"1", ETAG'])
async def test_no_conditional_get_in_v1(service: Service, method: str, condition: str) -> None:
    client = await Client.make(service)
    etag = (await client.put("notes/n1", '"x"')).headers["ETag"]
    for path in ("notes/n1", "notes", "_meta/usage"):
        response = await client.send(method, path, If_None_Match=condition.replace("ETAG", etag))
        assert response.code == 200
        assert int(response.headers["Content-Length"]) > 0
        assert bool(response.body) == (method == "GET")
        assert ("ETag" in response.headers) == (path == "notes/n1")
    later = await client.send(method, "notes/n1", If_Modified_Since="Fri, 01 Jan 2100 00:00:00 GMT")
    assert later.code == 200


@pytest.mark.spec("9")
@pytest.mark.spec("9.v1")
async def test_the_api_version_is_in_the_path(service: Service) -> None:
    client = await Client.make(service)
    for path in ("/api/data/notes/n1", "/api/v2/data/notes/n1", "/v1/data/notes/n1"):
        response = await send(service.base_url + path, headers={"Authorization": f"Bearer {client.token}"})
        assert response.code == 404


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        pytest.param({"If_Match": "ETAG"}, 200, id="its ETag"),
        pytest.param({"If_Match": '"1", ETAG , "2"'}, 200, id="its ETag in a list"),
        pytest.param({"If_Match": "*"}, 200, id="any"),
        pytest.param({"If_Match": '"1"'}, 412, id="another ETag"),
        pytest.param({"If_Match": "W/ETAG"}, 412, id="a weak one"),
        pytest.param({"If_Match": '"abc"'}, 412, id="one that is not ours"),
        pytest.param({"If_Match": "garbage,,"}, 412, id="no ETag at all"),
        pytest.param({"If_Match": '"' + "9" * 3_000 + '"'}, 412, id="an endless one"),
        pytest.param({"If_None_Match": "*"}, 412, id="only if absent"),
        pytest.param({"If_None_Match": "ETAG"}, 400, id="If-None-Match with an ETag"),
        pytest.param({"If_Match": "ETAG", "If_None_Match": "*"}, 412, id="both"),
    ],
)
async def test_conditional_writes(service: Service, headers: dict[str, str], status: int) -> None:
    client = await Client.make(service)
    etag = (await client.put("notes/n1", '"old"')).headers["ETag"]
    sent = {name: value.replace("ETAG", etag) for name, value in headers.items()}
    response = await client.put("notes/n1", '"new"', **sent)
    assert response.code == status, response.body
    if status == 412:
        assert_refused(response, 412, "precondition_failed")
        assert response.headers["X-RateLimit-Limit"] == "60"
    got = await client.get("notes/n1")
    assert got.body == (b'"new"' if status == 200 else b'"old"')
    assert (got.headers["ETag"] == etag) == (status != 200)


async def test_conditional_creations_and_deletions(service: Service) -> None:
    client = await Client.make(service)
    assert_refused(await client.put("notes/n1", "1", If_Match="*"), 412, "precondition_failed")
    created = await client.put("notes/n1", "1", If_None_Match="*")
    assert created.code == 201
    assert_refused(await client.send("DELETE", "notes/n1", If_Match='"1"'), 412, "precondition_failed")
    assert_refused(await client.send("DELETE", "notes/n1", If_None_Match="*"), 400, "invalid_request")
    assert (await client.send("DELETE", "notes/n1", If_Match=created.headers["ETag"])).code == 204
    assert_refused(await client.send("DELETE", "notes/n1", If_Match="*"), 412, "precondition_failed")


@pytest.mark.spec("2.4")
@pytest.mark.spec("5.4")
@pytest.mark.spec("7")
@pytest.mark.parametrize(
    ("method", "path", "scope"),
    [
        ("GET", "notes/n1", "data:read"),
        ("PUT", "notes/n1", "data:write"),
        ("DELETE", "notes/n1", "data:write"),
        ("GET", "notes", "data:read"),
        ("GET", "_meta/usage", "data:read data:write"),
    ],
)
@pytest.mark.spec("2.4.data-read")
@pytest.mark.spec("2.4.data-write")
async def test_a_wrong_scope_is_403_and_a_wrong_token_401(service: Service, method: str, path: str, scope: str) -> None:
    whole = await Client.make(service)
    await whole.put("notes/n1", '"old"')
    others = {"profile", "data:read", "data:write"} - set(scope.split())
    client = await Client.make(service, *sorted(others))
    await Client.make(service)  # the grant carries all: it is the token that does not
    body = "1" if method == "PUT" else None
    refused = await client.send(method, path, body)
    assert_refused(refused, 403, "insufficient_scope")
    lacks = 'error="insufficient_scope"', f'scope="{scope}"'
    assert refused.headers["WWW-Authenticate"] == bearer_challenge(service.base_url, *lacks)
    client.token = "lk_at_invented"
    unknown = await client.send(method, path, body)
    assert_refused(unknown, 401, "invalid_token")
    assert unknown.headers["WWW-Authenticate"] == bearer_challenge(service.base_url, 'error="invalid_token"')
    for response in (refused, unknown):
        assert "X-RateLimit-Limit" not in response.headers
    assert (await whole.get("notes/n1")).body == b'"old"'


@pytest.mark.spec("1")
@pytest.mark.spec("5.4")
async def test_a_token_from_the_whole_flow_works_until_revoked(service: Service) -> None:
    browser = await service.signed_in()
    client = Client(service, (await service.tokens(browser=browser))["access_token"])
    assert (await client.put("notes/n1", "1")).code == 201
    apps = await browser.get("/account/apps")
    assert (await browser.submit(apps, f"/account/apps/{service.web.client_id}/revoke")).code == 303
    for method in ("GET", "PUT", "DELETE"):
        assert_refused(await client.send(method, "notes/n1", "2" if method == "PUT" else None), 401, "invalid_token")
    back = Client(service, (await service.tokens(browser=browser))["access_token"])
    assert (await back.get("notes/n1")).body == b"1"


@pytest.mark.trap(23)
async def test_pages_of_other_origins_may_call(service: Service) -> None:
    origin = {"Origin": "https://evil.example", "Access-Control-Request-Method": "PUT"}
    for path in ("notes/n1", "notes", "_meta/usage"):
        preflight = await send(service.base_url + DATA + path, "OPTIONS", headers=origin)
        assert preflight.code == 204
        assert preflight.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in preflight.headers
        allowed = {name.strip() for name in preflight.headers["Access-Control-Allow-Headers"].split(",")}
        assert {"Authorization", "Content-Type", "If-Match", "If-None-Match"} <= allowed
        assert {"GET", "PUT", "DELETE"} <= set(preflight.headers["Access-Control-Allow-Methods"].split(", "))
    client = await Client.make(service)
    put = await client.put("notes/n1", "1", Origin="https://app.example")
    assert put.headers["Access-Control-Allow-Origin"] == "*"
    exposed = put.headers["Access-Control-Expose-Headers"]
    for name in ("ETag", "X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset", "Retry-After"):
        assert name in exposed


@pytest.mark.spec("4.6.write")
@pytest.mark.spec("4.6.delete")
async def test_an_empty_condition_never_matches(service: Service) -> None:
    client = await Client.make(service)
    await client.put("notes/n1", "1")
    cases = (("PUT", "If-Match", 412), ("DELETE", "If-Match", 412), ("PUT", "If-None-Match", 400))
    for method, header, status in cases:
        lines = (
            f"{method} /api/v1/data/notes/n1 HTTP/1.1",
            f"Authorization: Bearer {client.token}",
            "Content-Type: application/json",
            f"{header}:",
        )
        assert (await send_raw(service.base_url, "\r\n".join(lines).encode(), b"2"))[0] == status
    assert (await client.send("GET", "notes/n1")).body == b"1"
