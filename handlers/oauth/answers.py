"""Authorization responses: how an answer reaches the app. RFC 6749 4.1.2, RFC 9207, Form Post Response Mode."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

from handlers.core.page import PageHandler
from store.apps.lookalikes import mistaken_for
from store.apps.redirect_uris import display_origin, with_params
from store.apps.registration import Registration
from store.phrases import Phrase


class Mark(NamedTuple):
    """Who vouches for an app: the operator, or a domain that the app has proven; empty if nobody does.

    `brand` is a well-known brand that the name resembles. A domain never vouches for such a name, because whoever
    registers `evil.example` can prove that domain. So a mark with a brand has no domain.

    `origin`: how the app registered itself, or empty; `host`: that of its metadata document, which says of itself who
    it is.
    """

    by_operator: bool
    domain: str
    brand: str
    origin: str = ""
    host: str = ""


class WayBack(NamedTuple):
    """How a page offers to go back to the app with an answer: a link to this address, or with `fields` a form to it."""

    address: str
    fields: dict[str, str]


class AnsweringPage(PageHandler):
    """A page that sends people back to the app."""

    def send_back(
        self, app: Registration, redirect_uri: str, answer: dict[str, str], state: str | None, mode: str = ""
    ) -> None:
        """Brings the browser to the app with the answer, its `state`, and `iss` (RFC 9207). `mode`: `form_post` for a
        form that posts itself, otherwise a redirect."""
        if mode != "form_post":
            return self.see_other(answer_url(app, self.site.base_url, redirect_uri, answer, state))
        self.uses_scripts = True
        self.allow_form_to(redirect_uri)
        self.render(
            "oauth/form_post.html",
            title=Phrase("Back to %(app)s", app=app.name),
            app=app,
            app_domain=display_origin(redirect_uri),
            action=redirect_uri,
            fields=answer_fields(app, self.site.base_url, answer, state),
        )

    def way_back(
        self, app: Registration, redirect_uri: str, answer: dict[str, str], state: str | None, mode: str
    ) -> WayBack:
        """What `send_back` does, for a page on which the person decides to go. Allows the page its form."""
        if mode != "form_post":
            return WayBack(answer_url(app, self.site.base_url, redirect_uri, answer, state), {})
        self.allow_form_to(redirect_uri)
        return WayBack(redirect_uri, answer_fields(app, self.site.base_url, answer, state))


def answer_fields(app: Registration, issuer: str, answer: dict[str, str], state: str | None) -> dict[str, str]:
    """The parameters of an authorization response."""
    fields = {name: value for name, value in answer.items() if value}
    if state:
        fields["state"] = state
    if app.iss_in_response:
        fields["iss"] = issuer
    return fields


def answer_url(app: Registration, issuer: str, redirect_uri: str, answer: dict[str, str], state: str | None) -> str:
    """The address that brings an authorization response to the app."""
    fields = answer_fields(app, issuer, answer, state)
    named = fields.pop("iss", "")
    url = with_params(redirect_uri, fields)
    # There is a code or an error before it. It is the same each time, and quoting it takes as long as all the rest.
    return f"{url}&{_quoted_issuer(named)}" if named else url


@lru_cache(maxsize=8)
def _quoted_issuer(issuer: str) -> str:
    return urlencode({"iss": issuer})


def mark_of(app: Registration, redirect_uri: str, own: str) -> Mark:
    """The mark of an app that uses this redirect URI, empty for a device. `own`: the server's name, which operators'
    apps may have."""
    brand = mistaken_for(app.name, "" if app.from_operator else own) or ""
    host = urlsplit(app.document_url).netloc
    return Mark(
        app.verified, "" if brand or not redirect_uri else app.proven_for(redirect_uri), brand, app.origin, host
    )
