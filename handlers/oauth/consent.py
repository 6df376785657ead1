"""The consent page: what an app asks for, in words. SPEC 4.1, RFC 8628 3.3."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import urlsplit

from handlers.core import mails
from handlers.core.amounts import DEFAULT_SPEND_LIMIT
from handlers.core.client_address import window_address
from handlers.core.devices import device_phrase
from handlers.core.format import money_field
from handlers.core.scopes import SCOPE_WORDS, WITHIN_A_BUDGET, api_words, asked_words
from handlers.oauth.answers import AnsweringPage, mark_of
from handlers.oauth.consent_budgets import LASTS, LENGTHS, budget_fields
from store.apps.api_record import ApiRegistration
from store.apps.redirect_uris import display_origin
from store.apps.registration import Registration
from store.lifetimes import MINUTE
from store.oauth.authorizations import ConsentRequest, Pending
from store.oauth.budgets import SPEND
from store.oauth.device_requests import DeviceRequest
from store.oauth.resources import MCP, is_own, plain_names
from store.phrases import Phrase, plural
from store.results import Profile


class Again(NamedTuple):
    """Why the page is shown again, with no box ticked, the amount that the person typed, and what they typed of
    budgets."""

    error: str
    amount: str
    budgets: Mapping[str, str] = {}


class AskingDevice(NamedTuple):
    """A device that asks: its request, the code that it shows (empty if unknown), and the address of the person."""

    request: DeviceRequest
    code: str
    address: str

    def shown(self) -> SimpleNamespace:
        """What the page says of it. The device chose its name itself, so the name proves nothing."""
        asked = self.request
        near = window_address(self.address) == window_address(asked.address)
        minutes = asked.age // MINUTE
        words = plural("%(count)s minute ago", "%(count)s minutes ago", minutes) if minutes else Phrase("Just now")
        return SimpleNamespace(
            code=self.code, name=device_phrase(asked.agent), address=asked.address, near=near, asked=words
        )


class ConsentPage(AnsweringPage):
    """Shared by the arrival of a request, and by a decision that the person has to make again."""

    async def show_consent(
        self,
        app: Registration,
        asked: ConsentRequest,
        pending: Pending,
        target: str,
        again: Again | None = None,
        device: AskingDevice | None = None,
    ) -> None:
        """The consent page. `target`: the address of the request; `device`: the device that asks, which has no redirect
        URI."""
        self.uses_scripts = True
        self.allow_form_to(None if device else asked.redirect_uri)
        kept = [scope for scope in pending.granted if scope not in asked.scopes]
        own = {scope: asked_words(scope, pending.profile.groups) for scope in SCOPE_WORDS}
        if pending.budgets:
            own[SPEND] = own[SPEND]._replace(detail=WITHIN_A_BUDGET)
        words = {**own, **await api_words(self.store.apis, [*asked.scopes, *kept])}
        api = await self.store.apis.active(asked.api) if asked.api not in ("", MCP) else None
        boxes = [
            SimpleNamespace(
                name=plain_names([scope])[0], own=is_own(scope), before=scope in pending.granted, words=words[scope]
            )
            for scope in asked.scopes
            if scope != "openid" and scope in words
        ]
        self.render(
            "oauth/consent.html",
            title=Phrase("Allow %(app)s?", app=app.name),
            signed_in=pending.profile,
            request_id=pending.request_id,
            app=app,
            app_domain="" if device else display_origin(asked.redirect_uri),
            device=device.shown() if device else None,
            mark=mark_of(app, "" if device else asked.redirect_uri, self.site.brand.name),
            paused=pending.paused,
            budgeted=pending.budgeted,
            signs_in="openid" in asked.scopes,
            asked=[(None, [box for box in boxes if box.own]), (_named(api), [box for box in boxes if not box.own])],
            kept=[of.whole for scope, of in words.items() if scope in kept],
            amount=again.amount if again else money_field(_offered_limit(pending)),
            budgets=budget_fields(pending.budgets, self.site.models, again.budgets if again else {}),
            lengths=LENGTHS,
            chosen_length=again.budgets.get(LASTS, "0") if again else "0",
            error=again.error if again else "",
            next=target,
        )

    async def confirm_first(self, app: Registration, profile: Profile, target: str) -> None:
        """Asks for a confirmed address first: no app sees one that nobody confirmed. The mail's link leads to
        `target`."""
        asker, wording = self.counted_address, self.wording(profile.preferences)
        await mails.confirmation(self.site, profile.user, profile.email, asker, target, again=False, wording=wording)
        self.render(
            "oauth/confirm_first.html", title=Phrase("Confirm your address"), signed_in=profile, app=app, next=target
        )


def _named(api: ApiRegistration | None) -> SimpleNamespace | None:
    """An API as people see it: its name, and the host of its identifier, which it did not choose freely."""
    return SimpleNamespace(name=api.name, host=urlsplit(api.identifier).netloc) if api else None


def _offered_limit(pending: Pending) -> int | None:
    """The page's default for the monthly limit, in micro-dollars: the limit of an earlier consent, if there was one."""
    if pending.spend_limit is None and "credits:spend" not in pending.granted:
        return DEFAULT_SPEND_LIMIT
    return pending.spend_limit
