"""What an app may present, once and again; a failed check changes nothing. On every engine."""

from __future__ import annotations

import pytest

from store.lifetimes import OAUTH
from store.oauth.authorizations import Pending
from store.refused import UnknownUser
from store.wiring import Store
from tests.support.processes.engines import FakeClock
from tests.support.store.world import CALLBACK, VERIFIER, VISITOR, World, every_key, refusal_of

pytestmark = pytest.mark.gen_test(timeout=60)


async def stored(store: Store) -> dict[bytes, object]:
    """The store's content without windows: a call that leaves it equal changed nothing."""
    found: dict[bytes, object] = {}
    for key in await every_key(store.client):
        if b":limit:" not in key:
            ends = await store.client.pexpiretime(key)  # type: ignore[arg-type]  # any key, whatever its types say
            found[key] = await store.client.dump(key), ends
    return found


@pytest.mark.trap(5)
async def test_a_token_of_one_kind_is_never_taken_for_another(store: Store) -> None:
    world = await World.make(store)
    code, request = await world.code(), await world.pending()
    tokens = await world.tokens()
    credentials = await store.people.credentials(world.email)
    assert credentials is not None
    texts = {
        "code": code,
        "access": tokens.access_token,
        "refresh": tokens.refresh_token,
        "session": (await store.sessions.start(credentials, VISITOR)).cookie,
        "request": request,
        "invite": await store.people.invite("guest@example.com"),
    }
    for kind, text in texts.items():
        prefixes = {text, *(other[:6] + text[6:] for other in texts.values())}  # the prefix alone decides nothing
        for presented in prefixes - {texts[kind]} | ({text} if kind != "code" else set()):
            assert await refusal_of(world.exchange(presented)) == "invalid_grant"
        for presented in prefixes - {texts[kind]} | ({text} if kind != "refresh" else set()):
            assert await refusal_of(world.refresh(presented)) == "invalid_grant"
        for presented in prefixes:
            genuine = presented == text
            assert (store.tokens.open_access(presented) is not None) == (genuine and kind == "access")
            assert (store.sessions.open(presented) is not None) == (genuine and kind == "session")
            assert (await store.people.invited(presented) is not None) == (genuine and kind == "invite")
            assert (store.authorizations.awaited(world.session, presented) is not None) == (
                genuine and kind == "request"
            )
    assert await world.lives(tokens.access_token)


@pytest.mark.parametrize("what", ["code", "refresh"])
async def test_a_token_works_only_for_its_app(store: Store, what: str) -> None:
    world = await World.make(store)
    thief, _ = await world.register("a-thief")
    tokens, code = await world.tokens(), await world.code()
    before = await stored(store)
    call = (
        store.tokens.exchange(thief, code, CALLBACK, VERIFIER)
        if what == "code"
        else store.tokens.refresh(thief, tokens.refresh_token, ())
    )
    with pytest.raises(UnknownUser):
        await call
    assert await stored(store) == before


@pytest.mark.trap(11)
@pytest.mark.parametrize(
    ("redirect_uri", "verifier"),
    [
        pytest.param(CALLBACK + "/other", VERIFIER, id="another redirect_uri"),
        pytest.param(CALLBACK, "w" * 43, id="a wrong verifier"),
        pytest.param(CALLBACK, None, id="no verifier"),
    ],
)
@pytest.mark.trap(6)
async def test_a_failed_check_does_not_use_up_the_code(store: Store, redirect_uri: str, verifier: str | None) -> None:
    world = await World.make(store)
    code = await world.code()
    before = await stored(store)
    assert await refusal_of(store.tokens.exchange(world.app, code, redirect_uri, verifier)) == "invalid_grant"
    assert await stored(store) == before
    assert await world.lives((await world.exchange(code)).access_token)


@pytest.mark.trap(6)
async def test_a_verifier_for_a_code_without_a_challenge_is_refused(store: Store) -> None:
    world = await World.make(store)
    begun = await store.authorizations.begin(
        world.session,
        world.request()._replace(challenge=""),
        always_ask=True,
    )
    assert isinstance(begun, Pending)
    decision = await store.authorizations.decide(
        world.session, world.app, begun.request_id, allow=True, scopes=None, visitor=VISITOR
    )
    assert decision.code is not None
    assert await refusal_of(store.tokens.exchange(world.app, decision.code, CALLBACK, VERIFIER)) == "invalid_grant"
    assert await world.lives((await store.tokens.exchange(world.app, decision.code, CALLBACK, None)).access_token)


