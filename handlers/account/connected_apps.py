"""/account: the front page, and the person's connected apps."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import quote, urlsplit

from handlers.account.handed_on import ROWS, Placed, in_tree, shown_helpers
from handlers.account.live import words_of
from handlers.account.reauth_forms import GuardedPage
from handlers.core import mails
from handlers.core.amounts import dollars, typed_limit
from handlers.core.format import money_field
from handlers.core.lists.paging import ListPart, page_number, part_of
from handlers.core.page import PageHandler
from handlers.core.params import once, parse_pairs
from handlers.core.scopes import allowed, api_words
from handlers.core.words.budgets import FIELD, bar_share, names_of_models
from outbound.ai.models import Models
from store import security_events
from store.apps.redirect_uris import display_origin
from store.apps.registration import Registration
from store.oauth.budgets import BUDGET_TYPES, MONTH
from store.oauth.grants import Grant
from store.phrases import Phrase
from store.refused import Refused

LIMIT = "dollars"
"""The field of an app's limit."""
NOTICES = {
    "limit": Phrase("The spending limit was saved."),
    "no-limit": Phrase("The spending limit was removed. The app can now spend all your credits."),
    "paused": Phrase("The app is paused. It can’t use your account until you resume it."),
    "resumed": Phrase("The app is no longer paused."),
    "ended": Phrase("Access ended, including everything handed on from it."),
    "disconnected": Phrase("The app was disconnected. It no longer has access."),
}
EVENTS = {name: Phrase.known(declared.sentence) for name, declared in security_events.EVENTS.items()}


class HomeHandler(PageHandler):
    """The front page."""

    async def get(self) -> None:
        """Shows what this server is for."""
        signup_open = self.site.signup == "open"
        self.render("base/home.html", signed_in=await self.profile(), signup_open=signup_open)


class Mistyped(NamedTuple):
    """The text typed as an app's limit, or as the amount of a budget (`field`), and why it is invalid."""

    client: str
    field: str
    text: str
    refusal: Refused


class AppsPage(PageHandler):
    """The page of connected apps."""

    uses_scripts = True

    async def show(self, number: int, mistyped: Mistyped | None = None) -> None:
        """Shows a page of apps: what each may do, and those whose data is still kept. A mistyped limit is shown in its
        field."""
        named, helpers = once(parse_pairs(self.request.query)).get("app") or "", self.page_asked("helpers")
        page = await self.store.grants.list(self.require_session(), number)
        wording = self.wording(page.profile.preferences)
        apps: list[SimpleNamespace] = []
        revoked: list[SimpleNamespace] = []
        trees = {grant.client: in_tree(grant) for grant in page.grants if grant.handed_on}
        for grant in page.grants:
            left = await self.store.apps.remembered(grant.client)
            words = await api_words(self.store.apis, grant.scopes)
            app = left if isinstance(left, Registration) else None
            tree = helpers_of(trees, grant.client, named, helpers, page.number)
            known = SimpleNamespace(
                client_id=grant.client,
                shown_id=app.wire_id if app else grant.client,
                origin=app.origin if app else "",
                name=left.name if left else Phrase("An app that no longer exists"),
                homepage=app.homepage if app else "",
                logo=app.logo_path if app else "",
                # An app chooses its name, but not its registered addresses.
                domains=sorted({display_origin(uri) for uri in app.redirect_uris}) if app else [],
                scopes=allowed(grant.scopes, grant.spend_limit, wording, words, budgeted=bool(grant.budgets)),
                connected_at=grant.connected_at,
                last_used_at=grant.last_used_at,
                refresh_days=app.refresh_days(self.store.tokens.refresh_days) if app else 0,
                data_until=grant.data_until,
                app_deleted=grant.app_deleted,
                paused_at=grant.paused_at,
                issuer=self.site.issuers.name_of(grant.issuer) if grant.issuer else "",
                issuer_host=urlsplit(grant.issuer).netloc,
                documents=grant.documents,
                bytes=grant.bytes,
                doing=words_of(grant.doings, wording),
                handed_on=await shown_helpers(self.store.apis, grant, wording, tree.rows),
                tree=tree,
                spending=spending_of(grant, mistyped, self.site.models),
            )
            (revoked if grant.data_until else apps).append(known)
        wrong = any(app.spending and app.spending.wrong for app in apps)
        if mistyped and not wrong:
            raise mistyped.refusal  # the page has no field for it
        self.render(
            "account/apps.html",
            title=Phrase("Connected apps"),
            signed_in=page.profile,
            apps=apps,
            revoked=revoked,
            wrong=wrong,
            notice=self.notice(NOTICES),
            number=page.number,
            pages=page.pages,
        )


