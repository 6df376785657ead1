"""The groups of people: given by the operator, registered by the app, ticked by the person."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

from store import keys
from store.moving.person_export import as_lines
from store.names import MAX_GROUPS
from store.refused import Refused
from store.wiring import Store
from tests.oauth.openid.test_sign_in import claims_in, refusal
from tests.support.http.driver import EMAIL, App, Service, answer_of, json_of, send
from tests.support.lists.offenders import each
from tests.support.store.world import World

SCOPES = ("openid", "profile", "groups", "data:read")


async def group_app(service: Service, **fields: Any) -> App:
    """An app that sees groups."""
    return await service.add_app("group-app", **{"scopes": SCOPES, **fields})


async def put_in(service: Service, *groups: str) -> None:
    """Adds Ada to groups."""
    await service.store.groups.change(service.ada, (), add=groups)


@pytest.mark.gen_test
async def test_an_app_with_the_scope_sees_the_groups_in_order(service: Service) -> None:
    await put_in(service, "staff", "Admins", "Café Zürich")
    app = await group_app(service)
    tokens = await service.tokens(app, scope="openid groups")
    claims = await claims_in(service, tokens["id_token"])
    assert claims["groups"] == ["Admins", "Café Zürich", "staff"]
    assert not {"name", "email"} & claims.keys()
    userinfo = json_of(await app.userinfo(tokens["access_token"]))
    assert userinfo == {"sub": service.ada, "groups": claims["groups"]}


@pytest.mark.gen_test
async def test_nobody_sees_groups_without_the_scope(service: Service) -> None:
    await put_in(service, "staff")
    app = await group_app(service)
    tokens = await service.tokens(app, scope="openid profile")
    assert "groups" not in await claims_in(service, tokens["id_token"])
    assert "groups" not in json_of(await app.userinfo(tokens["access_token"]))
    only = await service.tokens(app, scope="groups", prompt="consent")
    assert (await app.userinfo(only["access_token"])).code == 403, "who is meant takes openid or profile"


@pytest.mark.gen_test
async def test_the_store_hands_out_groups_by_the_scopes_of_token_and_grant(memory_store: Store) -> None:
    world = await World.make(memory_store, scopes=("openid", "groups"))
    await memory_store.groups.change(world.user, (), add=["staff"])
    tokens = await world.tokens(("openid", "groups"))
    profile, _, _ = await memory_store.identity.read(world.caller(tokens.access_token), "openid")
    assert profile.groups == ("staff",)
    await world.code(("openid", "groups"), ticked=("openid",))
    profile, _, _ = await memory_store.identity.read(world.caller(tokens.access_token), "openid")
    assert profile.groups == (), "the person took it back"


@pytest.mark.gen_test
async def test_the_person_may_untick_them(service: Service) -> None:
    app, browser = await group_app(service), await service.signed_in()
    assert (
        "You’re not in any groups now." in (await browser.get(app.authorize_url(scope="openid groups"))).body.decode()
    )
    await put_in(service, "staff", "Site admins")
    url = app.authorize_url(scope="openid groups")
    page = (await browser.get(url)).body
    assert b"See your groups" in page
    assert b"Your groups: Site admins, staff." in page
    redirect = await browser.consent(url, untick=("groups",))
    tokens = json_of(await app.exchange(answer_of(redirect)["code"]))
    assert tokens["scope"] == "openid"
    assert "groups" not in await claims_in(service, tokens["id_token"])


@pytest.mark.gen_test
async def test_an_app_that_did_not_register_them_may_not_ask(service: Service) -> None:
    app, browser = await service.add_app("other-app", scopes=("openid", "profile")), await service.signed_in()
    assert refusal(await browser.get(app.authorize_url(scope="openid groups"))) == "invalid_scope"
    # A claim is voluntary.
    tokens = await service.tokens(app, scope="openid", claims='{"id_token":{"groups":{"essential":true}}}')
    assert tokens["scope"] == "openid"


@pytest.mark.gen_test
async def test_the_claim_asks_for_the_scope(service: Service) -> None:
    app = await group_app(service)
    tokens = await service.tokens(app, scope="openid", claims='{"userinfo":{"groups":null}}')
    assert tokens["scope"] == "openid groups"
    assert json_of(await app.userinfo(tokens["access_token"]))["groups"] == [], "a person without groups"


@pytest.mark.gen_test
async def test_a_change_shows_at_userinfo_at_once_and_in_the_next_id_token(service: Service) -> None:
    app = await group_app(service)
    tokens = await service.tokens(app, scope="openid groups")
    assert (await claims_in(service, tokens["id_token"]))["groups"] == []
    await put_in(service, "staff")
    assert json_of(await app.userinfo(tokens["access_token"]))["groups"] == ["staff"]
    again = json_of(await app.refresh(tokens["refresh_token"]))
    assert (await claims_in(service, again["id_token"]))["groups"] == ["staff"]
    # An app that no longer registers the scope sees none.
    await service.store.apps.update("group-app", scopes=("openid",))
    assert "groups" not in json_of(await app.userinfo(again["access_token"]))


@pytest.mark.gen_test
async def test_discovery_names_the_claim_and_clients_that_request_every_scope_get_on(service: Service) -> None:
    found = json_of(await send(f"{service.base_url}/.well-known/openid-configuration"))
    assert "groups" in found["claims_supported"]
    assert found["scopes_supported"] == [
        *("openid", "profile", "email", "credits:read", "credits:spend", "apps:read", "data:read", "data:write"),
    ]


@pytest.mark.gen_test
@each(
    "names",
    [
        pytest.param(["a" * 101], id="too long"),
        pytest.param([""], id="empty"),
        pytest.param([" "], id="a space"),
        pytest.param(["a\nb"], id="two lines"),
        pytest.param(["a\x00"], id="NUL"),
        pytest.param(["\u202eabc"], id="reversed"),
        pytest.param([str(number) for number in range(MAX_GROUPS + 1)], id="too many"),
    ],
)
async def test_a_wrong_group_is_refused(memory_store: Store, names: list[str]) -> None:
    world = await World.make(memory_store)
    with pytest.raises(ValueError, match="group"):
        await memory_store.groups.change(world.user, (), add=names)
    assert (await memory_store.operator.find(world.user)).groups == ()


@pytest.mark.gen_test
async def test_the_most_groups_of_the_longest_names_fit(memory_store: Store) -> None:
    world = await World.make(memory_store)
    names = tuple(sorted(f"{number:02}" + "é" * 98 for number in range(MAX_GROUPS)))
    assert await memory_store.groups.change(world.user, (), add=names) == names
    assert (await memory_store.operator.find(world.user)).groups == names
    with pytest.raises(ValueError, match="at most 50 groups"):
        await memory_store.groups.change(world.user, names, add=["one more"])


@pytest.mark.gen_test(timeout=60)
async def test_changes_at_once_are_all_kept(store: Store) -> None:
    world = await World.make(store)
    await store.groups.change(world.user, (), add=["old"])
    adding = [store.groups.change(world.user, ("old",), add=[f"g{number}"]) for number in range(5)]
    await asyncio.gather(*adding, store.groups.change(world.user, ("old",), remove=["old"]))
    assert (await store.operator.find(world.user)).groups == ("g0", "g1", "g2", "g3", "g4")


@pytest.mark.gen_test
async def test_a_change_is_in_the_person_s_trail_and_in_the_log_with_its_names(memory_store: Store) -> None:
    world = await World.make(memory_store)
    noted: list[tuple[str, str, str]] = []
    note: Callable[..., None] = memory_store.security.note

    def listening(name: str, **facts: Any) -> None:
        noted.append((name, facts.get("person", ""), facts.get("detail", "")))
        note(name, **facts)

    memory_store.security.note = listening  # type: ignore[method-assign]  # listens, and passes on
    groups = await memory_store.groups.change(world.user, (), add=["staff", "admins"])
    await memory_store.groups.change(world.user, groups, add=["editors"], remove=["admins"])
    await memory_store.groups.change(world.user, ("editors", "staff"), add=["staff"])  # changes nothing
    assert (await world.events()).count("groups_changed") == 2
    assert noted == [
        ("groups_changed_by_operator", world.user, "+admins +staff"),
        ("groups_changed_by_operator", world.user, "+editors -admins"),
    ]


@pytest.mark.gen_test
async def test_groups_go_with_the_account(memory_store: Store) -> None:
    world = await World.make(memory_store)
    await memory_store.groups.change(world.user, (), add=["staff"])
    stored: Any = await memory_store.client.hget(keys.person(world.user)["user"], "groups")
    assert stored == b"staff"
    await memory_store.groups.change(world.user, ("staff",), remove=["staff"])
    assert not await memory_store.client.hexists(keys.person(world.user)["user"], "groups")
    await memory_store.groups.change(world.user, (), add=["staff"])
    await memory_store.people.delete(world.user)
    with pytest.raises(Refused, match="not_found"):
        await memory_store.groups.change(world.user, (), add=["staff"])
    assert not await memory_store.client.exists(keys.person(world.user)["user"])


@pytest.mark.gen_test
async def test_the_export_has_the_groups(service: Service) -> None:
    await put_in(service, "staff")
    person = await service.store.operator.find(EMAIL)
    lines = [json.loads(piece) async for piece, _ in as_lines(service.store, person)]
    assert lines[0]["groups"] == ["staff"]
