"""The consent page: what an app asks for, in words. SPEC 4.1."""

from __future__ import annotations

from types import SimpleNamespace
from typing import NamedTuple
from urllib.parse import urlsplit

from handlers.core.amounts import DEFAULT_SPEND_LIMIT
from handlers.core.format import money_field
from handlers.core.scopes import SCOPE_WORDS, api_words, asked_words
from handlers.oauth.answers import AnsweringPage, mark_of
from store.apps.api_record import ApiRegistration
from store.apps.redirect_uris import display_origin
from store.apps.registration import Registration
from store.oauth.authorizations import ConsentRequest, Pending
from store.oauth.resources import is_own, plain_names
from store.phrases import Phrase


class Again(NamedTuple):
    """Why the page is shown again, with no box ticked, and the amount that the person typed."""

    error: str
    amount: str


class ConsentPage(AnsweringPage):
    """Shared by the arrival of a request, and by a decision that the person has to make again."""

    async def show_consent(
        self, app: Registration, asked: ConsentRequest, pending: Pending, target: str, again: Again | None = None
    ) -> None:
        """The consent page. `target`: the address of the request."""
        self.uses_scripts = True
        self.allow_form_to(asked.redirect_uri)
        kept = [scope for scope in pending.granted if scope not in asked.scopes]
        own = {scope: asked_words(scope, pending.profile.groups) for scope in SCOPE_WORDS}
        words = {**own, **await api_words(self.store.apis, [*asked.scopes, *kept])}
        api = await self.store.apis.active(asked.api) if asked.api else None
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
            app_domain=display_origin(asked.redirect_uri),
            mark=mark_of(app, asked.redirect_uri, self.site.brand.name),
            signs_in="openid" in asked.scopes,
            asked=[(None, [box for box in boxes if box.own]), (_named(api), [box for box in boxes if not box.own])],
            kept=[of.whole for scope, of in words.items() if scope in kept],
            amount=again.amount if again else money_field(_offered_limit(pending)),
            error=again.error if again else "",
            next=target,
        )


def _named(api: ApiRegistration | None) -> SimpleNamespace | None:
    """An API as people see it: its name, and the host of its identifier, which it did not choose freely."""
    return SimpleNamespace(name=api.name, host=urlsplit(api.identifier).netloc) if api else None


def _offered_limit(pending: Pending) -> int | None:
    """The page's default for the monthly limit, in micro-dollars: the limit of an earlier consent, if there was one."""
    if pending.spend_limit is None and "credits:spend" not in pending.granted:
        return DEFAULT_SPEND_LIMIT
    return pending.spend_limit
