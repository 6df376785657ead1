"""Listings of hosted documents and their usage, over HTTP. SPEC 4.6, 7."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

import pytest

from store.documents.documents import Quotas
from store.engine.memory import Room
from tests.support.http.driver import Service, json_of
from tests.support.lists.offenders import each
from tests.support.store.documents_http import Client, assert_refused

pytestmark = pytest.mark.gen_test(timeout=20)


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


async def test_a_list_item_matches_a_read(service: Service) -> None:
    client = await Client.make(service)
    put = json_of(await client.put("notes/n1", '{"a": [1.10]}'))
    del put["collection"]
    response = await client.get("notes")
    assert response.headers["Content-Type"] == "application/json"
    assert json_of(response)["items"] == [put]
    assert json_of(await client.get("notes?include=data"))["items"] == [{**put, "data": {"a": [1.10]}}]


@pytest.mark.spec("7")
@each(
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
async def test_usage_reports_use_and_limits(service: Service) -> None:
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


@pytest.mark.parametrize(
    ("person", "limits"),
    [
        pytest.param(
            Quotas(person_documents=7, person_bytes=2**20, person_part=0), (7, 2**20), id="set by the operator"
        ),
        pytest.param(Quotas(), (10_000, 4 * 2**20), id="on a small server"),
    ],
)
async def test_usage_respects_the_persons_total_limit(
    service: Service, person: Quotas, limits: tuple[int, int]
) -> None:
    client = await Client.make(service)
    service.store.documents.quotas = person
    service.store.headroom.note(Room(0, 2**26))
    usage = json_of(await client.get("_meta/usage"))
    assert (usage["documents"]["limit"], usage["bytes"]["limit"]) == limits
