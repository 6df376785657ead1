"""Calls about second factors and passkeys."""

from __future__ import annotations

from store.accounts.identities import UpstreamIdentity
from store.accounts.signin.passkeys import options_for_new, options_for_use, read_answer
from store.accounts.signin.second_step import Half
from store.accounts.signin.sessions import SecondStepNeeded, Session
from store.accounts.signin.totp import STEP, code_at
from tests.support.calls.prepared import Call, call
from tests.support.store.authenticator import Authenticator
from tests.support.store.second_factors import (
    ORIGIN,
    RELYING_PARTY,
    TRUSTED,
    App,
    add_passkey,
    arrival,
    half_of,
    reauth,
    store_now,
)
from tests.support.store.world import PASSWORD, VISITOR, World


@call("reauth.challenge", "read_factors")
async def _(w: World) -> Call:
    return lambda: w.store.reauth.challenge(w.session)


@call("reauth.check_password", "take_networks", "read_credentials")
async def _(w: World) -> Call:
    return lambda: w.store.reauth.check_password(w.session, w.email, PASSWORD, VISITOR)


@call("reauth.with_password", "read_factors", "take_networks", "read_credentials", "prove_with_code")
async def _(w: World) -> Call:
    app = await App.add(w)
    return lambda: w.store.reauth.with_password(w.session, PASSWORD, app.codes[0], VISITOR)


async def signed_in_elsewhere(w: World) -> tuple[Session, UpstreamIdentity]:
    """The session of a new person without a password, and the identity that they signed in with."""
    one = arrival(f"made-{w.user}", f"made-{w.email}")
    made = await w.store.upstream.admit(one, TRUSTED, VISITOR)
    found = await w.store.upstream.sign_in(made.user, one, True, VISITOR)
    session = w.store.sessions.open(found.cookie)
    assert session is not None
    return session, one.identity


@call("reauth.with_identity", "prove_with_identity")
async def _(w: World) -> Call:
    session, identity = await signed_in_elsewhere(w)
    return lambda: w.store.reauth.with_identity(session, identity)


@call("reauth.with_proof", "read_factors")
async def _(w: World) -> Call:
    session, identity = await signed_in_elsewhere(w)
    proved = w.store.sessions.open(await w.store.reauth.with_identity(session, identity))
    assert proved is not None
    return lambda: w.store.reauth.with_proof(proved)


@call("reauth.with_passkey", "try_passkey", "prove_with_passkey")
async def _(w: World) -> Call:
    device = await add_passkey(w)
    challenge, allowed = await w.store.reauth.challenge(w.session)
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge, allowed)))
    return lambda: w.store.reauth.with_passkey(w.session, RELYING_PARTY, challenge, answer, VISITOR)


@call("factors.of", "read_factors")
async def _(w: World) -> Call:
    return lambda: w.store.factors.of(w.session)


@call("factors.enable_totp", "read_factors", "enable_totp")
async def _(w: World) -> Call:
    await reauth(w)
    app = App(w, w.store.factors.new_secret(w.user))
    code = await app.code()
    return lambda: w.store.factors.enable_totp(w.session, app.sealed, code, VISITOR)


@call("factors.disable_totp", "disable_totp")
async def _(w: World) -> Call:
    await App.add(w)
    await reauth(w)
    return lambda: w.store.factors.disable_totp(w.session, VISITOR)


@call("factors.renew_recovery", "renew_recovery")
async def _(w: World) -> Call:
    await App.add(w)
    await reauth(w)
    return lambda: w.store.factors.renew_recovery(w.session, VISITOR)


@call("factors.challenge", "read_factors")
async def _(w: World) -> Call:
    await reauth(w)
    return lambda: w.store.factors.challenge(w.session)


@call("factors.add_passkey", "add_passkey")
async def _(w: World) -> Call:
    await reauth(w)
    challenge = await w.store.factors.challenge(w.session)
    options = options_for_new(RELYING_PARTY, "Latchkey", w.user, w.email, "Ada", challenge, [])
    answer = read_answer(Authenticator(ORIGIN).create(options))
    return lambda: w.store.factors.add_passkey(w.session, RELYING_PARTY, challenge, answer, "My phone", VISITOR)


@call("factors.rename_passkey", "read_passkey", "rename_passkey")
async def _(w: World) -> Call:
    device = await add_passkey(w)
    await reauth(w)
    return lambda: w.store.factors.rename_passkey(w.session, device.credential, "My key", VISITOR)


@call("factors.remove_passkey", "remove_passkey")
async def _(w: World) -> Call:
    device = await add_passkey(w)
    await reauth(w)
    return lambda: w.store.factors.remove_passkey(w.session, device.credential, VISITOR)


@call("second_step.options", "read_second_step")
async def _(w: World) -> Call:
    await App.add(w)
    half = await half_of(w)
    return lambda: w.store.second_step.options(half)


@call("second_step.with_code", "read_second_step", "finish_with_code")
async def _(w: World) -> Call:
    app = await App.add(w)
    half = await half_of(w)
    return lambda: w.store.second_step.with_code(half, app.codes[0], VISITOR)


async def unprotected(w: World) -> Half:
    """A sign-in of the person, who must set a second step up."""
    w.store.sessions.required.who = "all"
    try:
        await w.sign_in()
    except SecondStepNeeded as needed:
        half = w.store.second_step.open(needed.text)
        assert half
        return half
    finally:
        w.store.sessions.required.who = "off"
    raise AssertionError


@call("second_step.start_setup", "read_second_step")
async def _(w: World) -> Call:
    half = await unprotected(w)
    return lambda: w.store.second_step.start_setup(half)


@call("second_step.set_up", "read_second_step", "finish_with_setup")
async def _(w: World) -> Call:
    half = await unprotected(w)
    sealed = await w.store.second_step.start_setup(half)
    code = code_at(w.store.second_step.open_secret(half, sealed), await store_now(w) // STEP)
    return lambda: w.store.second_step.set_up(half, sealed, code, VISITOR)


@call("second_step.setup_challenge", "read_second_step")
async def _(w: World) -> Call:
    half = await unprotected(w)
    return lambda: w.store.second_step.setup_challenge(half)


@call("second_step.set_up_passkey", "read_second_step", "finish_with_new_passkey")
async def _(w: World) -> Call:
    half = await unprotected(w)
    challenge = await w.store.second_step.setup_challenge(half)
    options = options_for_new(RELYING_PARTY, "Latchkey", w.user, w.email, "Ada", challenge, [])
    answer = read_answer(Authenticator(ORIGIN).create(options))
    return lambda: w.store.second_step.set_up_passkey(half, RELYING_PARTY, challenge, answer, "My phone", VISITOR)


@call("second_step.challenge")
async def _(w: World) -> Call:
    return lambda: w.store.second_step.challenge(None)


@call("second_step.with_passkey", "read_second_step", "read_passkey", "finish_with_passkey")
async def _(w: World) -> Call:
    device = await add_passkey(w)
    half = await half_of(w)
    challenge = await w.store.second_step.challenge(half)
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge)))
    return lambda: w.store.second_step.with_passkey(half, RELYING_PARTY, challenge, answer, VISITOR)
