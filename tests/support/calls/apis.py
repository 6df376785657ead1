"""Calls about APIs: what they are registered with, and who may ask about tokens for them."""

from __future__ import annotations

from dataclasses import replace

from store.accounts.signin.passkeys import options_for_use, read_answer
from store.apps.api_record import ApiRegistration, ApiScope
from store.apps.client_secrets import secret_mark
from store.apps.owners.owner_deletion import OwnerDeletionForm
from tests.support.calls.prepared import Call, call
from tests.support.store.second_factors import RELYING_PARTY, add_passkey, reauth_if_needed
from tests.support.store.world import PASSWORD, VISITOR, World


def api_of(w: World) -> ApiRegistration:
    """An API that only this world has."""
    return ApiRegistration(f"https://{w.app.client_id}.example", "Orders", (ApiScope("orders", "Your orders"),))


async def registered(w: World) -> str:
    """The client id of the world's API."""
    api = api_of(w)
    if await w.store.apis.fresh(api.client_id) is None:
        await w.store.apis.create(api)
    return api.client_id


@call("apis.create", "save_app")
async def _(w: World) -> Call:
    return lambda: w.store.apis.create(api_of(w))


@call("apis.find")
async def _(w: World) -> Call:
    return lambda: w.store.apis.find("api_never_read_before")


@call("apis.active")
async def _(w: World) -> Call:
    return lambda: w.store.apis.active("api_never_asked_before")


@call("apis.fresh")
async def _(w: World) -> Call:
    return lambda: w.store.apis.fresh("api_any")


@call("apis.at")
async def _(w: World) -> Call:
    return lambda: w.store.apis.at("https://nobody.example")


@call("apis.update", "save_app")
async def _(w: World) -> Call:
    client_id = await registered(w)
    return lambda: w.store.apis.update(client_id, name="Renamed")


@call("apis.change", "save_app")
async def _(w: World) -> Call:
    client_id = await registered(w)
    return lambda: w.store.apis.change(client_id, lambda api: replace(api, name="Renamed"))


@call("apis.rotate_secret", "save_app")
async def _(w: World) -> Call:
    client_id = await registered(w)
    return lambda: w.store.apis.rotate_secret(client_id)


@call("apis.delete", "save_app")
async def _(w: World) -> Call:
    client_id = await registered(w)
    return lambda: w.store.apis.delete(client_id)


@call("apis.list")
async def _(w: World) -> Call:
    await registered(w)
    return w.store.apis.list


@call("apis.every")
async def _(w: World) -> Call:
    await registered(w)
    w.store.apis.forget()
    return w.store.apis.every


NAME = "Orders"


async def own_api(w: World) -> str:
    """The client id of the world's API, which its person owns."""
    await reauth_if_needed(w)
    client_id = await registered(w)
    await w.store.apis.update(client_id, owner=w.user)
    return client_id


@call("owned_apis.list", "read_session")
async def _(w: World) -> Call:
    await own_api(w)
    return lambda: w.store.owned_apis.list(w.session)


@call("owned_apis.of")
async def _(w: World) -> Call:
    await own_api(w)
    w.store.apis.forget()
    return lambda: w.store.owned_apis.of(w.user)


@call("owned_apis.has_any")
async def _(w: World) -> Call:
    await own_api(w)
    w.store.apis.forget()
    return lambda: w.store.owned_apis.has_any(w.user)


@call("owned_apis.find", "read_session")
async def _(w: World) -> Call:
    client_id = await own_api(w)
    return lambda: w.store.owned_apis.find(w.session, client_id)


@call("owned_apis.apps_at")
async def _(w: World) -> Call:
    api = await w.store.apis.fresh(await own_api(w))
    assert api is not None
    return lambda: w.store.owned_apis.apps_at(api)


@call("owned_apis.update", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client_id = await own_api(w)
    return lambda: w.store.owned_apis.update(w.session, client_id, "api_changed", VISITOR, name="Renamed")


@call("owned_apis.rotate", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client_id = await own_api(w)
    await w.store.apis.rotate_secret(client_id, drop_old=True)
    return lambda: w.store.owned_apis.rotate(w.session, client_id, VISITOR)


@call("owned_apis.drop_secret", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    api, _ = await w.store.apis.rotate_secret(await own_api(w))
    return lambda: w.store.owned_apis.drop_secret(w.session, api.client_id, secret_mark(api.secrets[1]), VISITOR)


@call("owned_apis.delete", "read_session", "note_app", "save_app")
async def _(w: World) -> Call:
    client_id = await own_api(w)
    return lambda: w.store.owned_apis.delete(w.session, client_id, VISITOR)


@call("owned_apis.take_back", "record_event", "save_app")
async def _(w: World) -> Call:
    client_id = await own_api(w)
    await w.store.apis.rotate_secret(client_id, drop_old=True)
    await w.store.owned_apis.rotate(w.session, client_id, VISITOR)
    return lambda: w.store.owned_apis.take_back(w.user, 1)


@call("api_ending.challenge", "read_session", "read_factors")
async def _(w: World) -> Call:
    client_id = await own_api(w)
    return lambda: w.store.api_ending.challenge(w.session, client_id)


@call(
    "api_ending.with_password",
    "read_session",
    "read_factors",
    "take_networks",
    "read_credentials",
    "prove_with_code",
    "read_session",
    "note_app",
    "save_app",
    "read_factors",
)
async def _(w: World) -> Call:
    client_id = await own_api(w)
    typed = OwnerDeletionForm(NAME, PASSWORD, "")
    return lambda: w.store.api_ending.with_password(w.session, client_id, typed, VISITOR)


@call(
    "api_ending.with_passkey",
    "read_session",
    "try_passkey",
    "prove_with_passkey",
    "read_session",
    "note_app",
    "save_app",
    "read_factors",
)
async def _(w: World) -> Call:
    client_id = await own_api(w)
    device = await add_passkey(w)
    challenge, allowed = await w.store.api_ending.challenge(w.session, client_id)
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge, allowed)))
    ending = w.store.api_ending
    return lambda: ending.with_passkey(w.session, client_id, NAME, RELYING_PARTY, challenge, answer, VISITOR)
