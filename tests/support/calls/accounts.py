"""Calls about people: accounts, sessions, e-mail links, limits for strangers."""

from __future__ import annotations

from collections.abc import Awaitable

from store import keys
from store.accounts.account_deletion import DeletionForm
from store.accounts.links import Link
from store.accounts.signin.passkeys import options_for_use, read_answer
from store.crypto.seal import TokenKind
from store.results import Preferences
from tests.support.calls.prepared import Call, call
from tests.support.store.second_factors import RELYING_PARTY, App, add_passkey
from tests.support.store.world import PASSWORD, VISITOR, World, to_change


@call("limits.unknown_user", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.unknown_user("192.0.2.1")


@call("limits.invented_token", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.invented_token("no token of ours")


@call("limits.foreign_token", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.foreign_token(w.user, "a token of another app")


@call("limits.sign_in_elsewhere", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.sign_in_elsewhere(f"ldaps://ldap.example.org {w.user}")


@call("limits.sign_in", "take_networks", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.sign_in("192.0.2.1", w.email)


@call("limits.own_password", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.own_password(w.user, "a session")


@call("sessions.mistyped", "note_mistyped")
async def _(w: World) -> Call:
    return lambda: w.store.sessions.mistyped(w.session, VISITOR)


@call("limits.passkey", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.passkey("192.0.2.1")


@call("limits.sign_up", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.sign_up("192.0.2.1")


@call("signing_in.with_password", "take_networks", "take_window", "read_credentials", "start_session")
async def _(w: World) -> Call:
    return lambda: w.store.signing_in.with_password(w.email, PASSWORD, "192.0.2.1", None, VISITOR)


@call("limits.give_back", "give_back")
async def _(w: World) -> Call:
    taken = await w.store.limits.own_password(w.user, "a session")
    return lambda: w.store.limits.give_back(taken)


@call("devices.credentials", "try_device")
async def _(w: World) -> Call:
    device = w.store.devices.open(await w.store.devices.renew(None, w.user))
    assert device is not None
    return lambda: w.store.devices.credentials(device, w.email)


@call("devices.take_mail", "try_device")
async def _(w: World) -> Call:
    device = w.store.devices.open(await w.store.devices.renew(None, w.user))
    assert device is not None
    return lambda: w.store.devices.take_mail(device, w.email)


@call("signing_in.forgot", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.signing_in.forgot(w.email, "192.0.2.1", None)


@call("devices.renew", "read_epoch")
async def _(w: World) -> Call:
    return lambda: w.store.devices.renew(None, w.user)


@call("limits.sign_up_mail", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.sign_up_mail("192.0.2.1", w.email)


@call("limits.change_mail", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.change_mail("192.0.2.1", "new@example.com")


@call("limits.invite_member", "take_window", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.invite_member(w.user, "192.0.2.1", "new@example.com")


@call("limits.give_back_change_mail", "give_back")
async def _(w: World) -> Call:
    await w.store.limits.change_mail("192.0.2.1", "new@example.com")
    return lambda: w.store.limits.give_back_change_mail("192.0.2.1", "new@example.com")


@call("limits.forgot", "take_networks")
async def _(w: World) -> Call:
    return lambda: w.store.limits.forgot("192.0.2.1", w.email)


@call("links.to_confirm", "issue_link")
async def _(w: World) -> Call:
    return lambda: w.store.links.to_confirm(w.user, w.email)


@call("links.to_reset", "issue_link")
async def _(w: World) -> Call:
    return lambda: w.store.links.to_reset(w.user, w.email)


@call("links.to_change", "issue_change")
async def _(w: World) -> Call:
    credentials = await w.store.people.credentials(w.email)
    assert credentials
    return lambda: w.store.links.to_change(w.session, w.email, f"newer-{w.email}", credentials.password, VISITOR)


async def mailed(found: Awaitable[Link | None]) -> str:
    """The text of a new link."""
    link = await found
    assert link is not None
    return link.text


@call("links.look", "read_link")
async def _(w: World) -> Call:
    text = await mailed(w.store.links.to_reset(w.user, w.email))
    return lambda: w.store.links.look(TokenKind.RESET, text)


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


@call("links.change", "read_link", "confirm_email", "change_address", "hold_email")
async def _(w: World) -> Call:
    text = (await to_change(w.store, w.session, f"newer-{w.email}")).text
    return lambda: w.store.links.change(w.session, text, VISITOR)


async def undo_of(w: World) -> str:
    """The link that restores the person's address."""
    text = (await to_change(w.store, w.session, f"newer-{w.email}")).text
    undo = (await w.store.links.change(w.session, text, VISITOR)).undo
    assert undo
    return undo.text


@call("undoing.look", "read_undo")
async def _(w: World) -> Call:
    text = await undo_of(w)
    return lambda: w.store.undoing.look(text)


@call("undoing.undo", "read_undo", "confirm_email", "undo_change", "release_email")
async def _(w: World) -> Call:
    text = await undo_of(w)
    return lambda: w.store.undoing.undo(text, VISITOR)


@call("limits.webhook_sent", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.webhook_sent(w.user)


@call("limits.verify_domain", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.verify_domain(w.user)


@call("limits.picture", "take_window")
async def _(w: World) -> Call:
    return lambda: w.store.limits.picture(w.user)


@call("people.create", "disown_address", "release_email", "create_user", "confirm_email")
async def _(w: World) -> Call:
    # Leftovers of a change of address.
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


@call("people.delete", "begin_leaving", "delete_user", "release_email")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.people.delete(w.user)


@call("people.half_deleted")
async def _(w: World) -> Call:
    return lambda: w.store.people.half_deleted(w.user)


@call("people.finish_deletions", "claim_deletion", "begin_leaving", "delete_user", "release_email")
async def _(w: World) -> Call:
    await w.store.planned_deletions.plan(w.user, 7)
    await w.store.client.hset(keys.person(w.user)["user"], "delete_at", 1)
    await w.store.people.plan(w.user, 1)
    return w.store.people.finish_deletions


@call("people.plan", "begin_leaving")
async def _(w: World) -> Call:
    return lambda: w.store.people.plan(w.user, 0)


@call("account_deletion.challenge", "read_factors")
async def _(w: World) -> Call:
    return lambda: w.store.account_deletion.challenge(w.session)


@call(
    "account_deletion.with_password",
    "read_factors",
    "read_factors",
    "take_networks",
    "read_credentials",
    "prove_with_code",
    "begin_leaving",
    "delete_user",
    "release_email",
)
async def _(w: World) -> Call:
    app = await App.add(w)
    typed = DeletionForm(w.email, PASSWORD, app.codes[0])
    return lambda: w.store.account_deletion.with_password(w.session, typed, VISITOR)


@call(
    "account_deletion.with_passkey",
    "read_factors",
    "try_passkey",
    "prove_with_passkey",
    "begin_leaving",
    "delete_user",
    "release_email",
)
async def _(w: World) -> Call:
    device = await add_passkey(w)
    challenge, allowed = await w.store.account_deletion.challenge(w.session)
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge, allowed)))
    return lambda: w.store.account_deletion.with_passkey(w.session, w.email, RELYING_PARTY, challenge, answer, VISITOR)


@call("people.invite")
async def _(w: World) -> Call:
    return lambda: w.store.people.invite("guest@example.com")


@call("people.invite_again")
async def _(w: World) -> Call:
    await w.store.people.invite("guest@example.com")
    return lambda: w.store.people.invite_again("guest@example.com")


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


@call("profiles.prefer", "save_preferences")
async def _(w: World) -> Call:
    return lambda: w.store.profiles.prefer(w.session, Preferences("en", "Europe/Berlin"), VISITOR)


@call("profiles.hide_passkey_offer", "hide_passkey_offer")
async def _(w: World) -> Call:
    return lambda: w.store.profiles.hide_passkey_offer(w.session)


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