async def test_a_full_window_uses_up_neither_code_nor_refresh_token(store: Store) -> None:
    world = await World.make(store)
    code, tokens = await world.code(), await world.tokens()
    for _ in range(OAUTH.limit):
        refused = await refusal_of(store.identity.read(world.caller(tokens.access_token), "profile"))
    assert refused == "rate_limited"
    before = await stored(store)
    assert await refusal_of(world.exchange(code)) == "rate_limited"
    assert await refusal_of(world.refresh(tokens.refresh_token)) == "rate_limited"
    assert await stored(store) == before
    await world.fresh_window()
    assert await world.lives((await world.exchange(code)).access_token)
    assert await world.lives((await world.refresh(tokens.refresh_token)).access_token)


@pytest.mark.trap(36)
async def test_dead_tokens_do_not_count_in_their_persons_window(store: Store) -> None:
    world = await World.make(store)
    old, live = await world.tokens(), await world.tokens()
    await store.tokens.revoke(None, old.access_token)
    code = await world.code()
    used = await world.exchange(code)
    await store.tokens.revoke(None, used.refresh_token)
    for _ in range(OAUTH.limit):
        assert not await world.lives(old.access_token)
        assert await refusal_of(world.exchange(code)) == "invalid_grant"
    _, _, window = await store.identity.read(world.caller(live.access_token), "profile")
    assert window.remaining > OAUTH.limit - 12


@pytest.mark.trap(8)
async def test_within_the_retry_window_the_latest_rotation_is_repeated(store: Store) -> None:
    world = await World.make(store, refresh_retry_seconds=60)
    first = await world.tokens()
    second = await world.refresh(first.refresh_token)
    again = await world.refresh(first.refresh_token)
    assert (again.access_token, again.refresh_token) == (second.access_token, second.refresh_token)
    assert again.scope == second.scope
    assert 3590 <= again.expires_in <= 3600
    assert await world.lives(second.access_token)


@pytest.mark.trap(8)
async def test_a_retry_window_does_not_cover_a_token_whose_successor_was_used(store: Store) -> None:
    world = await World.make(store, refresh_retry_seconds=60)
    first = await world.tokens()
    second = await world.refresh(first.refresh_token)
    third = await world.refresh(second.refresh_token)
    assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"
    assert not await world.lives(third.access_token)


@pytest.mark.trap(8)
@pytest.mark.parametrize("revoke", ["its own family", "the successor", "the app"])
async def test_a_retry_window_does_not_cover_revoked_tokens(store: Store, revoke: str) -> None:
    world = await World.make(store, refresh_retry_seconds=60)
    first = await world.tokens()
    second = await world.refresh(first.refresh_token)
    if revoke == "the app":
        await world.revoke_app()
    else:
        await store.tokens.revoke(world.app, (first if revoke == "its own family" else second).refresh_token)
    assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"
    assert not await world.lives(second.access_token)


@pytest.mark.trap(8)
async def test_a_retry_window_ends(clock: FakeClock, memory_store: Store) -> None:
    world = await World.make(memory_store, refresh_retry_seconds=10)
    first = await world.tokens()
    await world.refresh(first.refresh_token)
    clock.advance(9)
    again = await world.refresh(first.refresh_token)
    assert again.expires_in == 3591
    clock.advance(2)
    assert await refusal_of(world.refresh(first.refresh_token)) == "invalid_grant"
    assert not await world.lives(again.access_token)


@pytest.mark.spec("8.1")
async def test_a_revocation_counts_for_the_person_only_if_it_ended_something(store: Store) -> None:
    world = await World.make(store)
    ended, live = await world.tokens(), await world.tokens()

    async def remaining() -> int:
        _, _, window = await store.identity.read(world.caller(live.access_token), "profile")
        return window.remaining

    before = await remaining()
    for presented in (ended.access_token, ended.refresh_token):
        await store.tokens.revoke(None, presented)
    assert await remaining() == before - 3, "two that were live, and the look itself"
    for presented in (ended.access_token, ended.refresh_token):
        await store.tokens.revoke(None, presented)
    assert await remaining() == before - 4
