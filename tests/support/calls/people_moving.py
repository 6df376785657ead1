"""Calls of imports: addresses, people who move in, the place of an import."""

from __future__ import annotations

from store import keys
from store.accounts.identities import UpstreamIdentity
from store.accounts.import_state import ImportProgress
from store.accounts.movers import MoverRow
from store.crypto.seal import new_id, new_user_id
from tests.support.calls.prepared import Call, call
from tests.support.store.world import World


def _identity(w: World) -> UpstreamIdentity:
    return UpstreamIdentity("https://upstream.example", w.user)


@call("addresses.find")
async def _(w: World) -> Call:
    return lambda: w.store.addresses.find(w.email)


@call("addresses.reserve", "disown_address", "release_email")
async def _(w: World) -> Call:
    await w.store.client.set(keys.email(f"new-{w.email}"), w.user)
    return lambda: w.store.addresses.reserve(f"new-{w.email}", new_user_id())


@call("addresses.keep", "confirm_email")
async def _(w: World) -> Call:
    return lambda: w.store.addresses.keep(w.email, w.user)


@call("addresses.keep_all", "confirm_email")
async def _(w: World) -> Call:
    return lambda: w.store.addresses.keep_all([(w.email, w.user)])


@call("addresses.claim", "confirm_email")
async def _(w: World) -> Call:
    return lambda: w.store.addresses.claim(w.email, w.user)


@call("addresses.release", "release_email")
async def _(w: World) -> Call:
    return lambda: w.store.addresses.release(f"new-{w.email}", w.user)


@call("addresses.hold", "hold_email")
async def _(w: World) -> Call:
    ends = await w.store.apps.now() + 60_000
    return lambda: w.store.addresses.hold(w.email, w.user, ends)


@call("addresses.free_stale", "disown_address", "release_email")
async def _(w: World) -> Call:
    await w.store.client.set(keys.email(f"new-{w.email}"), w.user)
    return lambda: w.store.addresses.free_stale(f"new-{w.email}")


@call("movers.create", "import_people")
async def _(w: World) -> Call:
    row = MoverRow(new_user_id(), f"moved-{w.email}", "Ada", b"a hash", identities=[_identity(w)])
    return lambda: w.store.movers.create([row])


@call("movers.update", "update_imported")
async def _(w: World) -> Call:
    return lambda: w.store.movers.update(w.user, w.email, "Countess", [_identity(w)])


@call("import_state.read")
async def _(w: World) -> Call:
    return lambda: w.store.import_state.read(b"0" * 16)


@call("import_state.note", "note_import")
async def _(w: World) -> Call:
    return lambda: w.store.import_state.note(w.user[:16].encode(), ImportProgress(new_id(), "0" * 64))


@call("import_state.forget")
async def _(w: World) -> Call:
    return lambda: w.store.import_state.forget(b"0" * 16)


@call("hash_prices.add")
async def _(w: World) -> Call:
    return lambda: w.store.hash_prices.add({"bcrypt 10": 1})
