"""After a restore, no access works that may have ended since the backup."""

from __future__ import annotations

import pytest

from store import parsed_keys
from store.apps.api_record import ApiRegistration, ApiScope
from store.engine.restored import ACCESS, end_access
from store.refused import SignedOut
from store.results import Window
from store.wiring import Store
from tests.support.store.document_app import Keeper
from tests.support.store.world import PASSWORD, VISITOR, World, every_key, refusal_of

READ = ApiScope("read", "Read")

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_a_restore_ends_access_and_keeps_the_rest(store: Store) -> None:
    world = await World.make(store)
    keeper = await Keeper.make(world)
    await keeper.put("notes/n1", b"1")
    tokens, code, pending = await world.tokens(), await world.code(), await world.pending()
    used = await world.tokens()
    newest = await world.refresh(used.refresh_token)
    before = {name: parsed_keys.read(name.decode()) for name in await every_key(store.client)}
    doomed = {name for name, parsed in before.items() if parsed is not None and parsed.kind in ACCESS}

    assert await end_access(store.client) == len(doomed) > 6
    assert set(await every_key(store.client)) == before.keys() - doomed
    for access in (tokens, used, newest):
        assert not await world.lives(access.access_token)
        assert await refusal_of(world.refresh(access.refresh_token)) == "invalid_grant"
    assert await refusal_of(world.exchange(code)) == "invalid_grant"
    with pytest.raises(SignedOut):
        await store.sessions.profile(world.session)
    assert await end_access(store.client) == 0

    # The same password works, the grant is there, and a replay of old tokens leaves the new ones alive.
    world.session = await world.sign_in(password=PASSWORD)
    assert world.app.client_id in {grant.client for grant in (await store.grants.list(world.session)).grants}
    again = await world.tokens()
    assert await refusal_of(world.refresh(newest.refresh_token)) == "invalid_grant"
    assert await world.lives(again.access_token)
    assert pending != await world.pending()
    assert VISITOR.address in {device.address for device in await store.sessions.live(world.session)}


async def test_a_restore_ends_pushed_requests_and_tokens_for_apis(store: Store) -> None:
    world = await World.make(store)
    api, secret = await store.apis.create(ApiRegistration(f"https://{world.user}.example", "Orders", (READ,)))
    app, _ = await world.register(f"{world.app.client_id}-api", api_scopes=(f"{api.client_id}/read",))
    issued = await store.app_tokens.issue(app, api.client_id, (), "https://id.example")
    assert await store.introspection.by_api(api, issued.access_token, "https://id.example")
    uri = await store.pushed.push(app.client_id, "scope=profile", Window(600, 599, 0))
    await end_access(store.client)
    assert await store.introspection.by_api(api, issued.access_token, "https://id.example") is None
    pushed = store.pushed.id_of(app.client_id, uri)
    assert await refusal_of(store.pushed.open(app.client_id, pushed, "a browser")) == "invalid_request_uri"
    left = {parsed_keys.read(name.decode()) for name in await every_key(store.client)}
    assert not {parsed.kind for parsed in left if parsed} & {"pushed", "all-pushed"}
    # The registration and its secret stay.
    found = await store.apis.fresh(api.client_id)
    assert found is not None
    assert found.secret_matches(secret)
