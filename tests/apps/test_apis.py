"""Registrations of APIs: what may register, identifiers, secrets, the cache, the list."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest

from store import keys
from store.apps.api_record import RESERVED_SCOPES, ApiRegistration, ApiScope, api_id, own_identifier
from store.apps.apis import Apis, resolve_scopes
from store.apps.cache import CACHE_SECONDS
from store.apps.client_ids import is_api_id
from store.apps.registration import InvalidRegistration, Registration
from store.names import check_client_id
from store.refused import Refused
from store.wiring import Store
from tests.apps.test_app_cache import subscribed, until
from tests.support.lists.offenders import each
from tests.support.processes.engines import Engine, Ticking
from tests.support.store.lost_answers import OpenNew

READ = ApiScope("orders:read", "See your orders")
ANY = ApiRegistration("https://orders.example", "Orders", (READ,))


@each(
    "fields",
    [
        pytest.param({"identifier": "orders.example"}, id="an identifier that is not absolute"),
        pytest.param({"identifier": "https://orders.example#a"}, id="a fragment"),
        pytest.param({"identifier": "https://orders.example#"}, id="an empty fragment"),
        pytest.param({"identifier": "http://orders.example"}, id="http beyond loopback"),
        pytest.param({"identifier": "http://localhost.evil.example"}, id="http at a host that begins like loopback"),
        pytest.param({"identifier": "urn:orders"}, id="another scheme"),
        pytest.param({"identifier": "https://Orders.example"}, id="a host with another spelling"),
        pytest.param({"identifier": "HTTPS://orders.example"}, id="a scheme with another spelling"),
        pytest.param({"identifier": "https://ada@orders.example"}, id="a user name"),
        pytest.param({"identifier": "https://orders.example/a b"}, id="a space"),
        pytest.param({"identifier": "https://orders.example/\u00e9"}, id="a letter beyond ASCII"),
        pytest.param({"identifier": "https://orders.example/\n"}, id="a line break"),
        pytest.param({"identifier": "https://orders.example:70000"}, id="a port that is none"),
        pytest.param({"identifier": "https://"}, id="no host"),
        pytest.param({"identifier": "https://orders.example/" + "x" * 200}, id="an endless identifier"),
        pytest.param({"name": ""}, id="no name"),
        pytest.param({"scopes": ()}, id="no scope"),
        pytest.param({"scopes": (READ, READ)}, id="one scope twice"),
        pytest.param({"scopes": tuple(ApiScope(f"s{n}", "S") for n in range(51))}, id="too many scopes"),
        pytest.param({"token_format": "paseto"}, id="an unknown token format"),
        pytest.param({"signing_alg": "none"}, id="no signature"),
        pytest.param({"signing_alg": "HS256"}, id="a signature with a shared secret"),
        pytest.param({"token_lifetime": 59}, id="a token that ends at once"),
        pytest.param({"token_lifetime": 3601}, id="a token that lives longer than an hour"),
        pytest.param({"status": "odd"}, id="an unknown status"),
    ],
)
def test_what_breaks_a_rule_does_not_register(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        replace(ANY, **fields)


@each(
    "fields",
    [
        *(pytest.param({"name": name}, id=f"the reserved scope {name}") for name in sorted(RESERVED_SCOPES)),
        pytest.param({"name": ""}, id="no name"),
        pytest.param({"name": "a b"}, id="a space, which separates scopes"),
        pytest.param({"name": "a=b"}, id="an equals sign, which ends the name on the command line"),
        pytest.param({"name": 'a"b'}, id="a quote"),
        pytest.param({"name": "a\\b"}, id="a backslash"),
        pytest.param({"name": "a\n"}, id="a line break"),
        pytest.param({"name": "\u00e9"}, id="a letter beyond ASCII"),
        pytest.param({"name": "x" * 65}, id="an endless name"),
        pytest.param({"title": ""}, id="no title"),
        pytest.param({"title": " a"}, id="a title that begins with a space"),
        pytest.param({"title": "x" * 101}, id="an endless title"),
        pytest.param({"title": "a\u202eb"}, id="a title that reorders the text around it"),
        pytest.param({"detail": "x" * 301}, id="an endless detail"),
    ],
)
def test_a_scope_that_breaks_a_rule_does_not_register(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidRegistration):
        replace(READ, **fields)


def test_openid_s_and_latchkey_s_scopes_are_reserved() -> None:
    ours = {"profile", "credits:read", "credits:spend", "apps:read", "data:read", "data:write"}
    assert ours | {"openid", "email", "groups", "offline_access", "address", "phone"} <= RESERVED_SCOPES


@each(
    "identifier",
    [
        *("https://api.example.com", "https://api.example.com/v1", "https://api.example.com:8443/v1?x=1"),
        *("http://localhost:3000", "http://127.0.0.1/api", "http://[::1]:8000/"),
    ],
)
def test_an_identifier_is_an_absolute_uri(identifier: str) -> None:
    api = replace(ANY, identifier=identifier)
    assert check_client_id(api.client_id) == api.client_id
    assert is_api_id(api.client_id)
    assert len(api.client_id) == 19, "it is in the rows of everybody who grants one of its scopes"
    assert is_api_id(f"{api.client_id}2"), "the third API with this identifier"
    assert not any(map(is_api_id, ("a" * 19, "api_gateway", f"{api.client_id}x", "api_" + "-" * 15)))


@pytest.mark.rfc("8707 3 tenant")
def test_an_identifier_leads_to_one_client_id() -> None:
    assert api_id("https://a.example") == api_id("https://a.example/")
    others = ["https://a.example/", "https://a.example/b", "https://a.example/b/", "https://a.example?c=/", "https://b"]
    assert len({api_id(one) for one in others}) == len(others)


def test_an_address_of_this_server_is_its_own() -> None:
    assert own_identifier("https://id.example/mcp", "https://id.example")
    assert not own_identifier("https://id.example:8443", "https://id.example")
    assert not own_identifier("https://api.id.example", "https://id.example")


def test_what_is_stored_is_what_was_registered() -> None:
    scopes = (READ, ApiScope("orders.write", "Place orders", "It can spend money.", care=True))
    api = replace(ANY, scopes=scopes, token_format="jwt", signing_alg="RS256", token_lifetime=60, created_at=7)
    api = api.with_secret("a secret", 1)
    assert ApiRegistration.unpack(api.pack()) == api


def test_two_secrets_live_at_most() -> None:
    api = ANY.with_secret("first", 1).with_secret("second", 2)
    assert api.secret_matches("first")
    assert api.secret_matches("second")
    api = api.with_secret("third", 3)
    assert [api.secret_matches(secret) for secret in ("first", "second", "third")] == [False, True, True]
    api = api.with_secret("fourth", 4, drop_old=True)
    assert [api.secret_matches(secret) for secret in ("third", "fourth")] == [False, True]
    assert not ANY.secret_matches("")


@pytest.mark.rfc("9068 5 aud")
@pytest.mark.gen_test
async def test_an_identifier_registers_once(memory_store: Store) -> None:
    made, secret = await memory_store.apis.create(ANY)
    assert made.secret_matches(secret)
    for identifier in (ANY.identifier, ANY.identifier + "/"):
        with pytest.raises(Refused, match="invalid_request"):
            await memory_store.apis.create(replace(ANY, identifier=identifier))
    assert await memory_store.apis.list() == [made]
    assert await memory_store.apis.active(api_id(ANY.identifier + "/")) == made


@pytest.mark.gen_test
async def test_simultaneous_registrations_give_one_secret(valkey_engine: Engine, open_new: OpenNew) -> None:
    async with open_new(valkey_engine.url) as store:
        await store.client.flushall()
        outcomes = await asyncio.gather(*[store.apis.create(ANY) for _ in range(50)], return_exceptions=True)
        made = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        assert [isinstance(one, Refused) for one in outcomes].count(True) == 49
        ((_, secret),) = made
        found = await store.apis.fresh(ANY.client_id)
        assert found is not None
        assert found.secret_matches(secret)


@pytest.mark.gen_test
async def test_rotations_at_once_lose_none(valkey_engine: Engine, open_new: OpenNew) -> None:
    async with open_new(valkey_engine.url) as store:
        await store.client.flushall()
        await store.apis.create(ANY)
        one, other = await asyncio.gather(*[store.apis.rotate_secret(ANY.client_id) for _ in range(2)])
        found = await store.apis.fresh(ANY.client_id)
        assert found is not None
        assert found.secret_matches(one[1])
        assert found.secret_matches(other[1])


@pytest.mark.gen_test
async def test_a_deleted_api_is_gone_with_its_name(memory_store: Store) -> None:
    await memory_store.apis.create(ANY)
    await memory_store.apis.delete(ANY.client_id)
    assert await memory_store.apis.find(ANY.client_id) is None
    assert await memory_store.client.exists(keys.APIS) == 0
    assert await memory_store.client.strlen(keys.api(ANY.client_id)) < 20, "a tombstone stays"
    for change in (
        memory_store.apis.delete(ANY.client_id),
        memory_store.apis.update(ANY.client_id, name="Other"),
        memory_store.apis.rotate_secret(ANY.client_id),
    ):
        with pytest.raises(Refused, match="not_found"):
            await change


@pytest.mark.gen_test
async def test_an_api_that_is_registered_again_is_another_one(memory_store: Store) -> None:
    apis, seen = memory_store.apis, [ANY.client_id]
    for _ in range(12):
        await apis.find(seen[-1])
        await apis.create(ANY) if len(seen) == 1 else None
        await apis.delete(seen[-1])
        made, secret = await apis.create(replace(ANY, identifier=ANY.identifier + "/"))
        assert made.client_id not in seen
        assert check_client_id(made.client_id)
        assert [await apis.find(one) for one in (*seen, made.client_id)] == [None] * len(seen) + [made]
        assert await apis.list() == [made] == [await apis.at(ANY.identifier)]
        assert ApiRegistration.unpack(made.pack()) == made
        assert made.secret_matches(secret)
        assert (await apis.update(made.client_id, name="Other")).client_id == made.client_id
        with pytest.raises(Refused, match="invalid_request"):
            await apis.create(ANY)
        with pytest.raises(Refused, match="not_found"):
            await apis.delete(seen[-1])
        seen.append(made.client_id)
    assert resolve_scopes("orders:read", [made]) == ((), (f"{made.client_id}/orders:read",))
    assert resolve_scopes(f"{ANY.identifier} orders:read", [made]) == ((), (f"{made.client_id}/orders:read",))


@pytest.mark.gen_test
async def test_simultaneous_registrations_after_a_deletion_give_one_secret(
    valkey_engine: Engine, open_new: OpenNew
) -> None:
    async with open_new(valkey_engine.url) as store:
        await store.client.flushall()
        await store.apis.create(ANY)
        await store.apis.delete(ANY.client_id)
        outcomes = await asyncio.gather(*[store.apis.create(ANY) for _ in range(50)], return_exceptions=True)
        ((made, secret),) = [outcome for outcome in outcomes if not isinstance(outcome, BaseException)]
        (listed,) = await store.apis.list()
        assert listed == made
        assert listed.secret_matches(secret)


@pytest.mark.gen_test
async def test_a_listing_drops_names_without_an_api_after_ten_minutes(memory_store: Store) -> None:
    now = (await memory_store.client.time())[0]
    await memory_store.client.zadd(keys.APIS, {"api_young": now, "api_old": now - 601})
    assert await memory_store.apis.list() == []
    assert await memory_store.client.zrange(keys.APIS, 0, -1) == [b"api_young"]


@pytest.mark.trap(35)
@pytest.mark.gen_test
async def test_a_disabled_api_is_found_and_not_active(memory_store: Store) -> None:
    await memory_store.apis.create(ANY)
    assert await memory_store.apis.active(ANY.client_id)
    await memory_store.apis.update(ANY.client_id, status="disabled")
    assert await memory_store.apis.active(ANY.client_id) is None
    assert await memory_store.apis.active(api_id(ANY.identifier)) is None
    assert await memory_store.apis.find(ANY.client_id) is not None


@pytest.mark.trap(35)
@pytest.mark.gen_test
async def test_without_an_announcement_a_change_shows_within_five_seconds(
    memory_store: Store, ticking: Ticking
) -> None:
    other = Apis(memory_store.client, memory_store.scripts, ticking)
    await memory_store.apis.create(ANY)
    assert await other.active(ANY.client_id) is not None
    await memory_store.apis.update(ANY.client_id, status="disabled")
    ticking.now += CACHE_SECONDS - 0.01
    assert await other.active(ANY.client_id) is not None
    ticking.now += 0.01
    assert await other.active(ANY.client_id) is None


@pytest.mark.trap(35)
@pytest.mark.gen_test(timeout=60)
async def test_a_change_on_one_process_is_announced_to_the_others(valkey_engine: Engine, open_new: OpenNew) -> None:
    async with open_new(valkey_engine.url) as one, open_new(valkey_engine.url) as other:
        await one.client.flushall()
        await one.apis.create(ANY)
        async with other.announcements.following():
            await subscribed(one)
            assert await other.apis.active(ANY.client_id) is not None
            await one.apis.update(ANY.client_id, status="disabled")
            await until(lambda: not other.apis.cache.kept)
            assert await other.apis.active(ANY.client_id) is None


@pytest.mark.gen_test
async def test_a_text_that_is_no_client_id_costs_no_read_and_no_room(valkey_engine: Engine, open_new: OpenNew) -> None:
    async with open_new(valkey_engine.url) as store:
        await store.client.config_resetstat()
        assert await store.apis.find("x" * 1000) is None
        assert "cmdstat_get" not in await store.client.info("commandstats")
        assert not store.apis.cache.kept


@each(
    ("text", "own", "theirs"),
    [
        ("profile orders:read", ("profile",), ("orders.example/orders:read",)),
        ("data:read profile", ("profile", "data:read"), ()),
        ("orders:read  orders:read", (), ("orders.example/orders:read",)),
        ("https://orders.example admin profile", ("profile",), ("orders.example/admin",)),
        ("https://bills.example/ admin", (), ("bills.example/admin",)),
    ],
    ids=str,
)
def test_an_operator_names_scopes_of_apis_plainly(text: str, own: tuple[str, ...], theirs: tuple[str, ...]) -> None:
    pairs = (scope.split("/") for scope in theirs)
    qualified = tuple(f"{api_id(f'https://{host}')}/{name}" for host, name in pairs)
    assert resolve_scopes(text, TWO) == (own, qualified)


ADMIN = ApiScope("admin", "Administer")
TWO = (replace(ANY, scopes=(READ, ADMIN)), replace(ANY, identifier="https://bills.example", scopes=(ADMIN,)))


@each(
    "text",
    [
        pytest.param("", id="none"),
        pytest.param("root", id="a scope of nobody"),
        pytest.param("admin", id="a name that two APIs have"),
        pytest.param("https://bills.example orders:read", id="a scope of another API"),
        pytest.param("https://bills.example", id="an identifier alone"),
        pytest.param("https://nobody.example admin", id="an unknown API"),
    ],
)
def test_a_scope_that_is_nobodys_or_of_several_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        resolve_scopes(text, TWO)


@each(
    "scopes",
    [
        *(("orders:read",), ("api_short/a",), (f"{ANY.client_id}/a b",), (f"{ANY.client_id}/",)),
        (f"{ANY.client_id}/a",) * 2,
        tuple(f"{ANY.client_id}/s{number}" for number in range(101)),
    ],
    ids=lambda case: str(case[0])[:40],
)
def test_an_app_registers_qualified_scopes_of_apis(scopes: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        Registration("an-app", "An App", ("https://app.example/cb",), ("profile",), api_scopes=scopes)


def test_scopes_of_apis_are_stored_with_their_api_and_shown_plainly() -> None:
    scope = f"{ANY.client_id}/orders:read"
    for own in ((), ("profile",)):
        app = Registration("an-app", "An App", ("https://app.example/cb",), own, api_scopes=(scope,))
        assert Registration.unpack(app.pack()) == app
        assert app.record()["scopes"] == [*own, "orders:read"]
    without = replace(app, api_scopes=())
    assert without.terms != app.terms, "a pending request is checked against the scopes of APIs too"
