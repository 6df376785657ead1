"""APIs in the seed file, and apps that have scopes of APIs, keys, and rules for their requests."""

from __future__ import annotations

from typing import Any

import pytest

from store.apps.api_record import ApiRegistration, ApiScope
from store.errors import StartupError
from store.seed.seeding import SeedReport, seed
from store.wiring import Store
from tests.engine.test_seed import BY_KEY, KEY, ORDERS, SECRET, WEB, Write, write

__all__ = ["write"]  # a fixture


@pytest.mark.gen_test
async def test_seeded_apis_lend_their_scopes_to_seeded_apps(memory_store: Store, write: Write) -> None:
    bills = {"identifier": "https://bills.example", "name": "Bills", "scopes": ["read"], "tokenFormat": "jwt"}
    other = {**bills, "identifier": "https://other.example", "signingAlg": "RS256", "tokenLifetime": 60}
    web = {**WEB, "scopes": "profile orders:read https://bills.example read"}
    path = write({"apps": [web], "apis": [ORDERS, bills, other]})
    report = await seed(memory_store, path)
    assert (report.apis, report.apps) == (
        ("https://orders.example", *(a["identifier"] for a in (bills, other))),
        ("web",),
    )
    found = {api.identifier: api for api in await memory_store.apis.list()}
    orders = found["https://orders.example"]
    assert orders.secret_matches(SECRET)
    assert [(one.name, one.title, one.care) for one in orders.scopes] == [
        ("orders:read", "See your orders", True),
        ("orders:write", "orders:write", False),
    ]
    made = found["https://other.example"]
    assert (made.token_format, made.signing_alg, made.token_lifetime) == ("jwt", "RS256", 60)
    assert not made.secret_matches(SECRET)
    app = await memory_store.apps.find("web")
    assert app is not None
    assert app.scopes == ("profile",)
    assert app.api_scopes == (f"{orders.client_id}/orders:read", f"{found['https://bills.example'].client_id}/read")
    await memory_store.apis.update(orders.client_id, name="Renamed")
    again = await seed(memory_store, path)
    assert again == SeedReport((), ())
    renamed = await memory_store.apis.find(orders.client_id)
    assert renamed
    assert renamed.name == "Renamed"


@pytest.mark.gen_test
async def test_an_api_that_was_deleted_is_seeded_under_another_id(memory_store: Store, write: Write) -> None:
    path = write({"apis": [ORDERS], "apps": [{**WEB, "scopes": "orders:read"}]})
    made, _ = await memory_store.apis.create(ApiRegistration("https://orders.example", "Orders", (ApiScope("a", "A"),)))
    await memory_store.apis.delete(made.client_id)
    assert (await seed(memory_store, path)).apis == ("https://orders.example",)
    (orders,) = await memory_store.apis.list()
    assert orders.client_id != made.client_id
    web = await memory_store.apps.find("web")
    assert web
    assert web.api_scopes == (f"{orders.client_id}/orders:read",)


@pytest.mark.gen_test
async def test_seeded_apps_have_keys_and_rules_for_requests(memory_store: Store, write: Write) -> None:
    rules = {"requirePushed": True, "dpopRequired": True}
    at_uri = {**WEB, "client_id": "uri", "jwksUri": "https://web.example/jwks.json", **rules}
    public = {name: value for name, value in WEB.items() if name != "client_secret"}
    await seed(
        memory_store,
        write({"apps": [BY_KEY, at_uri, {**public, "client_id": "public", "authMethod": "none"}]}),
    )
    await seed(
        memory_store, write({"apps": [{**BY_KEY, "client_id": "fapi", "profile": "fapi2", "pkceRequired": True}]})
    )
    records = {one.client_id: one.record() for one in await memory_store.apps.list()}
    assert {name: one["authMethod"] for name, one in records.items()} == {
        "web": "private_key_jwt",
        "uri": "client_secret",
        "public": "none",
        "fapi": "private_key_jwt",
    }
    old = {"identifier": "https://old.example", "name": "Old", "scopes": ["old"], "tokenFormat": "jwt"}
    wrong = {**BY_KEY, "client_id": "wrong", "profile": "fapi2", "pkceRequired": True, "scopes": "profile old"}
    with pytest.raises(StartupError, match=r"apps\[0\].scopes: the profile fapi2 demands.*not those of https://old"):
        await seed(memory_store, write({"apis": [{**old, "signingAlg": "RS256"}], "apps": [wrong]}))
    fapi = records["fapi"]
    assert (fapi["profile"], fapi["dpopRequired"], fapi["refreshRetrySeconds"]) == ("fapi2", True, 60)
    assert records["web"]["jwks"]["keys"][0]["x"] == KEY["x"]
    assert (records["uri"]["jwksUri"], records["uri"]["requirePushed"]) == ("https://web.example/jwks.json", True)
    assert [records[name]["dpopRequired"] for name in ("web", "uri")] == [False, True]


@pytest.mark.gen_test
@pytest.mark.parametrize(
    "wrong", [{"dpopRequired": False}, {"public": True}, {"authMethod": "client_secret"}, {"idTokenAlg": "RS256"}]
)
async def test_a_seeded_profile_overrules_nothing_that_the_file_says(
    memory_store: Store, write: Write, wrong: dict[str, Any]
) -> None:
    app = {name: value for name, value in BY_KEY.items() if name != "authMethod"}
    path = write({"apps": [{**app, "profile": "fapi2", **wrong}]})
    with pytest.raises(StartupError, match=r"apps\[0\]: the profile fapi2 demands"):
        await seed(memory_store, path)


@pytest.mark.gen_test
async def test_a_seeded_api_is_never_at_the_servers_own_address(memory_store: Store, write: Write) -> None:
    path = write({"apis": [ORDERS]})
    with pytest.raises(StartupError, match=r"apis\[0\].identifier: This is an address of this server itself"):
        await seed(memory_store, path, base_url="https://orders.example")
