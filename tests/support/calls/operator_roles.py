"""Calls about keys of operators and roles of people."""

from __future__ import annotations

from tests.support.calls.prepared import Call, call
from tests.support.store.world import World


@call("operator_keys.create", "add_operator_key")
async def _(w: World) -> Call:
    return lambda: w.store.operator_keys.create("support", name="Tests")


@call("operator_keys.open")
async def _(w: World) -> Call:
    _key, text = await w.store.operator_keys.create("support")
    return lambda: w.store.operator_keys.open(text, "127.0.0.1")


@call("operator_keys.used", "note_key_use")
async def _(w: World) -> Call:
    key, _text = await w.store.operator_keys.create("support")
    return lambda: w.store.operator_keys.used(key, "127.0.0.1", 2**42)


@call("operator_keys.list")
async def _(w: World) -> Call:
    await w.store.operator_keys.create("support")
    return lambda: w.store.operator_keys.list()


@call("operator_keys.is_live")
async def _(w: World) -> Call:
    key, _text = await w.store.operator_keys.create("support")
    return lambda: w.store.operator_keys.is_live(key.id)


@call("operator_keys.revoke", "drop_operator_key")
async def _(w: World) -> Call:
    key, _text = await w.store.operator_keys.create("support")
    return lambda: w.store.operator_keys.revoke(key.id)


@call("role_holders.of")
async def _(w: World) -> Call:
    return lambda: w.store.role_holders.of(w.user)


@call("role_holders.working")
async def _(w: World) -> Call:
    await w.store.role_holders.give(w.user, "auditor")
    return lambda: w.store.role_holders.working(w.user)


@call("role_holders.in_session")
async def _(w: World) -> Call:
    await w.store.role_holders.give(w.user, "auditor")
    return lambda: w.store.role_holders.in_session(w.session)


@call("role_holders.list")
async def _(w: World) -> Call:
    return lambda: w.store.role_holders.list()


@call("role_holders.admins")
async def _(w: World) -> Call:
    await w.store.role_holders.give(w.user, "admin")
    return lambda: w.store.role_holders.admins()


@call("role_holders.is_last_admin")
async def _(w: World) -> Call:
    return lambda: w.store.role_holders.is_last_admin(w.user)


@call("role_holders.give", "give_operator_role")
async def _(w: World) -> Call:
    return lambda: w.store.role_holders.give(w.user, "support")
