"""The store's promises about codes, tokens and grants, on every engine."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator
from typing import Any

import pytest

from store import keys
from store.crypto.seal import Token, TokenKind
from store.lifetimes import ACCESS_TOKEN, CODE, OAUTH, REFRESH_TOKEN
from store.wiring import Store
from tests.support.store.world import SCOPES, World, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.mark.spec("2.2")
async def test_an_exchange_returns_tokens_with_their_lifetimes(store: Store) -> None:
    world = await World.make(store)
    code = await world.code()
    tokens = await world.exchange(code)
    assert (tokens.expires_in, tokens.scope) == (3600, " ".join(SCOPES))
    assert tokens.window is not None
    assert (tokens.window.limit, tokens.window.remaining) == (OAUTH.limit, OAUTH.limit - 2)  # decision, exchange
    rows = world.rows(tokens.refresh_token)
    assert ACCESS_TOKEN - 5000 < await store.client.pttl(rows["access"]) <= ACCESS_TOKEN
    assert REFRESH_TOKEN - 5000 < await store.client.pttl(rows["family"]) <= REFRESH_TOKEN
    token = world.opened(TokenKind.CODE, code)
    assert not await store.client.exists(keys.code(token.user, token.id))
    profile, _, _ = await store.identity.read(world.caller(tokens.access_token), "profile")
    assert (profile.user, profile.email) == (world.user, world.email)


async def test_the_store_contains_no_credential(store: Store) -> None:
    world = await World.make(store)
    code = await world.code()
    first = await world.exchange(code)
    second = await world.refresh(first.refresh_token)
    held = await contents(store)
    assert world.secret is not None
    for text in (code, first.access_token, first.refresh_token, second.refresh_token, world.secret):
        raw = base64.urlsafe_b64decode(text[6:] + "=" * (-len(text[6:]) % 4))
        assert text[6:30].encode() not in held
        assert raw[1:17] not in held


async def contents(store: Store) -> bytes:
    """All keys and values, as they were written."""
    client: Any = store.client
    read = {
        b"string": client.get,
        b"hash": client.hgetall,
        b"set": client.smembers,
        b"zset": lambda key: client.zrange(key, 0, -1),
        b"list": lambda key: client.lrange(key, 0, -1),
        b"stream": client.xrange,
    }
    parts = [(key, await read[await client.type(key)](key)) for key in await every_key(client)]
    return b"\0".join(flat(parts))


def flat(value: Any) -> Iterator[bytes]:
    """Every string of nested lists and mappings."""
    if isinstance(value, bytes):
        yield value
    elif isinstance(value, dict):
        yield from flat([*value.items()])
    elif isinstance(value, (list, tuple, set)):
        for item in value:
            yield from flat(item)


@pytest.mark.spec("3.2")
async def test_a_code_lives_a_minute(store: Store) -> None:
    world = await World.make(store)
    token = world.opened(TokenKind.CODE, await world.code())
    assert CODE - 5000 < await store.client.pttl(keys.code(token.user, token.id)) <= CODE


@pytest.mark.spec("3.2")
async def test_a_replayed_code_ends_only_its_own_tokens(store: Store) -> None:
    world = await World.make(store)
    other = await world.tokens()
    code = await world.code()
    tokens = await world.exchange(code)
    later = await world.refresh(tokens.refresh_token)
    assert await refusal_of(world.exchange(code)) == "invalid_grant"
    assert not await world.lives(tokens.access_token)
    assert not await world.lives(later.access_token)
    assert await world.lives(other.access_token)
    assert "code_replayed" in await world.events()


@pytest.mark.spec("3.1.rotated")
async def test_rotation_replaces_the_refresh_token(store: Store) -> None:
    world = await World.make(store)
    first = await world.tokens()
    second = await world.refresh(first.refresh_token)
    assert second.refresh_token != first.refresh_token
    assert second.access_token != first.access_token
    assert await world.lives(first.access_token)
    assert await world.lives(second.access_token)
    assert second.expires_in == 3600


@pytest.mark.spec("3.1.replayed")
async def test_a_replayed_refresh_token_ends_every_token_of_the_pair(store: Store) -> None:
    world = await World.make(store)
    other = await world.tokens()
    first = await world.tokens()
    second = await world.refresh(first.refresh_token)
    unused = await world.code()
    assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"
    for tokens in (first, second, other):
        assert not await world.lives(tokens.access_token)
        assert await refusal_of(world.refresh(tokens.refresh_token)) == "invalid_grant"
    assert await refusal_of(world.exchange(unused)) == "invalid_grant"
    assert (await world.events()).count("refresh_replayed") >= 1


@pytest.mark.spec("3.1.replayed")
async def test_the_pair_works_again_after_a_new_consent(store: Store) -> None:
    world = await World.make(store)
    first = await world.tokens()
    await world.refresh(first.refresh_token)
    assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"
    assert await world.lives((await world.tokens()).access_token)


@pytest.mark.spec("3.1.replayed")
async def test_a_revoked_refresh_token_presented_again_ends_the_pair(store: Store) -> None:
    world = await World.make(store)
    other, revoked = await world.tokens(), await world.tokens()
    await store.tokens.revoke(None, revoked.refresh_token)
    assert await world.lives(other.access_token)
    assert await refusal_of(world.refresh(revoked.refresh_token)) == "invalid_grant"
    assert not await world.lives(other.access_token)


@pytest.mark.spec("3.1.replayed")
async def test_a_token_of_an_earlier_epoch_is_revoked(store: Store) -> None:
    world = await World.make(store)
    old = await world.tokens()
    await world.revoke_app()
    new = await world.tokens()
    assert await world.lives(new.access_token)
    assert await refusal_of(world.refresh(old.refresh_token)) == "invalid_grant"
    assert not await world.lives(new.access_token)


async def test_a_replay_touches_no_other_app_and_no_other_person(store: Store) -> None:
    world, stranger = await World.make(store), await World.make(store)
    app, _ = await world.register("another-app")
    neighbour, elsewhere, first = await world.tokens(app=app), await stranger.tokens(), await world.tokens()
    await world.refresh(first.refresh_token)
    assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"
    assert await world.lives(neighbour.access_token)
    assert await stranger.lives(elsewhere.access_token)


async def test_a_narrowed_scope_holds_for_one_access_token(store: Store) -> None:
    world = await World.make(store)
    narrowed = await world.refresh((await world.tokens()).refresh_token, "profile")
    assert narrowed.scope == "profile"
    assert await refusal_of(store.identity.read(world.caller(narrowed.access_token), "data:read")) == (
        "insufficient_scope"
    )
    assert (await world.refresh(narrowed.refresh_token)).scope == " ".join(SCOPES)


async def test_a_refresh_cannot_widen_the_scope_and_uses_nothing_up(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens(("profile",))
    assert await refusal_of(world.refresh(tokens.refresh_token, "profile", "data:read")) == "invalid_scope"
    assert (await world.refresh(tokens.refresh_token)).scope == "profile"


async def test_a_scope_withdrawn_at_a_later_consent_is_gone_at_once(store: Store) -> None:
    world = await World.make(store)
    wide = await world.tokens()
    await world.code(ticked=("data:read",))
    assert await refusal_of(store.identity.read(world.caller(wide.access_token), "profile")) == "insufficient_scope"
    assert (await world.refresh(wide.refresh_token)).scope == "data:read"


async def test_tokens_without_scopes_are_refused_but_not_used_up(store: Store) -> None:
    world = await World.make(store)
    tokens, code = await world.tokens(("profile",)), await world.code(("profile",))
    await world.code(("profile", "data:read"), ticked=("data:read",))
    assert await refusal_of(world.refresh(tokens.refresh_token)) == "invalid_grant"
    assert await refusal_of(world.exchange(code)) == "invalid_grant"
    await world.code(("profile",))
    assert (await world.refresh(tokens.refresh_token)).scope == "profile"


async def test_a_scope_the_app_no_longer_registers_is_not_issued(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens()
    world.app = await store.apps.update(world.app.client_id, scopes=("profile",))
    assert (await world.refresh(tokens.refresh_token)).scope == "profile"


@pytest.mark.spec("3.1.token-revoked")
@pytest.mark.spec("4.5")
async def test_revoking_an_access_token_ends_only_that_token(store: Store) -> None:
    world = await World.make(store)
    first = await world.tokens()
    second = await world.refresh(first.refresh_token)
    await store.tokens.revoke(None, first.access_token)
    assert not await world.lives(first.access_token)
    assert await world.lives(second.access_token)
    assert await world.lives((await world.refresh(second.refresh_token)).access_token)


@pytest.mark.spec("3.1.token-revoked")
@pytest.mark.spec("4.5")
async def test_revoking_a_refresh_token_ends_only_its_family(store: Store) -> None:
    world = await World.make(store)
    other, first = await world.tokens(), await world.tokens()
    second = await world.refresh(first.refresh_token)
    await store.tokens.revoke(world.app, first.refresh_token)
    assert not await world.lives(first.access_token)
    assert not await world.lives(second.access_token)
    assert await world.lives(other.access_token)


@pytest.mark.trap(7)
async def test_another_app_cannot_revoke_a_token(store: Store) -> None:
    world = await World.make(store)
    thief, _ = await world.register("a-thief")
    tokens = await world.tokens()
    for presented in (tokens.access_token, tokens.refresh_token):
        window = await store.tokens.revoke(thief, presented)
        assert window.remaining == OAUTH.limit - 1
    assert await world.lives(tokens.access_token)
    assert await world.lives((await world.refresh(tokens.refresh_token)).access_token)


@pytest.mark.spec("4.5")
async def test_revocation_does_not_reveal_the_tokens_state(store: Store) -> None:
    world = await World.make(store)
    live, gone = await world.tokens(), await world.tokens()
    await store.tokens.revoke(None, gone.refresh_token)
    never = store.sealer.seal(Token(TokenKind.REFRESH, world.user, world.app.client_id, secrets.token_urlsafe(16), 3))
    answers = []
    for presented in (live.refresh_token, live.access_token, gone.access_token, never, "lk_rt_nonsense", ""):
        answers.append([(await store.tokens.revoke(None, presented)).remaining for _ in range(3)])
    assert answers == [[OAUTH.limit - 1, OAUTH.limit - 2, OAUTH.limit - 3]] * len(answers)


async def test_a_generation_newer_than_the_rows_rotates_normally(store: Store) -> None:
    """A restored or failed-over store may lag behind its own answers."""
    world = await World.make(store)
    first = await world.tokens()
    copy: Any = await store.client.dump(world.rows(first.refresh_token)["family"])
    second = await world.refresh(first.refresh_token)
    third = await world.refresh(second.refresh_token)
    await store.client.restore(world.rows(first.refresh_token)["family"], REFRESH_TOKEN, copy, replace=True)
    fourth = await world.refresh(third.refresh_token)
    assert await world.lives(fourth.access_token)
    assert world.opened(TokenKind.REFRESH, fourth.refresh_token).generation == 3
    assert await refusal_of(world.refresh(third.refresh_token)) == "invalid_grant"
