"""Valid and invalid documents over HTTP: names, JSON, sizes, quotas, types, methods. SPEC 7."""

from __future__ import annotations

from urllib.parse import quote

import pytest

from store.documents.documents import Quotas
from store.documents.hosting import OwnerLimits
from tests.support.http.driver import Service, json_of, send_raw
from tests.support.lists.offenders import each
from tests.support.store.documents_http import DATA, LARGEST, Client, assert_refused

pytestmark = pytest.mark.gen_test(timeout=20)

GOOD_IDS = ("a", "0", "A_.:@~-z", "x" * 128, "a..-")


@pytest.mark.parametrize("document_id", GOOD_IDS)
async def test_valid_document_names(service: Service, document_id: str) -> None:
    client = await Client.make(service)
    for path in (f"A0_.-z/{document_id}", f"{'c' * 64}/{quote(document_id, safe='')}"):
        assert (await client.put(path)).code == 201
        assert (await client.get(path)).body == b"1"


@pytest.mark.spec("7")
@pytest.mark.trap(21)
@each(
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
async def test_invalid_document_names(service: Service, path: str) -> None:
    client = await Client.make(service)
    for method, body in (("GET", None), ("PUT", "1"), ("DELETE", None)):
        assert_refused(await client.send(method, path, body), 400, "invalid_request")
    assert await client.used() == (0, 0)


@pytest.mark.spec("7")
@pytest.mark.trap(37)
@each(
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


async def test_an_owner_over_the_limit_of_all_their_apps_is_507(service: Service) -> None:
    await service.store.apps.update(service.web.client_id, owner=service.ada)
    client = await Client.make(service)
    service.store.hosting.limits = OwnerLimits(bytes=10)
    assert (await client.put("notes/n1", "1" * 10)).code == 201
    await service.store.hosting.flush()
    assert_refused(await client.put("notes/n2", "1"), 507, "quota_exceeded")
    assert (await client.put("notes/n1", "1")).code == 200
    await service.store.hosting.flush()
    assert (await client.put("notes/n2", "1")).code == 201


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


@each(
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
