"""Hosted documents as an app meets them, over HTTP. SPEC 2.4, 4.6, 5.4, 7, 9."""

from __future__ import annotations

import json
from email.utils import parsedate_to_datetime
from typing import Any
from urllib.parse import quote

import pytest
from tornado.httpclient import HTTPResponse

from store.documents import Quotas
from tests.driver import Service, json_of, send, send_raw

pytestmark = pytest.mark.gen_test(timeout=20)

DATA = "/api/v1/data/"
LARGEST = Quotas().document_bytes


class Client:
    """An app's calls with one access token."""

    def __init__(self, service: Service, token: str) -> None:
        self.service, self.token = service, token

    @classmethod
    async def make(cls, service: Service, *scopes: str) -> Client:
        """With the scopes data:read and data:write, or those given."""
        app = await service.store.apps.find(service.web.client_id)
        assert app is not None
        minted = await service.store.tokens.mint(service.ada, app, scopes or ("data:read", "data:write"))
        return cls(service, minted.access_token)

    async def send(self, method: str, path: str, body: str | bytes | None = None, **headers: str) -> HTTPResponse:
        """One request below /api/v1/data/; underscores in the names of headers stand for hyphens."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return await send(
            self.service.base_url + DATA + path,
            method,
            body=body,
            headers={"Authorization": f"Bearer {self.token}", "Content-Type": "application/json", **named},
        )

    async def put(self, path: str, body: str | bytes = "1", **headers: str) -> HTTPResponse:
        """Writes a document."""
        return await self.send("PUT", path, body, **headers)

    async def get(self, path: str, **headers: str) -> HTTPResponse:
        """Reads whatever the path names."""
        return await self.send("GET", path, **headers)

    async def used(self) -> tuple[int, int]:
        """Documents and bytes, as usage tells."""
        usage = json_of(await self.get("_meta/usage"))
        return usage["documents"]["used"], usage["bytes"]["used"]


def assert_refused(response: HTTPResponse, status: int, code: str) -> None:
    """The catalogue's error in the interface's form."""
    assert (response.code, json_of(response)["error"]) == (status, code), response.body
    assert json_of(response)["error_description"]
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["Access-Control-Allow-Origin"] == "*"
    assert response.headers["X-Request-Id"]


@pytest.mark.spec("8.2")
@pytest.mark.spec("4.6.read")
@pytest.mark.spec("4.6.write")
@pytest.mark.spec("4.6.delete")
async def test_put_get_head_and_delete(service: Service) -> None:
    client = await Client.make(service)
    put = await client.put("notes/n1", '{"a":  1.10}')
    told = json_of(put)
    assert put.code == 201
    assert set(told) == {"id", "collection", "etag", "size", "createdAt", "updatedAt"}, "never the content"
    assert (told["id"], told["collection"], told["size"]) == ("n1", "notes", 12)
    assert told["etag"] == put.headers["ETag"]
    assert told["etag"].startswith('"')
    assert told["etag"].endswith('"')
    assert told["createdAt"] == told["updatedAt"]
    assert told["createdAt"].endswith("Z")
    assert len(told["createdAt"]) == 24

    got = await client.get("notes/n1")
    assert (got.code, got.body) == (200, b'{"a":  1.10}')
    assert got.headers["ETag"] == put.headers["ETag"]
    assert got.headers["Content-Type"] == "application/json"
    assert got.headers["Cache-Control"] == "private, no-cache"
    modified = parsedate_to_datetime(got.headers["Last-Modified"])
    assert f"{modified:%Y-%m-%dT%H:%M:%S}" == told["updatedAt"][:19]

    head = await client.send("HEAD", "notes/n1")
    assert (head.code, head.body, head.headers["Content-Length"]) == (200, b"", "12")
    assert head.headers["ETag"] == put.headers["ETag"]

    again = await client.put("notes/n1", "2")
    assert again.code == 200
    assert again.headers["ETag"] != put.headers["ETag"]
    assert json_of(again)["createdAt"] == told["createdAt"]

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
@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("condition", ["*", "ETAG", "W/ETAG", '"1", ETAG'])
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
async def test_the_version_stands_in_the_path(service: Service) -> None:
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
async def test_conditions_of_a_write(service: Service, headers: dict[str, str], status: int) -> None:
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


async def test_conditions_of_a_first_write_and_of_a_deletion(service: Service) -> None:
    client = await Client.make(service)
    assert_refused(await client.put("notes/n1", "1", If_Match="*"), 412, "precondition_failed")
    created = await client.put("notes/n1", "1", If_None_Match="*")
    assert created.code == 201
    assert_refused(await client.send("DELETE", "notes/n1", If_Match='"1"'), 412, "precondition_failed")
    assert_refused(await client.send("DELETE", "notes/n1", If_None_Match="*"), 400, "invalid_request")
    assert (await client.send("DELETE", "notes/n1", If_Match=created.headers["ETag"])).code == 204
    assert_refused(await client.send("DELETE", "notes/n1", If_Match="*"), 412, "precondition_failed")


GOOD_IDS = ("a", "0", "A_.:@~-z", "x" * 128, "a..-")


@pytest.mark.parametrize("document_id", GOOD_IDS)
async def test_good_names(service: Service, document_id: str) -> None:
    client = await Client.make(service)
    for path in (f"A0_.-z/{document_id}", f"{'c' * 64}/{quote(document_id, safe='')}"):
        assert (await client.put(path)).code == 201
        assert (await client.get(path)).body == b"1"


@pytest.mark.spec("7")
@pytest.mark.trap(21)
@pytest.mark.parametrize(
    "path",
    [
        pytest.param("_notes/n1", id="a reserved collection"),
        pytest.param("_meta/other", id="another name below _meta"),
        pytest.param("notes/_n1", id="a reserved id"),
        pytest.param(".notes/n1", id="a collection that begins with a dot"),
        pytest.param("notes/-n1", id="an id that begins with a hyphen"),
        pytest.param("c" * 65 + "/n1", id="a collection of 65"),
        pytest.param("notes/" + "x" * 129, id="an id of 129"),
        pytest.param("no%20tes/n1", id="a space"),
        pytest.param("notes/a%2Fb", id="a slash, escaped"),
        pytest.param("notes/a%00", id="a NUL"),
        pytest.param("notes/a%0A", id="a line break at the end"),
        pytest.param("notes/a%7F", id="a control character"),
        pytest.param("notes/%C3%A9", id="a letter beyond ASCII"),
        pytest.param("notes/%FF", id="broken UTF-8"),
        pytest.param("notes/%D9%A1", id="a digit beyond ASCII"),
        pytest.param("no:tes/n1", id="a colon in a collection"),
        pytest.param("notes/a*", id="a star"),
    ],
)
async def test_bad_names(service: Service, path: str) -> None:
    client = await Client.make(service)
    for method, body in (("GET", None), ("PUT", "1"), ("DELETE", None)):
        assert_refused(await client.send(method, path, body), 400, "invalid_request")
    assert await client.used() == (0, 0)


@pytest.mark.spec("7")
@pytest.mark.trap(37)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"{", id="an open object"),
        pytest.param(b"[NaN]", id="NaN"),
        pytest.param(b'"\xff"', id="broken UTF-8"),
        pytest.param(rb'"\ud800"', id="a surrogate alone"),
        pytest.param(b"[" * 100_000, id="nested 100,000 deep, open"),
        pytest.param(b"[" * 100_000 + b"]" * 100_000, id="nested 100,000 deep"),
        pytest.param(b"[" * 201 + b'"' + rb"\"" * 130_000, id="a string that never ends"),
        pytest.param(b"\x00", id="a NUL"),
        pytest.param(b"a=1", id="a form"),
    ],
)
async def test_bad_json_is_400_and_changes_nothing(service: Service, body: bytes) -> None:
    client = await Client.make(service)
    await client.put("notes/n1", '"old"')
    assert_refused(await client.put("notes/n1", body), 400, "invalid_request")
    assert_refused(await client.put("notes/n2", body), 400, "invalid_request")
    assert (await client.get("notes/n1")).body == b'"old"'
    assert await client.used() == (1, 5)


async def test_too_large_is_413_and_changes_nothing(service: Service) -> None:
    client = await Client.make(service)
    await client.put("notes/n1", '"old"')
    for size in (LARGEST + 1, LARGEST * 3):
        assert_refused(await client.put("notes/n1", b"9" * size), 413, "document_too_large")
    assert (await client.get("notes/n1")).body == b'"old"'
    service.store.documents.quotas = Quotas(document_bytes=3)
    assert (await client.put("notes/n1", "123")).code == 200
    assert_refused(await client.put("notes/n1", "1234"), 413, "document_too_large")
    assert json_of(await client.get("_meta/usage"))["maxDocumentBytes"] == 3


async def test_over_quota_is_507_and_changes_nothing(service: Service) -> None:
    client = await Client.make(service)
    service.store.documents.quotas = Quotas(documents=2, collections=1, bytes=10)
    for name in ("n1", "n2"):
        assert (await client.put(f"notes/{name}", "1234")).code == 201
    for path, body in (("notes/n3", "1"), ("other/n1", "1"), ("notes/n1", "1234567")):
        refused = await client.put(path, body)
        assert_refused(refused, 507, "quota_exceeded")
        assert refused.headers["X-RateLimit-Limit"] == "60"
    assert await client.used() == (2, 8)
    assert (await client.put("notes/n1", "1")).code == 200
    assert (await client.send("DELETE", "notes/n2")).code == 204


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        pytest.param("application/json; charset=utf-8", 201, id="with a charset"),
        pytest.param("Application/JSON", 201, id="in capitals"),
        pytest.param("application/ld+json", 201, id="a kind of JSON"),
        pytest.param("application/x-www-form-urlencoded", 415, id="a form"),
        pytest.param("text/plain", 415, id="text"),
    ],
)
async def test_the_content_type_of_a_document(service: Service, kind: str, status: int) -> None:
    client = await Client.make(service)
    response = await client.put("notes/n1", "1", Content_Type=kind)
    assert response.code == status, response.body
    if status == 415:
        assert_refused(response, 415, "invalid_request")
    assert (await client.used())[0] == (1 if status == 201 else 0)


async def test_a_document_without_a_content_type_is_json(service: Service) -> None:
    client = await Client.make(service)
    head = f"PUT {DATA}notes/n1 HTTP/1.1\r\nAuthorization: Bearer {client.token}\r\n".encode()
    status, answer = await send_raw(service.base_url, head, b"[1]")
    assert status == 201, answer
    assert (await client.get("notes/n1")).body == b"[1]"


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "notes/n1"),
        ("PATCH", "notes/n1"),
        ("PUT", "notes"),
        ("POST", "notes"),
        ("DELETE", "notes"),
        ("PUT", "_meta/usage"),
        ("DELETE", "_meta/usage"),
        ("POST", "_meta/usage"),
    ],
)
async def test_a_wrong_method_is_405_and_changes_nothing(service: Service, method: str, path: str) -> None:
    client = await Client.make(service)
    await client.put("notes/n1", '"old"')
    assert_refused(await client.send(method, path, None if method == "DELETE" else "1"), 405, "method_not_allowed")
    assert await client.used() == (1, 5)
    assert (await client.get("notes/n1")).body == b'"old"'


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
    assert refused.headers["WWW-Authenticate"].endswith(f'error="insufficient_scope", scope="{scope}"')
    client.token = "lk_at_invented"
    unknown = await client.send(method, path, body)
    assert_refused(unknown, 401, "invalid_token")
    assert unknown.headers["WWW-Authenticate"] == 'Bearer realm="latchkey", error="invalid_token"'
    for response in (refused, unknown):
        assert "X-RateLimit-Limit" not in response.headers
    assert (await whole.get("notes/n1")).body == b'"old"'


@pytest.mark.spec("1")
@pytest.mark.spec("5.4")
async def test_a_token_of_the_whole_flow_and_its_end(service: Service) -> None:
    browser = await service.signed_in()
    client = Client(service, (await service.tokens(browser=browser))["access_token"])
    assert (await client.put("notes/n1", "1")).code == 201
    apps = await browser.get("/account/apps")
    assert (await browser.submit(apps, f"/account/apps/{service.web.client_id}/revoke")).code == 303
    for method in ("GET", "PUT", "DELETE"):
        assert_refused(await client.send(method, "notes/n1", "2" if method == "PUT" else None), 401, "invalid_token")
    back = Client(service, (await service.tokens(browser=browser))["access_token"])
    assert (await back.get("notes/n1")).body == b"1"


async def listed(client: Client, query: str) -> tuple[list[str], Any]:
    """The ids of a page of the collection `notes` and its cursor."""
    response = await client.get(f"notes?{query}")
    assert response.code == 200, response.body
    page = json_of(response)
    assert set(page) == {"items", "nextCursor"}
    return [item["id"] for item in page["items"]], page["nextCursor"]


@pytest.mark.spec("4.6.list")
async def test_a_listing_goes_page_by_page(service: Service) -> None:
    client = await Client.make(service)
    ids = [f"n{number:02}" for number in range(9)] + ["o1"]
    for document_id in reversed(ids):
        await client.put(f"notes/{document_id}", json.dumps({"id": document_id}))
    assert await listed(client, "") == (ids, None)
    seen, cursor = await listed(client, "limit=4")
    while cursor is not None:
        assert isinstance(cursor, str)
        assert cursor == quote(cursor, safe="")
        more, cursor = await listed(client, f"limit=4&cursor={cursor}")
        seen += more
    assert seen == ids
    assert await listed(client, "prefix=o") == (["o1"], None)
    assert await listed(client, "prefix=n0&limit=200") == (ids[:9], None)
    assert await listed(client, "prefix=zz") == ([], None)
    assert await listed(client, "limit=10") == (ids, None), "no cursor where nothing follows"
    assert json_of(await client.get("unknown")) == {"items": [], "nextCursor": None}


async def test_an_item_tells_what_a_read_tells(service: Service) -> None:
    client = await Client.make(service)
    put = json_of(await client.put("notes/n1", '{"a": [1.10]}'))
    del put["collection"]
    response = await client.get("notes")
    assert response.headers["Content-Type"] == "application/json"
    assert json_of(response)["items"] == [put]
    assert json_of(await client.get("notes?include=data"))["items"] == [{**put, "data": {"a": [1.10]}}]


@pytest.mark.spec("7")
@pytest.mark.parametrize(
    "query",
    [
        "limit=0", "limit=201", "limit=-1", "limit=ten", "limit=1.5", "limit=%D9%A1", "limit=9999", "limit=1&limit=2",
        "cursor=!", "cursor=%00", "cursor=%FF", "cursor=X3JlcA", "cursor=YQ===YQ", "cursor=" + "YWFh" * 100,
        "include=everything", "include=data&include=data", "prefix=a/b", "prefix=%C3%A9", "prefix=%7F",
        "prefix=" + "x" * 129,
    ],
)  # fmt: skip
async def test_bad_parameters_of_a_listing(service: Service, query: str) -> None:
    assert_refused(await (await Client.make(service)).get(f"notes?{query}"), 400, "invalid_request")


@pytest.mark.parametrize("path", ["_meta", "_notes", "no%20tes", "-", "c" * 65])
async def test_bad_names_of_a_collection(service: Service, path: str) -> None:
    assert_refused(await (await Client.make(service)).get(path), 400, "invalid_request")


@pytest.mark.spec("4.6.usage")
async def test_usage_tells_use_and_limits(service: Service) -> None:
    client = await Client.make(service)
    quotas = Quotas()
    empty = {
        "documents": {"used": 0, "limit": quotas.documents},
        "bytes": {"used": 0, "limit": quotas.bytes},
        "maxDocumentBytes": quotas.document_bytes,
        "collections": [],
    }
    assert json_of(await client.get("_meta/usage")) == empty
    for path, body in (("b/1", "12345"), ("a/1", "1"), ("a/2", "22"), ("a/1", "333")):
        await client.put(path, body)
    assert json_of(await client.get("_meta/usage")) == {
        **empty,
        "documents": {"used": 3, "limit": 10_000},
        "bytes": {"used": 10, "limit": 67_108_864},
        "collections": [
            {"name": "a", "documents": 2, "bytes": 5},
            {"name": "b", "documents": 1, "bytes": 5},
        ],
    }
    write_only = await Client.make(service, "data:write")
    assert (await write_only.get("_meta/usage")).code == 200


@pytest.mark.trap(23)
async def test_a_page_of_another_origin_may_call(service: Service) -> None:
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
async def test_a_condition_that_names_nothing_is_met_by_nothing(service: Service) -> None:
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