def helpers_of(
    trees: Mapping[str, Sequence[Placed]], client: str, named: str, number: int, page: int
) -> ListPart[Placed]:
    """The delegated tokens of an app that a page shows, with links to the others: a part of the list if the app is the
    `named` one; otherwise the app's share of the rows of a page, as part 0, whose link leads to the whole list."""
    tree, at = trees.get(client, ()), f"/account/apps?page={page}&app={quote(client)}"
    share = 1 if named in trees else max(1, ROWS // max(1, len(trees)))
    if named != client and share < min(ROWS, len(tree)):
        return ListPart(tree[:share], 0, 1, len(tree), "helpers", at, f"helpers-{client}")
    return part_of(tree, ROWS, number if named == client else 1, at, "helpers", f"helpers-{client}")


def done_path(number: int, done: str) -> str:
    """The address of a page of connected apps that says what was done."""
    return f"/account/apps?page={number}&{done}" if number > 1 else f"/account/apps?{done}"


def spending_of(grant: Grant, mistyped: Mistyped | None, models: Models) -> SimpleNamespace | None:
    """What an app spent and may spend, in micro-dollars, and its fields; None for an app that may not spend."""
    if "credits:spend" not in grant.scopes or grant.data_until:
        return None
    if mistyped and mistyped.client != grant.client:
        mistyped = None

    def field(name: str, amount: int | None) -> dict[str, str]:
        if mistyped and mistyped.field == name:
            return {"text": mistyped.text, "error": mistyped.refusal.description}
        return {"text": money_field(amount), "error": ""}

    budgets = [
        SimpleNamespace(
            name=FIELD + budget.type,
            limit=budget.limit,
            used=budget.used,
            share=bar_share(budget.used, budget.limit),
            monthly=budget.period == MONTH,
            models=names_of_models(budget, models),
            ends_at=budget.ends_at,
            **field(FIELD + budget.type, budget.limit),
        )
        for budget in grant.budgets
    ]
    limit = SimpleNamespace(spent=grant.spent, limit=grant.spend_limit, **field(LIMIT, grant.spend_limit))
    limit.budgets = budgets
    limit.wrong = bool(limit.error) or any(budget.error for budget in budgets)
    return limit


class AppsHandler(AppsPage):
    """The page of connected apps."""

    async def get(self) -> None:
        """Shows the page that `page` names, by default the first."""
        await self.show(self.page_asked())


class SpendLimitHandler(AppsPage, GuardedPage):
    """The monthly spending limit of an app, and the amounts of its budgets."""

    async def post(self, client_id: str) -> None:
        """Sets the limit, or removes it if the field is empty, and the amounts of budgets. Shows an error in the field
        for a wrong amount."""
        self.check_same_origin()
        session, params = self.require_session(), self.body()
        number = page_number(params.get("page") or "")
        budgets, field, limit = {}, LIMIT, None
        try:
            limit = typed_limit(params, LIMIT)
            for kind in BUDGET_TYPES:
                if (field := FIELD + kind) in params.names():
                    budgets[kind] = dollars(params.get(field) or "")
        except Refused as refusal:
            if self.wants_json():
                raise
            self.set_status(400)
            return await self.show(number, Mistyped(client_id, field, params.get(field) or "", refusal))
        allowance = await self.store.credits.set_spend_limit(session, client_id, limit, self.visitor, budgets)
        mails.allowance_grew(self.site, session.user, client_id, allowance, self.visitor)
        self.see_done(done_path(number, "no-limit" if limit is None else "limit"))


class PauseAppHandler(PageHandler):
    """Pauses an app."""

    async def post(self, client_id: str) -> None:
        """Refuses every call of the app for this person from now on. Its tokens stay."""
        self.check_same_origin()
        number = page_number(self.body().get("page") or "") if self.request.body else 1
        await self.store.grants.pause(self.require_session(), client_id, self.visitor)
        self.see_done(done_path(number, "paused"))


class ResumeAppHandler(PageHandler):
    """Resumes a paused app."""

    async def post(self, client_id: str) -> None:
        """Lets the app make calls again."""
        self.check_same_origin()
        number = page_number(self.body().get("page") or "") if self.request.body else 1
        await self.store.grants.resume(self.require_session(), client_id, self.visitor)
        self.see_done(done_path(number, "resumed"))


class EndHandedOnHandler(PageHandler):
    """Ends a branch of what an app handed on."""

    async def post(self, client_id: str) -> None:
        """Ends a delegated token, the field `helper`, and everything that came from it."""
        self.check_same_origin()
        params = self.body()
        number, helper = page_number(params.get("page") or ""), params.require("helper")
        if not re.fullmatch("[A-Za-z0-9_-]{22}", helper):
            raise Refused("not_found")
        await self.store.grants.end_handed_on(self.require_session(), client_id, helper, self.visitor)
        self.see_done(done_path(number, "ended"))


class RevokeAppHandler(PageHandler):
    """Disconnects an app. SPEC 3.1."""

    async def post(self, client_id: str) -> None:
        """Kills every token of the app for this person at once. The app's data is kept for 30 days."""
        self.check_same_origin()
        # On the first page the form's only field is the XSRF token, which a program may send as a header.
        number = page_number(self.body().get("page") or "") if self.request.body else 1
        keeps_out = self.site.issuers.know(client_id)
        await self.store.grants.revoke(self.require_session(), client_id, self.visitor, keeps_out=keeps_out)
        self.store.app_stats.disconnected(client_id)
        self.see_done(done_path(number, "disconnected"))
