"""The base of what people see: templates, sessions, security headers, errors as pages."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import quote, urlsplit

from handlers.base import BaseHandler
from handlers.errors import CATALOGUE
from store.redirect_uris import form_action_source
from store.refused import Refused, SignedOut
from store.results import Profile
from store.sessions import Session

PRODUCT = "Latchkey"
_PLAIN_PATH = re.compile(r"/(?!/)[!-\[\]-~]*")  # printable ASCII but the backslash


def safe_next(target: str | None) -> str:
    """A path of this origin to go on to, or "/" for anything that could lead elsewhere."""
    if target and len(target) <= 16_000 and _PLAIN_PATH.fullmatch(target) and not urlsplit(target).netloc:
        return target
    return "/"


class PageHandler(BaseHandler):
    """A page. Its forms carry an XSRF token, and it loads nothing from elsewhere. `uses_scripts`: it has a script of
    this server, without which it works as well."""

    uses_scripts = False

    def set_default_headers(self) -> None:
        """RFC 9700 4.16 and what browsers offer beside: no framing, no foreign content, no referrer to others."""
        super().set_default_headers()
        self.set_header("X-Frame-Options", "DENY")
        self.set_header("Referrer-Policy", "same-origin")
        self.set_header("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
        self.allow_form_to()
        if self.site.secure:
            self.set_header("Strict-Transport-Security", "max-age=31536000")

    def allow_form_to(self, redirect_uri: str | None = None) -> None:
        """The Content-Security-Policy. Browsers hold the redirects that follow a form against `form-action`, so the
        app's origin, once validated, is named there."""
        also = f" {form_action_source(redirect_uri)}" if redirect_uri else ""
        scripts = "script-src 'self'; connect-src 'self'; " if self.uses_scripts else ""
        self.set_header(
            "Content-Security-Policy",
            f"default-src 'none'; {scripts}style-src 'self'; img-src 'self' data:; "
            f"form-action 'self'{also}; base-uri 'none'; frame-ancestors 'none'",
        )

    def get_template_namespace(self) -> dict[str, Any]:
        """What every template may use."""
        return {**super().get_template_namespace(), "product": PRODUCT, "signed_in": None, "title": PRODUCT}

    def session(self) -> Session | None:
        """The session the cookie names, unread: whether it is alive only the store can say."""
        cookie = self.get_cookie(self.site.cookie("session"))
        return self.store.sessions.open(cookie) if cookie else None

    def require_session(self) -> Session:
        """The session the cookie names. Raises SignedOut."""
        session = self.session()
        if session is None:
            raise SignedOut
        return session

    async def profile(self) -> Profile | None:
        """Who is signed in, where that may be nobody."""
        session = self.session()
        try:
            return await self.store.sessions.profile(session) if session else None
        except SignedOut:
            return None

    def write_session(self, cookie: str | None) -> None:
        """Sets the session cookie, or clears it. The XSRF token of before does not outlive the change."""
        flags: dict[str, Any] = {"path": "/", "httponly": True, "samesite": "Lax", "secure": self.site.secure}
        if cookie is None:
            self.clear_cookie(self.site.cookie("session"), **flags)
        else:
            self.set_cookie(
                self.site.cookie("session"), cookie, expires_days=self.site.session_lifetime / 86400, **flags
            )
        self.clear_cookie(self.site.cookie("xsrf"), **flags)

    def read_cookie(self, name: str) -> str | None:
        """One of our cookies, by its short name."""
        return self.get_cookie(self.site.cookie(name))

    def write_cookie(self, name: str, value: str | None, lasts: int = 0) -> None:
        """Sets a short-lived cookie of ours for `lasts` ms, or clears it."""
        flags: dict[str, Any] = {"path": "/", "httponly": True, "samesite": "Lax", "secure": self.site.secure}
        if value is None:
            self.clear_cookie(self.site.cookie(name), **flags)
        else:
            self.set_cookie(self.site.cookie(name), value, max_age=lasts // 1000, **flags)

    def see_other(self, url: str) -> None:
        """RFC 9700 4.12: a redirect after a POST is 303."""
        self.redirect(url, status=303)

    def to_sign_in(self, target: str) -> None:
        """Sends the browser to the sign-in page, and on to `target` from there."""
        self.see_other(f"/signin?next={quote(target, safe='')}")

    def check_same_origin(self) -> None:
        """Refuses a form that a page of another origin sent. Raises Refused("access_denied")."""
        origin = self.request.headers.get("Origin")
        if origin is not None and origin not in (self.site.base_url, f"{self.request.protocol}://{self.request.host}"):
            raise Refused("access_denied", "This form was sent by another site.")

    def wants_json(self) -> bool:
        """Whether the client prefers JSON to a page."""
        accept = self.request.headers.get("Accept", "")
        sent = self.request.headers.get("Content-Type", "").startswith("application/json")
        return "text/html" not in accept and ("application/json" in accept or sent)

    def write_refusal(self, refusal: Refused) -> None:
        """The error as a page, or as JSON where that was asked for. Who is signed out is sent to sign in."""
        if self.wants_json():
            super().write_refusal(refusal)
        elif refusal.code == "login_required":
            target = self.request.uri if self.request.method in ("GET", "HEAD") else "/account"
            self.to_sign_in(safe_next(target))
        else:
            entry = CATALOGUE[refusal.code]
            heading = _HEADINGS.get(entry.status, "That did not work")
            text = refusal.description or entry.description
            self.render("message.html", title=heading, heading=heading, text=text, status=entry.status)


_HEADINGS = {
    403: "Not allowed",
    404: "Not found",
    413: "Too large",
    429: "Too many requests",
    500: "Something went wrong",
    503: "Not available right now",
}
