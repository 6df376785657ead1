"""What the pages of the demo app share: a session for each browser, the frame around the content, errors."""

from __future__ import annotations

import asyncio
import hmac
import logging
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from oauth_client import OAuthClient, Tokens, Trouble
from paid_client import Answer, read_balance
from tornado.web import HTTPError, RequestHandler

LOG = logging.getLogger("demo_app")
COOKIE = "demo_app_session"
MOST_SESSIONS = 1000
NOT_CONNECTED = "You are no longer connected."


@dataclass
class Session:
    """One browser, kept in this process; the cookie carries only its id."""

    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    pending: OrderedDict[str, str] = field(default_factory=OrderedDict)  # state -> PKCE verifier
    tokens: Tokens | None = None
    answer: Answer | None = None
    notice: str = ""  # for the next front page
    person: str = ""
    steps: dict[str, str] = field(default_factory=dict)  # of the guided minute: what each did, by its name
    pages: set[asyncio.Event] = field(default_factory=set)  # of those that are open, to look at once
    # Two refreshes at once would send one single-use token twice, which the server must take for theft.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)

    def end(self) -> None:
        """Forgets the tokens, and has open pages say so."""
        self.tokens = self.answer = None
        self.stir()

    def stir(self) -> None:
        """Has open pages look at once whether the access has ended."""
        for page in self.pages:
            page.set()


class Page(RequestHandler):
    """What every page shares: the browser's session and the frame around the content."""

    client: OAuthClient
    sessions: OrderedDict[str, Session]

    def initialize(self, client: OAuthClient, sessions: OrderedDict[str, Session]) -> None:
        self.client, self.sessions = client, sessions

    def set_default_headers(self) -> None:
        self.nonce = secrets.token_urlsafe(16)
        own = f"style-src 'nonce-{self.nonce}'; script-src 'nonce-{self.nonce}'; connect-src 'self'"
        others = f"img-src {self.settings['origin']}; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        self.set_header("Content-Security-Policy", f"default-src 'none'; {own}; {others}")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")

    def get_template_namespace(self) -> dict[str, Any]:
        return super().get_template_namespace() | {"nonce": self.nonce}

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None))[1]
        trouble = error if isinstance(error, Trouble) else Trouble("Something went wrong here.")
        self.render("error.html", message=trouble.message, typed=trouble.typed)

    def log_exception(self, typ: Any, value: BaseException | None, tb: Any) -> None:
        """Without the address of the request: the callback's carries a code and a state."""
        if not isinstance(value, HTTPError):
            LOG.error("failed at %s", self.request.path, exc_info=value)

    def session(self) -> Session | None:
        return self.sessions.get(self.get_cookie(COOKIE, "") or "")

    def start_session(self, session: Session) -> None:
        """Put `session` under a new id (an id from before the sign-in must not be worth anything after it)."""
        self.sessions.pop(self.get_cookie(COOKIE, "") or "", None)
        name = secrets.token_urlsafe(32)
        self.sessions[name] = session
        while len(self.sessions) > MOST_SESSIONS:
            self.sessions.popitem(last=False)
        self.set_cookie(COOKIE, name, httponly=True, samesite="Lax", path="/")

    def checked_session(self) -> Session:
        """The session of a form that our own page made. Raises Trouble for any other."""
        session = self.session()
        sent = self.get_body_argument("form_token", "")
        if session is None or not hmac.compare_digest(session.form_token.encode(), sent.encode()):
            raise Trouble("This form is out of date. Go back and try again.", 403)
        return session

    async def live_tokens(self, session: Session) -> Tokens | None:
        """The session's tokens, refreshed if need be; the caller holds the lock. Raises Trouble."""
        if session.tokens and session.tokens.expires_at <= time.time():
            session.tokens = await self.client.refresh(session.tokens)
        return session.tokens

    def ended(self, session: Session, trouble: Trouble) -> Trouble:
        """What to tell the person of a call with the tokens; they go where the server no longer takes them."""
        if trouble.code not in ("invalid_token", "invalid_grant"):
            return trouble
        session.end()
        return Trouble("You are no longer connected: Latchkey has ended this app’s access.", 401)

    async def balance(self, tokens: Tokens) -> str:
        """What the person can spend, where the app may know it; a page is worth showing without it. Raises Trouble
        where the access has ended."""
        if not tokens.may("credits:read"):
            return ""
        try:
            return await read_balance(self.client, tokens)
        except Trouble as trouble:
            if trouble.code == "invalid_token":
                raise
            return trouble.message
