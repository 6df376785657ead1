"""Every call a process makes of the store, prepared so that it succeeds: for tests that must leave none out."""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, replace
from typing import Any

from store import keys
from store.apps import new_client_id
from store.deliveries import Delivery, Event
from store.documents import Conditions
from store.leaving import Typed
from store.links import Link
from store.opened import Store
from store.passkeys import options_for_new, options_for_use, read_answer
from store.registration import Registration, secret_mark
from store.results import Caller, Visitor
from store.seal import Kind, new_id
from tests.authenticator import Authenticator
from tests.factoring import ORIGIN, PARTY, App, add_passkey, confirm, half_of
from tests.holding import connect_app, rotated, stock, write
from tests.spending import DOLLAR, REPLY, SPENDING, Spender
from tests.world import CALLBACK, PASSWORD, VERIFIER, VISITOR, World

Call = Callable[[], Awaitable[Any]]
Prepare = Callable[[World], Awaitable[Call]]

# These are no nouns of the store, and `follow` never returns: tests/test_apps.py has it.
_NOT_NOUNS = {"client", "keys", "hasher", "scripts", "sealer"}
_APART = {"apps.follow"}

CALLS: dict[str, Prepared] = {}


@dataclass(frozen=True, slots=True)
class Prepared:
    """How to get ready for one call of a method, and the scripts that the call runs."""

    method: str
    scripts: tuple[str, ...]
    prepare: Prepare


def methods_of(store: Store) -> set[str]:
    """The public asynchronous methods of every noun, as `noun.method`."""
    return {
        f"{noun}.{name}"
        for noun, owner in vars(store).items()
        if noun not in _NOT_NOUNS
        for name, method in inspect.getmembers(type(owner))
        if not name.startswith("_") and (inspect.iscoroutinefunction(method) or inspect.isasyncgenfunction(method))
    } - _APART


def call(method: str, *scripts: str) -> Callable[[Prepare], Prepare]:
    """Enters what gets ready for a call of `method`, which runs `scripts`."""

    def enter(prepare: Prepare) -> Prepare:
        CALLS[method] = Prepared(method, scripts, prepare)
        return prepare

    return enter


@call("apps.find")
async def _(w: World) -> Call:
    return lambda: w.store.apps.find("never-read-before")


@call("apps.active")
async def _(w: World) -> Call:
    return lambda: w.store.apps.active("never-asked-before")


@call("apps.create", "save_app")
async def _(w: World) -> Call:
    return lambda: w.register(f"{w.app.client_id}-more")


