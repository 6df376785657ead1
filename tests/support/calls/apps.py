"""Calls about apps: their registrations, owners and webhooks."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from store import keys
from store.accounts.signin.passkeys import options_for_use, read_answer
from store.app_log import Cause
from store.apps.client_secrets import secret_mark
from store.apps.owners.owner_deletion import OwnerDeletionForm
from store.apps.webhooks import newest_mark
from tests.support.calls.prepared import Call, call
from tests.support.store.second_factors import RELYING_PARTY, add_passkey, reauth_if_needed
from tests.support.store.world import CALLBACK, PASSWORD, VISITOR, World


@call("apps.find")
async def _(w: World) -> Call:
    return lambda: w.store.apps.find("never-read-before")


@call("apps.spend_per_day")
async def _(w: World) -> Call:
    return lambda: w.store.apps.spend_per_day("never-named-before")


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


@call("apps.logo")
async def _(w: World) -> Call:
    return lambda: w.store.apps.logo(w.app.client_id, "l" * 22)


@call("owned.set_logo", "read_session", "note_app", "save_logo")
async def _(w: World) -> Call:
    client_id = await own_app(w)
    return lambda: w.store.owned.set_logo(w.session, client_id, b"an image", VISITOR)


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


@call("apps.finish_deletion", "retire_app", "bury_app")
async def _(w: World) -> Call:
    await w.tokens()
    await w.store.apps.begin_deletion(w.app.client_id)
    return lambda: w.store.apps.finish_deletion(w.app.client_id)


@call("apps.finish_deletions", "retire_app", "bury_app")
async def _(w: World) -> Call:
    await w.store.apps.finish_deletions()  # those of other calls
    await w.tokens()
    await w.store.apps.begin_deletion(w.app.client_id)
    return w.store.apps.finish_deletions


@call("app_sweep.sweep")
async def _(w: World) -> Call:
    await w.store.client.delete(keys.APPS_SWEPT)
    return w.store.app_sweep.sweep


@call("apps.stored")
async def _(w: World) -> Call:
    return lambda: w.store.apps.stored(w.app.client_id)


@call("apps.all_remembered")
async def _(w: World) -> Call:
    return w.store.apps.all_remembered


@call("apps.remembered")
async def _(w: World) -> Call:
    await w.store.apps.begin_deletion(w.app.client_id)
    return lambda: w.store.apps.remembered(w.app.client_id)


@call("apps.check_free")
async def _(w: World) -> Call:
    return lambda: w.store.apps.check_free("free")


@call("apps.reseal", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.apps.reseal(w.app.client_id, lambda _, sealed: sealed)


@call("app_ending.challenge", "read_session", "read_factors")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.app_ending.challenge(w.session, client)


@call(
    "app_ending.with_password",
    "read_session",
    "read_factors",
    "take_networks",
    "read_credentials",
    "prove_with_code",
    "note_app",
    "save_app",
    "read_factors",
)
async def _(w: World) -> Call:
    client = await own_app(w)
    typed = OwnerDeletionForm(OWN["name"], PASSWORD, "")
    return lambda: w.store.app_ending.with_password(w.session, client, typed, VISITOR)


@call(
    "app_ending.with_passkey",
    "read_session",
    "try_passkey",
    "prove_with_passkey",
    "note_app",
    "save_app",
    "read_factors",
)
async def _(w: World) -> Call:
    client = await own_app(w)
    device = await add_passkey(w)
    challenge, allowed = await w.store.app_ending.challenge(w.session, client)
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge, allowed)))
    ending = w.store.app_ending
    return lambda: ending.with_passkey(w.session, client, OWN["name"], RELYING_PARTY, challenge, answer, VISITOR)


OWN: dict[str, Any] = {"name": "My App", "redirect_uris": (CALLBACK,), "scopes": ("profile",)}


async def own_app(w: World) -> str:
    """The client id of an app that the person has registered."""
    await reauth_if_needed(w)
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


@call("owned.take_back", "record_event", "save_app")
async def _(w: World) -> Call:
    await own_app(w)
    return lambda: w.store.owned.take_back(w.user, 0)


@call("owned.set_webhook", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.owned.set_webhook(w.session, client, HOOK, VISITOR)


@call("owned.rotate_webhook", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client = await own_app(w)
    await w.store.owned.set_webhook(w.session, client, HOOK, VISITOR)
    app, _ = await w.store.apps.fresh(client)
    assert app is not None
    mark = newest_mark(app)
    return lambda: w.store.owned.rotate_webhook(w.session, client, VISITOR, mark=mark, ends=None)


@call("owned.prove_domain", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    app, _ = await w.store.apps.fresh(await own_app(w))
    assert app is not None
    return lambda: w.store.owned.prove_domain(w.session, app, "app.example", VISITOR)


@call("owned.delete", "note_app", "save_app")
async def _(w: World) -> Call:
    client = await own_app(w)
    return lambda: w.store.owned.delete(w.session, client, VISITOR)


@call("owned.give", "give_app")
async def _(w: World) -> Call:
    return lambda: w.store.owned.give(w.user, w.app.client_id)


@call("hosting.flush", "add_hosted")
async def _(w: World) -> Call:
    w.store.hosting.grew(w.user, 1, 1)
    return w.store.hosting.flush


@call("hosting.recount", "count_hosted", "add_hosted")
async def _(w: World) -> Call:
    await w.store.client.zadd(keys.person(w.user)["apps"], {w.app.client_id: 1})
    await w.tokens()
    return lambda: w.store.hosting.recount(w.user)


@call("app_stats.flush", "add_numbers")
async def _(w: World) -> Call:
    w.store.app_stats.called(w.app.client_id, limited=False)
    return w.store.app_stats.flush


@call("app_log.flush", "add_refusals")
async def _(w: World) -> Call:
    w.store.app_log.refused(w.app.client_id, Cause("token", "invalid_grant", "Why.", "value"))
    return w.store.app_log.flush


@call("app_log.of", "read_refusals")
async def _(w: World) -> Call:
    return lambda: w.store.app_log.of(w.app.client_id)


@call("app_stats.of", "read_numbers")
async def _(w: World) -> Call:
    return lambda: w.store.app_stats.of(w.app.client_id)


@call("apps.delete", "save_app", "forget_app", "forget_deliveries", "remove_app")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.apps.delete(w.app.client_id)


@call("apps.list")
async def _(w: World) -> Call:
    return w.store.apps.list
