"""Calls about devices that ask for access."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from store.crypto.seal import TokenKind
from store.oauth.authorizations import Decision, Pending
from store.oauth.device_requests import GRANT_TYPE, BegunRequest, Claim, typed_code
from store.oauth.portions import Allotment
from tests.support.calls.prepared import Call, call
from tests.support.store.world import VISITOR, World

RECORD = '[[],"rules"]'


async def begun(w: World) -> tuple[BegunRequest, str]:
    """The codes of a device, and the id of its request."""
    codes = await w.store.device_requests.begin(w.app.client_id, RECORD, VISITOR)
    token = w.store.sealer.open(TokenKind.DEVICE_CODE, codes.device_code)
    assert token
    return codes, token.id


@call("device_requests.begin", "begin_device_request")
async def _(w: World) -> Call:
    return lambda: w.store.device_requests.begin(w.app.client_id, RECORD, VISITOR)


@call("device_requests.read", "find_device_request")
async def _(w: World) -> Call:
    _, one = await begun(w)
    return lambda: w.store.device_requests.read(one)


@call("device_requests.typed", "take_window", "take_networks", "find_device_request", "give_back")
async def _(w: World) -> Call:
    codes, _ = await begun(w)
    code = typed_code(codes.user_code)
    assert code
    return lambda: w.store.device_requests.typed(w.user, "192.0.2.1", code)


@call("device_requests.claim", "claim_device_request")
async def _(w: World) -> Call:
    _, one = await begun(w)
    return lambda: w.store.device_requests.claim(one)


@call("device_requests.reopen", "reopen_device_request")
async def _(w: World) -> Call:
    _, one = await begun(w)
    claim = await w.store.device_requests.claim(one)
    return lambda: w.store.device_requests.reopen(claim)


@call("device_requests.answer", "answer_device_request")
async def _(w: World) -> Call:
    _, one = await begun(w)
    claim: Claim = await w.store.device_requests.claim(one)
    return lambda: w.store.device_requests.answer(claim, w.user, "")


async def deciding(w: World, one: str) -> Callable[[], Awaitable[Decision]]:
    """The person's decision on a request."""
    request = w.request()._replace(redirect_uri=GRANT_TYPE, challenge="", place="", device=one)
    pending = await w.store.authorizations.begin(w.session, request, always_ask=True)
    assert isinstance(pending, Pending)
    return lambda: w.store.authorizations.decide(
        w.session, w.app, pending.request_id, allow=True, scopes=None, visitor=VISITOR
    )


@call("device_requests.decided", "claim_device_request", "decide_authorization", "answer_device_request")
async def _(w: World) -> Call:
    _, one = await begun(w)
    decide = await deciding(w, one)
    return lambda: w.store.device_requests.decided(one, w.user, decide)


@call("device_requests.poll", "poll_device_request")
async def _(w: World) -> Call:
    codes, one = await begun(w)
    await w.store.device_requests.decided(one, w.user, await deciding(w, one))
    return lambda: w.store.device_requests.poll(w.app.client_id, codes.device_code)


@call("device_requests.exchange", "poll_device_request", "exchange_code")
async def _(w: World) -> Call:
    codes, one = await begun(w)
    await w.store.device_requests.decided(one, w.user, await deciding(w, one))
    return lambda: w.store.device_requests.exchange(w.app, codes.device_code, None)


@call("limits.device_code", "take_window", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.device_code(w.user, "192.0.2.1")


@call("device_windows.take", "take_portion")
async def _(w: World) -> Call:
    windows = w.store.device_windows
    windows.allotments[w.app.client_id] = Allotment(limit=windows.group.limit, remaining=0)
    return lambda: windows.take(w.app.client_id)