@call("apps.update", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.apps.update(w.app.client_id, name="Renamed")


@call("apps.rotate_secret", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.apps.rotate_secret(w.app.client_id)


@call("apps.fresh")
async def _(w: World) -> Call:
    return lambda: w.store.apps.fresh(w.app.client_id)


@call("apps.drop_secret", "save_app")
async def _(w: World) -> Call:
    app, _ = await w.store.apps.rotate_secret(w.app.client_id)
    return lambda: w.store.apps.drop_secret(w.app.client_id, secret_mark(app.secrets[1]))


@call("apps.now")
async def _(w: World) -> Call:
    return w.store.apps.now


@call("apps.change", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.apps.change(w.app.client_id, lambda app: replace(app, name="Renamed"))


HOOK = "https://app.example/hook"


@call("webhooks.set_url", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.webhooks.set_url(w.app.client_id, HOOK)


@call("webhooks.rotate", "save_app")
async def _(w: World) -> Call:
    await w.store.webhooks.set_url(w.app.client_id, HOOK)
    return lambda: w.store.webhooks.rotate(w.app.client_id)


@call("webhooks.wants")
async def _(w: World) -> Call:
    w.store.apps.forget()
    return lambda: w.store.webhooks.wants(w.app.client_id)


@call("webhooks.target")
async def _(w: World) -> Call:
    await w.store.webhooks.set_url(w.app.client_id, HOOK)
    w.store.apps.forget()
    return lambda: w.store.webhooks.target(w.app.client_id)


@call("apps.begin_deletion", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.apps.begin_deletion(w.app.client_id)


@call("apps.finish_deletion", "forget_app", "forget_deliveries", "remove_app")
async def _(w: World) -> Call:
    await w.tokens()
    await w.store.apps.begin_deletion(w.app.client_id)
    return lambda: w.store.apps.finish_deletion(w.app.client_id)


OWN: dict[str, Any] = {"name": "My App", "redirect_uris": (CALLBACK,), "scopes": ("profile",)}


async def own_app(w: World) -> str:
    """The client id of an app that the person has registered."""
    made = await w.store.owned.register(w.session, "a nonce", VISITOR, most=9, **OWN)
    return made.registration.client_id


@call("owned.list", "list_owned")
async def _(w: World) -> Call:
    await own_app(w)
    return lambda: w.store.owned.list(w.session)


@call("owned.find", "read_session")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.owned.find(w.session, client)


@call("owned.register", "claim_app", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.owned.register(w.session, "a nonce", VISITOR, most=9, **OWN)


@call("owned.update", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.owned.update(w.session, client, "app_changed", VISITOR, name="Renamed")


@call("owned.rotate", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.owned.rotate(w.session, client, VISITOR)


@call("owned.drop_secret", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client = await own_app(w)
    app, _ = await w.store.owned.rotate(w.session, client, VISITOR)
    return lambda: w.store.owned.drop_secret(w.session, client, secret_mark(app.secrets[1]), VISITOR)


@call("owned.set_webhook", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.owned.set_webhook(w.session, client, HOOK, VISITOR)


@call("owned.rotate_webhook", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client = await own_app(w)
    await w.store.owned.set_webhook(w.session, client, HOOK, VISITOR)
    return lambda: w.store.owned.rotate_webhook(w.session, client, VISITOR)


@call("owned.delete", "note_app", "save_app")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.owned.delete(w.session, client, VISITOR)


@call("owned.give", "give_app")
async def _(w: World) -> Call:
    return lambda: w.store.owned.give(w.user, w.app.client_id)


@call("numbers.flush", "add_numbers")
async def _(w: World) -> Call:
    w.store.numbers.called(w.app.client_id, limited=False)
    return w.store.numbers.flush


@call("numbers.of", "read_numbers")
async def _(w: World) -> Call:
    return lambda: w.store.numbers.of(w.app.client_id)


@call("apps.delete", "save_app", "forget_app", "forget_deliveries", "remove_app")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.apps.delete(w.app.client_id)


@call("apps.list")
async def _(w: World) -> Call:
    return w.store.apps.list


@call("limits.unknown_user", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.unknown_user("192.0.2.1")


@call("limits.invented_token", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.invented_token("no token of ours")


@call("limits.foreign_token", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.foreign_token(w.user, "a token of another app")


@call("limits.sign_in", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.sign_in("192.0.2.1", w.email)


@call("limits.own_password", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.own_password(w.user)


@call("limits.passkey", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.passkey("192.0.2.1")


@call("limits.sign_up", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.sign_up("192.0.2.1")


@call("limits.sign_up_mail", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.sign_up_mail(w.email)


@call("limits.change_mail", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.change_mail("new@example.com")


@call("limits.forgot", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.forgot("192.0.2.1", w.email)


@call("links.to_confirm", "issue_link")
async def _(w: World) -> Call:
    return lambda: w.store.links.to_confirm(w.user, w.email)


@call("links.to_reset", "issue_link")
async def _(w: World) -> Call:
    return lambda: w.store.links.to_reset(w.user, w.email)


@call("links.to_change", "issue_link")
async def _(w: World) -> Call:
    return lambda: w.store.links.to_change(w.user, w.email, f"newer-{w.email}")


async def mailed(found: Awaitable[Link | None]) -> str:
    """The text of a link that was made."""
    link = await found
    assert link is not None
    return link.text


@call("links.look", "read_link")
async def _(w: World) -> Call:
    text = await mailed(w.store.links.to_reset(w.user, w.email))
    return lambda: w.store.links.look(Kind.RESET, text)


@call("links.confirm", "confirm_address")
async def _(w: World) -> Call:
    email = f"unconfirmed-{w.email}"
    user = await w.store.people.create(email, "Ada", PASSWORD, verified=False, event="signed_up", visitor=VISITOR)
    session = await w.sign_in(email)
    text = await mailed(w.store.links.to_confirm(user, email))
    return lambda: w.store.links.confirm(session, text, VISITOR)


@call("links.reset", "read_link", "reset_password")
async def _(w: World) -> Call:
    text = await mailed(w.store.links.to_reset(w.user, w.email))
    return lambda: w.store.links.reset(text, "another horse battery", VISITOR)


@call("links.change", "read_link", "confirm_email", "change_address", "release_email")
async def _(w: World) -> Call:
    text = await mailed(w.store.links.to_change(w.user, w.email, f"newer-{w.email}"))
    return lambda: w.store.links.change(w.session, text, VISITOR)


@call("limits.webhook_sent", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.webhook_sent(w.user)


@call("limits.picture", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.picture(w.user)


@call("people.create", "disown_address", "release_email", "create_user", "confirm_email")
async def _(w: World) -> Call:
    # What a change of address left behind.
    await w.store.client.set(keys.email(f"new-{w.email}"), w.user)
    return lambda: w.person(f"new-{w.email}")


@call("people.find")
async def _(w: World) -> Call:
    return lambda: w.store.people.find(w.email)


@call("people.credentials", "read_credentials")
async def _(w: World) -> Call:
    return lambda: w.store.people.credentials(w.email)


@call("people.verify", "read_credentials")
async def _(w: World) -> Call:
    return lambda: w.store.people.verify(w.email, PASSWORD)


@call("people.delete", "delete_user", "release_email")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.people.delete(w.user)


@call("people.half_deleted")
async def _(w: World) -> Call:
    return lambda: w.store.people.half_deleted(w.user)


@call("people.finish_deletions")
async def _(w: World) -> Call:
    return w.store.people.finish_deletions


@call("leaving.challenge", "read_factors")
async def _(w: World) -> Call:
    return lambda: w.store.leaving.challenge(w.session)


@call(
    "leaving.with_password",
    "read_factors",
    "read_factors",
    "take_window",
    "read_credentials",
    "prove_with_code",
    "delete_user",
    "release_email",
)
async def _(w: World) -> Call:
    app = await App.add(w)
    typed = Typed(w.email, PASSWORD, app.codes[0])
    return lambda: w.store.leaving.with_password(w.session, typed, VISITOR)


@call(
    "leaving.with_passkey",
    "read_factors",
    "read_factors",
    "read_passkey",
    "prove_with_passkey",
    "delete_user",
    "release_email",
)
async def _(w: World) -> Call:
    device = await add_passkey(w)
    challenge, allowed = await w.store.leaving.challenge(w.session)
    answer = read_answer(device.get(options_for_use(PARTY, challenge, allowed)))
    return lambda: w.store.leaving.with_passkey(w.session, w.email, PARTY, challenge, answer, VISITOR)


@call("people.invite")
async def _(w: World) -> Call:
    return lambda: w.store.people.invite("guest@example.com")


@call("people.invited")
async def _(w: World) -> Call:
    invite = await w.store.people.invite("guest@example.com")
    return lambda: w.store.people.invited(invite)


@call("sessions.start", "start_session")
async def _(w: World) -> Call:
    credentials = await w.store.people.credentials(w.email)
    assert credentials is not None
    return lambda: w.store.sessions.start(credentials, VISITOR)


@call("sessions.end", "end_session")
async def _(w: World) -> Call:
    return lambda: w.store.sessions.end(w.session, VISITOR)


@call("sessions.profile", "read_session")
async def _(w: World) -> Call:
    return lambda: w.store.sessions.profile(w.session)


@call("sessions.live", "list_sessions")
async def _(w: World) -> Call:
    return lambda: w.store.sessions.live(w.session)


@call("sessions.end_other", "end_other_session")
async def _(w: World) -> Call:
    other = await w.sign_in()
    return lambda: w.store.sessions.end_other(w.session, other.session_id, VISITOR)


@call("sessions.end_others", "end_other_sessions")
async def _(w: World) -> Call:
    return lambda: w.store.sessions.end_others(w.session, VISITOR)


@call("confirming.challenge", "read_factors")
async def _(w: World) -> Call:
    return lambda: w.store.confirming.challenge(w.session)


@call("confirming.with_password", "read_factors", "take_window", "read_credentials", "prove_with_code")
async def _(w: World) -> Call:
    app = await App.add(w)
    return lambda: w.store.confirming.with_password(w.session, PASSWORD, app.codes[0], VISITOR)


@call("confirming.with_passkey", "read_factors", "read_passkey", "prove_with_passkey")
async def _(w: World) -> Call:
    device = await add_passkey(w)
    challenge, allowed = await w.store.confirming.challenge(w.session)
    answer = read_answer(device.get(options_for_use(PARTY, challenge, allowed)))
    return lambda: w.store.confirming.with_passkey(w.session, PARTY, challenge, answer, VISITOR)


@call("factors.of", "read_factors")
async def _(w: World) -> Call:
    return lambda: w.store.factors.of(w.session)


@call("factors.enable_totp", "read_factors", "enable_totp")
async def _(w: World) -> Call:
    app = App(w, w.store.factors.new_secret(w.user))
    code = await app.code()
    return lambda: w.store.factors.enable_totp(w.session, app.sealed, code, VISITOR)


@call("factors.disable_totp", "disable_totp")
async def _(w: World) -> Call:
    await App.add(w)
    await confirm(w)
    return lambda: w.store.factors.disable_totp(w.session, VISITOR)


@call("factors.renew_recovery", "renew_recovery")
async def _(w: World) -> Call:
    await App.add(w)
    await confirm(w)
    return lambda: w.store.factors.renew_recovery(w.session, VISITOR)


@call("factors.challenge", "read_factors")
async def _(w: World) -> Call:
    return lambda: w.store.factors.challenge(w.session)


@call("factors.add_passkey", "add_passkey")
async def _(w: World) -> Call:
    challenge = await w.store.factors.challenge(w.session)
    options = options_for_new(PARTY, "Latchkey", w.user, w.email, "Ada", challenge, [])
    answer = read_answer(Authenticator(ORIGIN).create(options))
    return lambda: w.store.factors.add_passkey(w.session, PARTY, challenge, answer, "My phone", VISITOR)


@call("factors.rename_passkey", "read_passkey", "rename_passkey")
async def _(w: World) -> Call:
    device = await add_passkey(w)
    await confirm(w)
    return lambda: w.store.factors.rename_passkey(w.session, device.credential, "My key", VISITOR)


@call("factors.remove_passkey", "remove_passkey")
async def _(w: World) -> Call:
    device = await add_passkey(w)
    await confirm(w)
    return lambda: w.store.factors.remove_passkey(w.session, device.credential, VISITOR)


@call("second_step.asked", "read_second_step")
async def _(w: World) -> Call:
    await App.add(w)
    half = await half_of(w)
    return lambda: w.store.second_step.asked(half)


@call("second_step.with_code", "read_second_step", "finish_with_code")
async def _(w: World) -> Call:
    app = await App.add(w)
    half = await half_of(w)
    return lambda: w.store.second_step.with_code(half, app.codes[0], VISITOR)


@call("second_step.challenge")
async def _(w: World) -> Call:
    return lambda: w.store.second_step.challenge(None)


@call("second_step.with_passkey", "read_second_step", "read_passkey", "finish_with_passkey")
async def _(w: World) -> Call:
    device = await add_passkey(w)
    half = await half_of(w)
    challenge = await w.store.second_step.challenge(half)
    answer = read_answer(device.get(options_for_use(PARTY, challenge)))
    return lambda: w.store.second_step.with_passkey(half, PARTY, challenge, answer, VISITOR)


@call("sessions.activity", "read_activity")
async def _(w: World) -> Call:
    return lambda: w.store.sessions.activity(w.session)


@call("sessions.change_password", "change_password")
async def _(w: World) -> Call:
    credentials = await w.store.people.credentials(w.email)
    return lambda: w.store.sessions.change_password(w.session, PASSWORD, "another horse battery", credentials, VISITOR)


@call("sessions.note", "record_own_event")
async def _(w: World) -> Call:
    return lambda: w.store.sessions.note(w.session, "account_downloaded", VISITOR)


@call("profiles.rename", "rename_user")
async def _(w: World) -> Call:
    return lambda: w.store.profiles.rename(w.session, "Somebody Else", VISITOR)


@call("profiles.save_picture", "save_picture")
async def _(w: World) -> Call:
    return lambda: w.store.profiles.save_picture(w.session, b"an image", VISITOR)


@call("profiles.picture", "read_picture")
async def _(w: World) -> Call:
    profile = await w.store.sessions.profile(w.session)
    return lambda: w.store.profiles.picture(w.store.profiles.address(profile))


@call("profiles.image", "read_picture")
async def _(w: World) -> Call:
    await w.store.profiles.save_picture(w.session, b"an image", VISITOR)
    profile = await w.store.sessions.profile(w.session)
    return lambda: w.store.profiles.image(w.user, profile.picture)


@call("authorizations.begin", "begin_authorization")
async def _(w: World) -> Call:
    return lambda: w.store.authorizations.begin(w.session, w.request(), always_ask=False)


@call("authorizations.decide", "decide_authorization")
async def _(w: World) -> Call:
    request_id = await w.pending()
    return lambda: w.store.authorizations.decide(
        w.session, w.app, request_id, allow=True, scopes=None, visitor=Visitor()
    )


@call("tokens.exchange", "exchange_code")
async def _(w: World) -> Call:
    code = await w.code()
    return lambda: w.store.tokens.exchange(w.app, code, CALLBACK, VERIFIER)


@call("tokens.refresh", "rotate_refresh")
async def _(w: World) -> Call:
    tokens = await w.tokens()
    return lambda: w.refresh(tokens.refresh_token)


@call("tokens.mint", "mint_token")
async def _(w: World) -> Call:
    return lambda: w.store.tokens.mint(w.user, w.app, ("profile",))


@call("tokens.revoke", "revoke_token")
async def _(w: World) -> Call:
    tokens = await w.tokens()
    return lambda: w.store.tokens.revoke(None, tokens.refresh_token)


@call("identity.read", "read_userinfo")
async def _(w: World) -> Call:
    tokens = await w.tokens()
    return lambda: w.store.identity.read(w.caller(tokens.access_token), "profile")


@call("grants.list", "list_grants")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.grants.list(w.session)


@call("grants.revoke", "revoke_grant")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.grants.revoke(w.session, w.app.client_id, VISITOR)


@call("operator.find", "describe_user")
async def _(w: World) -> Call:
    return lambda: w.store.operator.find(w.email)


@call("operator.show", "describe_user")
async def _(w: World) -> Call:
    return lambda: w.store.operator.show(w.user)


@call("operator.people", "describe_user")
async def _(w: World) -> Call:
    async def people() -> list[Any]:
        return [person async for person in w.store.operator.people()]

    return people


@call("operator.note", "record_event")
async def _(w: World) -> Call:
    return lambda: w.store.operator.note(w.user, "exported_by_operator")


@call("operator.set_status", "describe_user", "set_user_status")
async def _(w: World) -> Call:
    return lambda: w.store.operator.set_status(w.email, "disabled")


@call("operator.credit", "describe_user", "grant_credit")
async def _(w: World) -> Call:
    return lambda: w.store.operator.credit(w.email, 5)


@call("operator.set_password", "describe_user", "set_password")
async def _(w: World) -> Call:
    return lambda: w.store.operator.set_password(w.email, b"a-hash")


@call("operator.security", "describe_security")
async def _(w: World) -> Call:
    await App.add(w)
    return lambda: w.store.operator.security(w.user)


@call("operator.reset_factors", "describe_user", "reset_factors")
async def _(w: World) -> Call:
    await App.add(w)
    return lambda: w.store.operator.reset_factors(w.email)


@call("operator.delete", "describe_user", "delete_user", "release_email")
async def _(w: World) -> Call:
    return lambda: w.store.operator.delete(w.email)


@call("key_state.check", "check_keys")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.check(w.store.keys.ring)


@call("key_state.known", "list_keys")
async def _(w: World) -> Call:
    return w.store.key_state.known


@call("key_state.retire", "retire_key")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.retire(200)


@call("key_state.note_sealing", "note_sealing")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.note_sealing(1)


@call("key_state.note_layout", "note_layout")
async def _(w: World) -> Call:
    return w.store.key_state.note_layout


@call(
    "upgrade.run", *(f"upgrade_{what}" for what in ("token", "person", "people", "connected", "grant")), "note_layout"
)
async def _(w: World) -> Call:
    await w.tokens()
    token = keys.token(w.user, w.app.client_id, f"{w.app.client_id}:an-id", 0)["family"]
    await w.store.client.hset(token, "generation", "0")  # type: ignore[misc]  # redis-py types both clients at once
    return lambda: w.store.upgrade.run(1)


async def document_caller(w: World) -> Caller:
    """An app that keeps the document notes/n1 for the person."""
    app, _ = await w.store.apps.create(
        Registration(new_client_id(), "Keeper", (CALLBACK,), ("profile", "data:read", "data:write"))
    )
    caller = await connect_app(w.store, w.user, app)
    await write(w.store, caller, {"notes/n1": b"1"})
    return caller


@call("documents.read", "read_document")
async def _(w: World) -> Call:
    caller = await document_caller(w)
    return lambda: w.store.documents.read(caller, "data:read", "notes", "n1")


@call("documents.write", "write_document")
async def _(w: World) -> Call:
    caller = await document_caller(w)
    return lambda: w.store.documents.write(caller, "data:write", "notes", "n9", b"1", Conditions())


@call("documents.delete", "delete_document")
async def _(w: World) -> Call:
    caller = await document_caller(w)
    return lambda: w.store.documents.delete(caller, "data:write", "notes", "n1", Conditions())


@call("documents.list", "list_documents")
async def _(w: World) -> Call:
    caller = await document_caller(w)
    return lambda: w.store.documents.list(caller, "data:read", "notes", content=True)


@call("documents.usage", "read_usage")
async def _(w: World) -> Call:
    caller = await document_caller(w)
    return lambda: w.store.documents.usage(caller, "data:read")


async def spender(w: World) -> Spender:
    """An app that may spend a dollar of the person's."""
    app, _ = await w.store.apps.create(Registration(new_client_id(), "Spender", (CALLBACK,), SPENDING))
    await w.store.credits.grant(w.user, DOLLAR)
    return await Spender.make(w, app)


@call("credits.balance", "read_balance")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.credits.balance(app.caller, "credits:read")


@call("credits.grant", "grant_credit")
async def _(w: World) -> Call:
    return lambda: w.store.credits.grant(w.user, DOLLAR, reason="A gift", key="a-key")


@call("credits.begin", "grant_credit")
async def _(w: World) -> Call:
    return lambda: w.store.credits.begin(w.user, DOLLAR, reason="Welcome")


@call("credits.show", "show_credits")
async def _(w: World) -> Call:
    return lambda: w.store.credits.show(w.user)


@call("credits.of", "read_credits")
async def _(w: World) -> Call:
    return lambda: w.store.credits.of(w.session)


@call("credits.spending", "read_spending")
async def _(w: World) -> Call:
    app = await spender(w)
    await w.store.calls.settle(await app.hold(10, 10), 10, 5)
    return lambda: w.store.credits.spending(w.session, 30)


@call("credits.set_spend_limit", "set_spend_limit")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.credits.set_spend_limit(w.session, app.caller.client, DOLLAR, VISITOR)


@call("grants.connected", "list_connected")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.grants.connected(app.caller, "apps:read")


@call("calls.check", "check_token")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.calls.check(app.caller, "credits:spend")


@call("calls.hold", "place_hold")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.calls.hold(app.caller, "credits:spend", app.asked(10, 10, key="a-key"))


@call("calls.settle", "settle_hold")
async def _(w: World) -> Call:
    hold = await (await spender(w)).hold(10, 10, key="a-key")
    return lambda: w.store.calls.settle(hold, 10, 5, REPLY)


@call("calls.release", "release_hold")
async def _(w: World) -> Call:
    hold = await (await spender(w)).hold(10, 10, key="a-key")
    return lambda: w.store.calls.release(hold)


@call("calls.abandon", "release_hold")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.calls.abandon(app.caller, app.asked(10, 10, key="a-key"))


@call("key_state.record_reencryption", "record_reencryption")
async def _(w: World) -> Call:
    return lambda: w.store.key_state.record_reencryption(1, 0)


async def held(w: World) -> str:
    """The app keeps documents for the person."""
    await w.tokens()
    await stock(w.store, w.user, w.app.client_id, {f"notes/n{number}": b"{}" for number in range(3)})
    return w.app.client_id


@call("holdings.list", "list_holdings")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: w.store.holdings.list(w.session, client)


@call("holdings.read", "read_holding")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: w.store.holdings.read(w.session, client, "notes", "n1")


@call("holdings.delete", "delete_holding")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: w.store.holdings.delete(w.session, client, "notes", "n1", VISITOR)


@call("holdings.delete_all", "delete_holdings")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: w.store.holdings.delete_all(w.session, client, VISITOR)


@call("holdings.export", "export_holdings")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: drained(w.store.holdings.export(w.session, client, VISITOR))


@call("holdings.copy", "copy_holdings")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: drained(w.store.holdings.copy(w.user, client))


@call(
    "reencryption.run",
    *("note_sealing", "list_stale_documents", "reseal_document", "reseal_secret", "save_app", "record_reencryption"),
)
async def _(w: World) -> Call:
    await held(w)
    await App.add(w)
    await w.store.webhooks.set_url(w.app.client_id, HOOK)
    newer = rotated(w.store, 2)
    return lambda: drained(newer.reencryption.run(0))


@call("fsck.check", "inspect_keys", "inspect_documents")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: w.store.fsck.check(keys.grant(w.user, client))


@call("fsck.run", "inspect_keys", "inspect_documents", "mend_keys")
async def _(w: World) -> Call:
    client = await held(w)
    await w.store.client.hset(keys.hosted(w.user, client)["usage"], "documents", "7")
    w.store.fsck.settle = 0
    return lambda: drained(w.store.fsck.run(repair=True))


async def drained(found: AsyncIterator[Any]) -> list[Any]:
    return [item async for item in found]


async def wanted(client: str) -> bool:
    """Every app wants to hear of everything."""
    return True


async def told(w: World) -> None:
    """The app has lost its access, and documents of an earlier one have ended: two events."""
    await w.tokens()
    await w.revoke_app()
    ended = f"{keys.member(w.user)}:{w.app.client_id}"
    await w.store.client.zadd(keys.telling(w.user[:3])["due"], {ended: 1})
    w.store.outbox.idle = 0  # what a test has cut short is taken up at once


RELAY = ("take_events", "enqueue_delivery", "drop_events")


@call("outbox.relay", "announce_ended", *RELAY)
async def _(w: World) -> Call:
    await told(w)
    await w.store.client.delete(keys.RELAYED)
    return lambda: w.store.outbox.relay(wanted)


@call("outbox.sweep", "announce_ended", *RELAY)
async def _(w: World) -> Call:
    await told(w)
    return lambda: w.store.outbox.sweep(wanted)


@call("outbox.relay_shards", *RELAY)
async def _(w: World) -> Call:
    await told(w)
    return lambda: w.store.outbox.relay_shards({w.user[:3]}, wanted)


def event(w: World) -> Event:
    """Something to tell the app."""
    return Event(new_id(), "grant.revoked", w.app.client_id, w.user, 1, {"reason": "disconnected_by_person"})


async def claimed(w: World) -> Delivery:
    """A delivery under way."""
    await w.store.deliveries.enqueue(event(w))
    return (await w.store.deliveries.claim(1000, 30))[-1]


@call("deliveries.enqueue", "enqueue_delivery")
async def _(w: World) -> Call:
    one = event(w)
    return lambda: w.store.deliveries.enqueue(one)


@call("deliveries.claim", "claim_deliveries")
async def _(w: World) -> Call:
    await w.store.deliveries.enqueue(event(w))
    return lambda: w.store.deliveries.claim(10, 30)


@call("deliveries.settle", "settle_delivery")
async def _(w: World) -> Call:
    one = await claimed(w)
    return lambda: w.store.deliveries.settle(one.id, one.attempts, delivered=True, status=200)


@call("deliveries.put_back", "put_back_delivery")
async def _(w: World) -> Call:
    one = await claimed(w)
    return lambda: w.store.deliveries.put_back(one.id, one.attempts, 5)


@call("deliveries.list", "list_deliveries")
async def _(w: World) -> Call:
    await claimed(w)
    return lambda: w.store.deliveries.list(w.app.client_id)


@call("deliveries.read", "read_delivery")
async def _(w: World) -> Call:
    one = await claimed(w)
    return lambda: w.store.deliveries.read(w.app.client_id, one.id)


@call("deliveries.replay", "replay_delivery")
async def _(w: World) -> Call:
    one = await claimed(w)
    await w.store.deliveries.settle(one.id, one.attempts, delivered=True, status=200)
    return lambda: w.store.deliveries.replay(w.app.client_id, one.id)


@call("deliveries.next_due", "next_delivery")
async def _(w: World) -> Call:
    await claimed(w)
    return lambda: w.store.deliveries.next_due()


@call("deliveries.forget", "forget_deliveries")
async def _(w: World) -> Call:
    await claimed(w)
    return lambda: w.store.deliveries.forget(w.app.client_id)
