"""After a restore, no access works that may have ended since the backup."""

from __future__ import annotations

import pytest

from store import keys
from store.engine.restored import ACCESS, end_access
from store.refused import SignedOut
from store.wiring import Store
from tests.support.store.document_app import Keeper
from tests.support.store.world import PASSWORD, VISITOR, World, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_a_restore_ends_access_and_keeps_the_rest(store: Store) -> None:
    world = await World.make(store)
    keeper = await Keeper.make(world)
    await keeper.put("notes/n1", b"1")
    tokens, code, pending = await world.tokens(), await world.code(), await world.pending()
    used = await world.tokens()
    newest = await world.refresh(used.refresh_token)
    before = {name: keys.read(name.decode()) for name in await every_key(store.client)}
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
