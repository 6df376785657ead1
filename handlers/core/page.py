"""The base class of pages: templates, sessions, security headers, error pages."""

from __future__ import annotations

import re
from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing, suppress
from functools import lru_cache
from typing import Any, NamedTuple, cast
from urllib.parse import quote, urlsplit

from tornado.iostream import StreamClosedError

from handlers.core.base import DEVICE_COOKIE
from handlers.core.errors import CATALOGUE
from handlers.core.lists.paging import page_number
from handlers.core.params import MISSING, once, parse_pairs
from handlers.core.words.languages import Language
from handlers.core.words.worded import ZONE_COOKIE, WordedPage
from runtime.http.tornado_private import answer_fields, put_fields
from store.accounts.signin.devices import Device
from store.accounts.signin.sessions import Session
from store.apps.redirect_uris import form_action_source
from store.crypto.passwords import check_password
from store.errors import StoreUnavailable
from store.lifetimes import DEVICE, MINUTE
from store.phrases import Phrase, plural
from store.refused import Refused, SignedOut
from store.results import Profile

DONE_COOKIE = "done"
_PLAIN_PATH = re.compile(r"/(?!/)[!-\[\]-~]*")  # printable ASCII but the backslash


class Onward(NamedTuple):
    """A link to the next page, with its text."""

    href: str
    label: str


ACCOUNT = Onward("/account", Phrase("Go to your account"))


def safe_next(target: str | None) -> str:
    """A path of this origin to go on to, or "/" if the target could lead elsewhere."""
    if target and len(target) <= 16_000 and _PLAIN_PATH.fullmatch(target) and not urlsplit(target).netloc:
        return target
    return "/"


def next_query(target: str) -> str:
    """The query that takes a target along to another page; empty for the front page."""
    return f"?next={quote(target, safe='')}" if target != "/" else ""


