"""Calls about consent: authorizations, tokens, grants and hosted documents."""

from __future__ import annotations

from store.crypto.dpop import DpopProof
from store.results import Visitor
from tests.support.calls.documents_and_credits import spender
from tests.support.calls.prepared import Call, call, drained
from tests.support.store.many_documents import stock
from tests.support.store.second_factors import reauth_if_needed
from tests.support.store.world import CALLBACK, VERIFIER, VISITOR, World


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


@call("proofs.use", "use_dpop_proof")
async def _(w: World) -> Call:
    return lambda: w.store.proofs.use(DpopProof("k" * 43, "m" * 22, None))


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


@call("grants.watch", "watch_apps")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.grants.watch(w.session)


@call("grants.count", "count_grants")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.grants.count(w.session)


@call("grants.revoke", "revoke_grant")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.grants.revoke(w.session, w.app.client_id, VISITOR)


@call("grants.pause", "set_pause")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.grants.pause(w.session, w.app.client_id, VISITOR)


@call("grants.resume", "set_pause")
async def _(w: World) -> Call:
    await w.tokens()
    return lambda: w.store.grants.resume(w.session, w.app.client_id, VISITOR)


@call("grants.connected", "list_connected")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.grants.connected(app.caller, "apps:read")


async def held(w: World) -> str:
    """The app stores documents for the person."""
    await w.tokens()
    await stock(w.store, w.user, w.app.client_id, {f"notes/n{number}": b"{}" for number in range(3)})
    return w.app.client_id


@call("person_documents.list", "list_holdings")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: w.store.person_documents.list(w.session, client)


@call("person_documents.read", "read_holding")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: w.store.person_documents.read(w.session, client, "notes", "n1")


@call("person_documents.delete", "delete_holding")
async def _(w: World) -> Call:
    client = await held(w)
    await reauth_if_needed(w)
    return lambda: w.store.person_documents.delete(w.session, client, "notes", "n1", VISITOR)


@call("person_documents.delete_all", "delete_holdings")
async def _(w: World) -> Call:
    client = await held(w)
    await reauth_if_needed(w)
    return lambda: w.store.person_documents.delete_all(w.session, client, VISITOR)


@call("person_documents.export", "export_holdings")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: drained(w.store.person_documents.export(w.session, client, VISITOR))


@call("person_documents.copy", "copy_holdings")
async def _(w: World) -> Call:
    client = await held(w)
    return lambda: drained(w.store.person_documents.copy(w.user, client))
