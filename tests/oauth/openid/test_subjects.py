"""The `sub` of a person for each app, and for the apps of one sector. OpenID Connect Core 8."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import urlencode

import pytest

from store import keys
from store.apps.api_record import ApiRegistration, ApiScope
from store.errors import StoreError
from store.wiring import Store
from tests.oauth.openid.test_sign_in import claims_in, refusal
from tests.support.calls.webhooks import wanted
from tests.support.http.driver import CALLBACK, App, Service, answer_of, json_of, send
from tests.support.lists.offenders import each
from tests.support.store.many_documents import rotated

PAIRWISE = re.compile(r"pw_[A-Za-z0-9_-]{22}")
SCOPES = ("openid", "profile", "data:read")
OTHER_HOST = "https://other.example/callback"


async def pairwise_app(service: Service, client_id: str, *uris: str, **fields: Any) -> App:
    """An app with pairwise ids."""
    facts = {"scopes": SCOPES, "redirect_uris": uris or (CALLBACK,), "subject_type": "pairwise", **fields}
    return await service.add_app(client_id, **facts)


async def sub_in(service: Service, app: App, scope: str = "openid") -> str:
    """The person in the ID token of a new sign-in."""
    tokens = await service.tokens(app, scope=scope)
    return str((await claims_in(service, tokens["id_token"]))["sub"])


async def introspected(service: Service, app: App, token: str) -> str:
    form = {"token": token, "client_id": app.client_id, "client_secret": app.secret or ""}
    return str(json_of(await send(f"{service.base_url}/api/oauth/introspect", "POST", form=form))["sub"])


@pytest.mark.trap(50)
@pytest.mark.gen_test
@pytest.mark.openid("core 8.1 sector")
async def test_apps_of_one_sector_know_a_person_by_one_id_and_others_by_another(service: Service) -> None:
    one = await pairwise_app(service, "one", "https://app.example/one", "https://app.example:8443/port")
    two = await pairwise_app(service, "two", "https://app.example/two")
    other = await pairwise_app(service, "other", OTHER_HOST)
    public = await service.add_app("public", scopes=SCOPES)
    subs = [await sub_in(service, app) for app in (one, two, other, public)]
    assert subs[0] == subs[1]
    assert subs[3] == service.ada
    assert len(set(subs)) == 3
    assert all(PAIRWISE.fullmatch(sub) for sub in subs[:3])


@pytest.mark.trap(50)
@pytest.mark.gen_test
async def test_every_interface_tells_a_pairwise_app_the_same_id(service: Service) -> None:
    app = await pairwise_app(service, "pairwise", webhook_url="https://app.example/hook")
    tokens = await service.tokens(app, scope="openid profile")
    sub = (await claims_in(service, tokens["id_token"]))["sub"]
    assert json_of(await app.userinfo(tokens["access_token"]))["sub"] == sub
    for name in ("access_token", "refresh_token"):
        assert await introspected(service, app, tokens[name]) == sub
    again = json_of(await app.refresh(tokens["refresh_token"]))
    assert (await claims_in(service, again["id_token"]))["sub"] == sub
    await service.store.people.delete(service.ada)
    await service.store.outbox.relay_shards({service.ada[:3]}, wanted)
    assert {row.sub for row in await service.store.deliveries.list("pairwise")} == {sub}


@pytest.mark.trap(50)
@pytest.mark.gen_test
async def test_apps_of_other_sectors_know_a_session_by_another_id(service: Service) -> None:
    """One `sid` for all would tell two sectors that they know the same person."""
    back = "https://app.example/bye"
    one = await pairwise_app(service, "one", post_logout_redirect_uris=(back,))
    two = await pairwise_app(service, "two")
    other, public = await pairwise_app(service, "other", OTHER_HOST), await service.add_app("public", scopes=SCOPES)
    browser = await service.signed_in()
    tokens = {app.client_id: await service.tokens(app, browser, scope="openid") for app in (one, two, other, public)}
    sids = {name: (await claims_in(service, found["id_token"]))["sid"] for name, found in tokens.items()}
    assert sids["one"] == sids["two"]
    assert len({*sids.values()}) == 3
    assert {len(sid) for sid in sids.values()} == {22}
    again = json_of(await one.refresh(tokens["one"]["refresh_token"]))
    assert (await claims_in(service, again["id_token"]))["sid"] == sids["one"]
    # A hint is of this session by the id that its app knows, and each logout token has that id too.
    asked = {"id_token_hint": tokens["one"]["id_token"], "post_logout_redirect_uri": back}
    assert (await browser.get(f"/oauth/logout?{urlencode(asked)}")).headers["Location"] == back
    await service.store.outbox.relay_shards({service.ada[:3]}, wanted)
    for name, sid in sids.items():
        assert [row.details for row in await service.store.deliveries.list(name)] == [{"sid": sid}]


@pytest.mark.gen_test
async def test_a_deleted_pairwise_app_hears_of_its_sector_s_id(service: Service, monkeypatch: Any) -> None:
    app = await pairwise_app(service, "pairwise", webhook_url="https://app.example/hook")
    sub = await sub_in(service, app)
    monkeypatch.setattr(keys, "SHARDS", (service.ada[:3],))
    await service.store.apps.begin_deletion("pairwise")
    service.store.apps.settle = 0
    await service.store.apps.finish_deletion("pairwise")
    await service.store.outbox.relay_shards({service.ada[:3]}, wanted)
    deliveries = await service.store.deliveries.list("pairwise")
    assert {row.sub for row in deliveries if row.type != "app.deleted"} == {sub}


@pytest.mark.gen_test
async def test_a_public_app_learns_the_person_s_id_with_openid_and_keeps_it(service: Service) -> None:
    app = await service.add_app("growing", scopes=("openid", "data:read"))
    before = await introspected(service, app, (await service.tokens(app, scope="data:read"))["access_token"])
    assert PAIRWISE.fullmatch(before)
    assert await sub_in(service, app) == service.ada
    tokens = await service.tokens(app, scope="data:read", prompt="consent")
    assert await introspected(service, app, tokens["access_token"]) == service.ada


@pytest.mark.gen_test
async def test_an_id_token_hint_of_a_pairwise_app_finds_its_person(service: Service) -> None:
    app, browser = await pairwise_app(service, "pairwise"), await service.signed_in()
    hint = (await service.tokens(app, browser, scope="openid"))["id_token"]
    sub = (await claims_in(service, hint))["sub"]
    named = f'{{"id_token":{{"sub":{{"value":"{sub}"}}}}}}'
    for parameters in ({"id_token_hint": hint}, {"claims": named}):
        assert "code" in answer_of(await browser.get(app.authorize_url(scope="openid", prompt="none", **parameters)))
    # Inside, the person's id is known; to this app it is nobody's.
    wrong = f'{{"id_token":{{"sub":{{"value":"{service.ada}"}}}}}}'
    assert (
        refusal(await browser.get(app.authorize_url(scope="openid", prompt="none", claims=wrong))) == "login_required"
    )
    await service.add_person("grace@example.com")
    other = await service.signed_in("grace@example.com")
    for parameters in ({"id_token_hint": hint}, {"claims": named}):
        assert (
            refusal(await other.get(app.authorize_url(scope="openid", prompt="none", **parameters))) == "login_required"
        )


@pytest.mark.gen_test
async def test_an_api_knows_people_of_pairwise_apps_in_its_own_sector(service: Service) -> None:
    subjects, user = service.store.subjects, service.ada
    api = ApiRegistration("https://orders.example:8443/v1", "Orders", (ApiScope("orders", "Orders"),))
    assert api.sector == "orders.example"
    ipv6 = ApiRegistration("https://[2001:db8::1]/v1", "Orders", (ApiScope("orders", "Orders"),))
    assert ipv6.sector == "[2001:db8::1]"
    seen = await subjects.at_api(api.sector, "app.example", user)
    assert PAIRWISE.fullmatch(seen)
    assert seen == await subjects.at_api(api.sector, "another.example", user)
    assert seen != await subjects.of("app", "app.example", user)
    assert await subjects.at_api(api.sector, "", user) == user, "a public app"


@pytest.mark.gen_test
@pytest.mark.openid("core 8 subject_types")
async def test_the_metadata_names_both_types(service: Service) -> None:
    metadata = json_of(await send(f"{service.base_url}/.well-known/openid-configuration"))
    assert metadata["subject_types_supported"] == ["public", "pairwise"]


@pytest.mark.gen_test
async def test_no_sector_s_id_is_an_app_s_own(memory_store: Store) -> None:
    pairwise, user = memory_store.pairwise, "0" * 32
    texts = {
        await pairwise.for_app("a", user),
        await pairwise.for_app("sector", user),
        await pairwise.for_sector("a", user),
        await pairwise.for_sector("b", user),
    }
    assert len(texts) == 4


@pytest.mark.gen_test
async def test_the_salt_is_sealed_and_any_process_with_the_keys_reads_it(memory_store: Store) -> None:
    user = "0" * 32
    sub = await memory_store.pairwise.for_app("a", user)
    stored: Any = await memory_store.client.hget(keys.KEYRING, "pairwise")
    assert len(stored) == 1 + 12 + 32 + 16, "key id, nonce, salt, tag"
    assert await rotated(memory_store, 88).pairwise.for_app("a", user) == sub
    await memory_store.client.hset(keys.KEYRING, "pairwise", stored[:-1] + bytes([stored[-1] ^ 1]))
    with pytest.raises(StoreError, match="does not open"):
        await rotated(memory_store, 89).pairwise.for_app("a", user)


@pytest.mark.gen_test
async def test_a_salt_of_an_earlier_release_is_sealed_and_gives_the_same_ids(memory_store: Store) -> None:
    user = "0123456789abcdef" * 2
    plain = "00112233445566778899aabbccddeeff" * 2
    await memory_store.client.hset(keys.KEYRING, "pairwise", plain)
    # What the earlier release gave for this salt.
    assert await memory_store.pairwise.for_app("an-app", user) == "pw_HhaOJeku21AmhvFRMn7-TA"
    stored: Any = await memory_store.client.hget(keys.KEYRING, "pairwise")
    assert plain.encode() not in stored
    assert bytes.fromhex(plain) not in stored
    assert await rotated(memory_store, 88).pairwise.for_app("an-app", user) == "pw_HhaOJeku21AmhvFRMn7-TA"


@pytest.mark.gen_test
async def test_processes_that_make_the_salt_at_once_agree(memory_store: Store) -> None:
    one, two = (rotated(memory_store, number) for number in (87, 88))
    reads = [await store.pairwise._stored() for store in (one, two)]
    assert reads == [None, None]
    # Both have read nothing; the first to write wins.
    kept = [await store.pairwise._keep(b"", bytes([number]) * 61) for store, number in ((one, 1), (two, 2))]
    assert kept == [bytes([1]) * 61] * 2


@pytest.mark.gen_test
async def test_re_encryption_renews_the_salt_and_changes_no_id(memory_store: Store, monkeypatch: Any) -> None:
    monkeypatch.setattr(keys, "SHARDS", ())
    sub = await memory_store.pairwise.for_sector("app.example", "0" * 32)
    new = rotated(memory_store, 88)
    assert [progress.unreadable async for progress in new.reencryption.run(0)][-1] == 0
    stored: Any = await memory_store.client.hget(keys.KEYRING, "pairwise")
    assert stored[0] == 88
    assert await rotated(new, 89).pairwise.for_sector("app.example", "0" * 32) == sub
    assert not await new.pairwise.reseal(), "it skips what is done"
    broken: Any = stored[:-1] + bytes([stored[-1] ^ 1])
    await memory_store.client.hset(keys.KEYRING, "pairwise", broken)
    last = [progress async for progress in rotated(memory_store, 90).reencryption.run(0)][-1]
    assert (last.unreadable, last.named) == (1, ["the salt of pairwise ids"])


@pytest.mark.gen_test
@each("subject_type", ["public", "pairwise"])
async def test_a_store_that_is_away_costs_no_code(service: Service, subject_type: str, monkeypatch: Any) -> None:
    app = await service.add_app(f"{subject_type}-app", scopes=SCOPES, subject_type=subject_type)
    code = await service.code(app, scope="openid")

    async def away() -> None:
        raise StoreError("away")

    with monkeypatch.context() as patch:
        patch.setattr(service.store.pairwise, "_read_salt", away)
        refused = await app.exchange(code)
        assert refused.code == (200 if subject_type == "public" else 500)
    if subject_type == "pairwise":
        assert (await app.exchange(code)).code == 200
