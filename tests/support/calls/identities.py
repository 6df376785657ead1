"""Calls about identities at other servers."""

from __future__ import annotations

from store.accounts.identities import UpstreamIdentity
from tests.support.calls.prepared import Call, call
from tests.support.store.second_factors import TRUSTED, arrival, link, reauth_if_needed
from tests.support.store.world import VISITOR, World


async def linked(w: World) -> UpstreamIdentity:
    one = arrival(f"sub-{w.user}").identity
    await link(w, one.subject)
    return one


@call("identities.find")
async def _(w: World) -> Call:
    one = await linked(w)
    return lambda: w.store.identities.find(one)


@call("identities.entry")
async def _(w: World) -> Call:
    one = await linked(w)
    return lambda: w.store.identities.entry(one)


@call("identities.reserved")
async def _(w: World) -> Call:
    one = await linked(w)
    return lambda: w.store.identities.reserved(one)


@call("identities.reserve")
async def _(w: World) -> Call:
    return lambda: w.store.identities.reserve(arrival(f"new-{w.user}").identity, w.user)


@call("identities.keep", "keep_identity")
async def _(w: World) -> Call:
    one = await linked(w)
    return lambda: w.store.identities.keep(one, w.user)


@call("identities.keep_all", "keep_identity")
async def _(w: World) -> Call:
    one = await linked(w)
    return lambda: w.store.identities.keep_all([(one, w.user)])


@call("identities.restore", "keep_identity")
async def _(w: World) -> Call:
    one = await linked(w)
    return lambda: w.store.identities.restore(one, w.user)


@call("identities.release", "release_identity")
async def _(w: World) -> Call:
    one = arrival(f"new-{w.user}").identity
    assert await w.store.identities.reserve(one, w.user)
    return lambda: w.store.identities.release(one.name, w.user)


@call("identities.drop", "drop_identity")
async def _(w: World) -> Call:
    one = arrival(f"sub-{w.user}").identity
    return lambda: w.store.identities.drop(one.name, w.user)


@call("identities.free_stale", "release_identity")
async def _(w: World) -> Call:
    one = await linked(w)
    await w.store.identities.drop(one.name, w.user)
    return lambda: w.store.identities.free_stale(one.name)


@call("upstream.admit", "create_user", "confirm_email", "link_by_address", "keep_identity")
async def _(w: World) -> Call:
    one = arrival(f"first-{w.user}", f"first-{w.email}")
    return lambda: w.store.upstream.admit(one, TRUSTED, VISITOR)


@call("upstream.sign_in", "sign_in_with_identity")
async def _(w: World) -> Call:
    await linked(w)
    return lambda: w.store.upstream.sign_in(w.user, arrival(f"sub-{w.user}"), True, VISITOR)


@call("upstream.link", "link_identity", "keep_identity")
async def _(w: World) -> Call:
    await reauth_if_needed(w)
    return lambda: w.store.upstream.link(w.session, arrival(f"sub-{w.user}"), VISITOR)


@call("upstream.unlink", "unlink_identity", "release_identity")
async def _(w: World) -> Call:
    one = await linked(w)
    await reauth_if_needed(w)
    return lambda: w.store.upstream.unlink(w.session, one.name, [], VISITOR)