class PageHandler(WordedPage):
    """A page. Its forms carry an XSRF token, and it loads nothing from elsewhere. `uses_scripts`: it has scripts of
    this server, but also works without them."""

    uses_scripts = False
    came_from = "/account"
    """The target after sign-in of a person who sent a form while signed out."""
    onward: Onward | None = None
    """The next step on this page's error page, if that is not the account."""
    sign_out_to = ""
    """A target that another account must open. The error page offers to sign out and go there."""

    def set_default_headers(self) -> None:
        """RFC 9700 4.16 and the browsers' own protections: no framing, no foreign content, no referrer to other
        sites."""
        super().set_default_headers()
        put_fields(answer_fields(self), _PAGE_FIELDS)
        self.allow_form_to()

    def allow_form_to(self, redirect_uri: str | None = None) -> None:
        """Sets the Content-Security-Policy. Chromium checks every redirect after a form against `form-action`, even
        redirects of the app's own server. So the policy names the validated scheme of a native app. A web app may
        redirect anywhere, so its policy has no `form-action`."""
        source = form_action_source(redirect_uri) if redirect_uri else ""
        put_fields(answer_fields(self), {"Content-Security-Policy": _content_policy(self.uses_scripts, source)})

    def allow_form_to_page(self, origin: str) -> None:
        """Sets the Content-Security-Policy of a page with a form whose answer leads on to this origin, a setting."""
        put_fields(answer_fields(self), {"Content-Security-Policy": _content_policy(self.uses_scripts, origin)})

    def get_template_namespace(self) -> dict[str, Any]:
        """The names that every template can use."""
        brand = self.site.brand
        known: dict[str, Any] = {"signed_in": None, "session_here": False, "onward": None, "sign_out_to": ""}
        known["zone_cookie"] = self.site.cookie(ZONE_COOKIE) if self.uses_scripts else ""
        known["demo"] = self.site.demo
        known["demo_inbox"] = self.site.demo_inbox is not None
        known |= {"our_brand": brand, "product": brand.name, "title": brand.name}
        return {**super().get_template_namespace(), **known}

    def render_string(self, template_name: str, **kwargs: Any) -> bytes:
        """The page, from the brand's template or ours, in the language of its reader. Tornado's method would keep one
        loader for all servers."""
        template = self.site.templates.pages.load(template_name)
        words = self.speak_to(kwargs.get("signed_in"))
        page = template.generate(**{**self.get_template_namespace(), **words, **kwargs})
        return cast(Language, self.locale).closed_up(page)

    async def check_new_password(self, password: str, email: str, name: str) -> None:
        """Raises ValueError, with a reason for people, if this person may not set the password."""
        check_password(password, email, name)
        await self.site.breaches.check(password)

    def page_asked(self, name: str = "page") -> int:
        """The number of the page that the address asks for; 1 without one. Raises Refused("invalid_request")."""
        return page_number(once(parse_pairs(self.request.query)).get(name) or "", name)

    def session(self) -> Session | None:
        """The session in the cookie, unchecked: only the store knows whether it is live."""
        cookie = self.get_cookie(self.site.cookie("session"))
        return self.store.sessions.open(cookie) if cookie else None

    def require_session(self) -> Session:
        """The session in the cookie. Raises SignedOut."""
        session = self.session()
        if session is None:
            raise SignedOut
        return session

    async def profile(self) -> Profile | None:
        """The person who is signed in, or None."""
        session = self.session()
        try:
            return await self.store.sessions.profile(session) if session else None
        except SignedOut:
            return None

    async def profile_if_known(self) -> Profile | None:
        """Like `profile`, for pages that also work while the store is away."""
        with suppress(StoreUnavailable):
            return await self.profile()
        return None

    def write_session(self, cookie: str | None) -> None:
        """Sets or clears the session cookie, and replaces the XSRF token. The browser drops the cookie of a session
        that is not kept when it closes."""
        flags: dict[str, Any] = {"path": "/", "httponly": True, "samesite": "Lax", "secure": self.site.secure}
        if cookie is None:
            self.clear_cookie(self.site.cookie("session"), **flags)
        else:
            session = self.store.sessions.open(cookie)
            days = self.site.session_lifetime / 86400 if session and session.kept else None
            self.set_cookie(self.site.cookie("session"), cookie, expires_days=days, **flags)
        self.clear_cookie(self.site.cookie("xsrf"), **flags)

    def device(self) -> Device | None:
        """The known device that this browser claims to be, unchecked: only the store knows whether it is still
        known."""
        return self.store.devices.open(self.read_cookie(DEVICE_COOKIE))

    async def keep_device(self, user: str) -> None:
        """Keeps this browser known after a change that made all the person's devices unknown."""
        with suppress(StoreUnavailable, SignedOut):  # the change itself is done
            self.write_cookie(DEVICE_COOKIE, await self.store.devices.renew(self.device(), user), DEVICE)

    def see_other(self, url: str) -> None:
        """RFC 9700 4.12: a redirect after a POST is 303."""
        if not (url.isascii() and url.isprintable()):
            return self.redirect(url, status=303)  # checks and encodes it
        self.set_status(303)
        self.finish_at_once(b"", {"Location": url, "Content-Length": "0"})

    def see_done(self, path: str) -> None:
        """Like `see_other`, to a page of ours that says what was done. The last parameter of `path` is the key of the
        notice."""
        self.write_cookie(DONE_COOKIE, _last_parameter(path.partition("?")[2]), MINUTE)
        self.see_other(path)

    def notice(self, words: Mapping[str, str]) -> str | None:
        """The text of what was just done, shown once. An address alone shows nothing, because anybody can send people a
        link."""
        word = self.read_cookie(DONE_COOKIE)
        if not word or word != _last_parameter(self.request.query):
            return None
        self.write_cookie(DONE_COOKIE, None)
        return words.get(word)

    def to_sign_in(self, target: str) -> None:
        """Redirects to the sign-in page, which leads on to `target`."""
        self.see_other(f"/signin?next={quote(target, safe='')}")

    def to_sign_up(self, target: str) -> None:
        """Redirects to the page that makes an account, which leads on to `target`."""
        self.see_other(f"/signup?next={quote(target, safe='')}")

    def check_same_origin(self) -> None:
        """Refuses a form that another origin's page sent. Raises Refused("access_denied")."""
        origin = self.request.headers.get("Origin")
        if origin is not None and origin not in (self.site.base_url, f"{self.request.protocol}://{self.request.host}"):
            self.store.security.note("form_refused", detail=f"{self.policy.route} origin")
            raise Refused("access_denied", Phrase("This form was sent by another site."))

    def wants_json(self) -> bool:
        """Whether the client prefers JSON to a page."""
        accept = self.request.headers.get("Accept", "")
        sent = self.request.headers.get("Content-Type", "").startswith("application/json")
        return "text/html" not in accept and ("application/json" in accept or sent)

    def write_refusal(self, refusal: Refused) -> None:
        """Writes the error as a page, or as JSON if requested. Sends people who are signed out to sign in."""
        if self.wants_json():
            super().write_refusal(refusal)
        elif refusal.code == "login_required":
            target = self.request.uri if self.request.method in ("GET", "HEAD") else self.came_from
            self.to_sign_in(safe_next(target))
        else:
            entry = CATALOGUE[refusal.code]
            heading = _HEADINGS.get(entry.status, _FAILED)
            # Don't look the session up: this page must work while the store is away.
            here = self.session() is not None
            self.render(
                "base/message.html",
                title=heading,
                heading=heading,
                text=self.words_for(refusal),
                status=entry.status,
                session_here=here,
                onward=self.onward or self.way_on(refusal, here),
                sign_out_to=self.sign_out_to,
            )

    def words_for(self, refusal: Refused) -> str:
        """The text of an error page."""
        if refusal.code == "rate_limited" and refusal.retry_after:
            seconds = refusal.retry_after
            if seconds <= 90:
                return plural(
                    "Too many attempts. Try again in %(count)s second.",
                    "Too many attempts. Try again in %(count)s seconds.",
                    seconds,
                )
            return plural(
                "Too many attempts. Try again in %(count)s minute.",
                "Too many attempts. Try again in %(count)s minutes.",
                -(-seconds // 60),
            )
        return self.reason(refusal) or CATALOGUE[refusal.code].description

    def reason(self, refusal: Refused) -> str:
        """The description, for people. An error in a form that the page never made names parameters that the person
        has never seen, so the page says what to do instead."""
        told = refusal.description
        made = type(told) is Phrase and (told.text != MISSING.text or isinstance(told.values["name"], Phrase))
        if made or refusal.code != "invalid_request" or "_xsrf" not in self.request.body_arguments:
            return told
        return BROKEN_FORM

    def way_on(self, refusal: Refused, here: bool) -> Onward:
        """The next step that an error page offers. `here`: somebody is signed in."""
        if refusal.code in ("rate_limited", "temporarily_unavailable") and self.request.method == "GET":
            return Onward(safe_next(self.request.uri), Phrase("Try again"))
        return ACCOUNT if here else Onward("/", Phrase("Go to the home page"))


class DownloadPage(PageHandler):
    """A page that may answer with a file. The size of the file does not affect memory use."""

    async def send_file(self, name: str, media_type: str, pieces: AsyncGenerator[bytes, None]) -> None:
        """Sends the pieces as a file of this name. Each piece is made once the previous one is on its way. An error
        before the first piece gets an error page. After that the connection is cut, so that nobody takes half a
        download for a whole one. Raises SignedOut, and Refused if too many downloads are in progress."""
        try:
            with self.site.downloads.place(self.require_session().user):
                await self.send_pieces(name, media_type, pieces)
            await self.finish()
        except StreamClosedError:
            self.finish()
        except BaseException:
            if self.head_sent:
                cast(Any, self.request.connection).stream.close()
            raise

    async def send_pieces(self, name: str, media_type: str, pieces: AsyncGenerator[bytes, None]) -> None:
        """Sends all pieces, but does not end the answer."""
        async with aclosing(pieces):
            async for piece in pieces:
                if not self.head_sent:
                    self.step_aside()
                    self.set_header("Content-Type", media_type)
                    self.set_header("Content-Disposition", f'attachment; filename="{name}"')
                self.streamed += len(piece)
                self.write(piece)
                await self.flush()


def _last_parameter(query: str) -> str:
    return query.rpartition("&")[2]


@lru_cache(maxsize=256)
def _content_policy(uses_scripts: bool, source: str | None) -> str:
    """The policy of a page whose forms go to this origin and to `source`, or anywhere without one."""
    forms = "" if source is None else f"form-action 'self' {source}".rstrip() + "; "
    scripts = "script-src 'self'; connect-src 'self'; " if uses_scripts else ""
    return (
        f"default-src 'none'; {scripts}style-src 'self'; img-src 'self' data:; "
        f"{forms}base-uri 'none'; frame-ancestors 'none'"
    )


_PAGE_FIELDS = {
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
BROKEN_FORM = Phrase("Part of the form is missing or malformed. Reload the page, and send the form again.")
_FAILED = Phrase("That didn’t work")
_HEADINGS = {
    403: Phrase("Not allowed"),
    404: Phrase("Not found"),
    413: Phrase("Too large"),
    429: Phrase("Too many requests"),
    500: Phrase("Something went wrong"),
    503: Phrase("Not available right now"),
}
