"""Calls about documents, credits and calls of models."""

from __future__ import annotations

from store.apps.client_ids import new_client_id
from store.apps.registration import Registration
from store.credits.payments import Movement
from store.credits.prices import TokenCounts
from store.documents.documents import Conditions
from store.results import Caller
from tests.support.calls.prepared import Call, call
from tests.support.store.credit_spender import DOLLAR, REPLY, SPENDING, Spender
from tests.support.store.many_documents import connect_app, write
from tests.support.store.second_factors import reauth_if_needed
from tests.support.store.world import CALLBACK, VISITOR, World


async def document_caller(w: World) -> Caller:
    """An app that stores the document notes/n1 for the person."""
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


@call("documents.check", "check_token")
async def _(w: World) -> Call:
    caller = await document_caller(w)
    return lambda: w.store.documents.check(caller, "data:write")


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


@call("hosted_sizes.of")
async def _(w: World) -> Call:
    caller = await document_caller(w)
    return lambda: w.store.hosted_sizes.of(w.user, [caller.client])


@call("documents.usage", "read_usage")
async def _(w: World) -> Call:
    caller = await document_caller(w)
    return lambda: w.store.documents.usage(caller, "data:read")


async def spender(w: World) -> Spender:
    """An app that may spend a dollar of the person's credits."""
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
    await w.store.calls.settle(await app.hold(10, 10), TokenCounts(10, 5))
    return lambda: w.store.credits.spending(w.session, 30)


@call("usage.report", "report_usage")
async def _(w: World) -> Call:
    app = await spender(w)
    await w.store.calls.settle(await app.hold(10, 10), TokenCounts(10, 5, web_search=1))
    return lambda: w.store.usage.report(app.caller, "credits:read")


@call("credits.choose_mails", "choose_credit_mails")
async def _(w: World) -> Call:
    return lambda: w.store.credits.choose_mails(w.session, wanted=False)


@call("payments.begin", "begin_checkout")
async def _(w: World) -> Call:
    return lambda: w.store.payments.begin(w.session)


@call("payments.book", "book_payment")
async def _(w: World) -> Call:
    return lambda: w.store.payments.book(Movement(w.user, "pi_1", "paid", 5_000_000, 100))


@call("usage.all_of", "inspect_usage")
async def _(w: World) -> Call:
    return lambda: w.store.usage.all_of(w.user)


@call("usage.of", "show_usage")
async def _(w: World) -> Call:
    return lambda: w.store.usage.of(w.session, 30)


@call("credits.set_spend_limit", "set_spend_limit")
async def _(w: World) -> Call:
    app = await spender(w)
    await reauth_if_needed(w)
    return lambda: w.store.credits.set_spend_limit(w.session, app.caller.client, DOLLAR, VISITOR)


@call("calls.check", "check_token")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.calls.check(app.caller, "credits:spend")


@call("calls.check_call", "check_token")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.calls.check_call(app.caller, "credits:spend")


@call("calls.hold", "place_hold", "lease_spending")
async def _(w: World) -> Call:
    app = await spender(w)
    w.store.calls.daily.per_app = w.store.calls.daily.per_person = DOLLAR
    return lambda: w.store.calls.hold(app.caller, "credits:spend", app.estimate(10, 10, key="a-key"))


@call("calls.settle", "settle_hold")
async def _(w: World) -> Call:
    hold = await (await spender(w)).hold(10, 10, key="a-key")
    return lambda: w.store.calls.settle(hold, TokenCounts(10, 5), REPLY)


@call("calls.release", "release_hold")
async def _(w: World) -> Call:
    hold = await (await spender(w)).hold(10, 10, key="a-key")
    return lambda: w.store.calls.release(hold)


@call("calls.abandon", "release_hold")
async def _(w: World) -> Call:
    app = await spender(w)
    return lambda: w.store.calls.abandon(app.caller, app.estimate(10, 10, key="a-key"))
