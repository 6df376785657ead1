"""A third-party app that signs people in with Latchkey, as any developer would write it: see README.md beside it.

It speaks HTTP to the server and shares no code with it. Its redirect URI is http://HOST:PORT/callback.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hmac
import logging
import os
import secrets
import time
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any

from oauth_client import OAuthClient, Tokens, Trouble
from paid_client import Answer, ask, read_balance
from tornado.httpserver import HTTPServer
from tornado.ioloop import PeriodicCallback
from tornado.netutil import bind_sockets
from tornado.web import Application, HTTPError, RequestHandler

LOG = logging.getLogger("demo_app")
COOKIE = "demo_app_session"
MOST_SESSIONS = 1000
MOST_PENDING = 5
LONGEST_QUESTION = 500


@dataclass
class Session:
    """One browser, kept in this process; the cookie carries only its id."""

    form_token: str = field(default_factory=lambda: secrets.token_urlsafe(32))
    pending: OrderedDict[str, str] = field(default_factory=OrderedDict)  # state -> PKCE verifier
    tokens: Tokens | None = None
    answer: Answer | None = None
    # Two refreshes at once would send one single-use token twice, which the server must take for theft.
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)


class Page(RequestHandler):
    """What every page shares: the browser's session and the frame around the content."""

    client: OAuthClient
    sessions: OrderedDict[str, Session]

    def initialize(self, client: OAuthClient, sessions: OrderedDict[str, Session]) -> None:
        self.client, self.sessions = client, sessions

    def set_default_headers(self) -> None:
        self.nonce = secrets.token_urlsafe(16)
        style, others = f"style-src 'nonce-{self.nonce}'", "form-action 'self'; base-uri 'none'; frame-ancestors 'none'"
        self.set_header("Content-Security-Policy", f"default-src 'none'; {style}; {others}")
        self.set_header("Cache-Control", "no-store")
        self.set_header("Referrer-Policy", "no-referrer")
        self.set_header("X-Content-Type-Options", "nosniff")

    def get_template_namespace(self) -> dict[str, Any]:
        return super().get_template_namespace() | {"nonce": self.nonce}

    def write_error(self, status_code: int, **kwargs: Any) -> None:
        error = kwargs.get("exc_info", (None, None))[1]
        self.render("error.html", message=error.message if isinstance(error, Trouble) else "Something went wrong here.")

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
        session.tokens = session.answer = None
        return Trouble("You are no longer connected: Latchkey has ended this app’s access.", 401)


class Home(Page):
    """The front page: an invitation to sign in, or the person's name and credits as the server has them now."""

    async def get(self) -> None:
        session = self.session() or Session()
        person, balance = {}, ""
        async with session.lock:
            try:
                tokens = await self.live_tokens(session)
                if tokens:
                    person = await self.client.person(tokens)
                    balance = await self.balance(tokens)
            except Trouble as trouble:
                raise self.ended(session, trouble) from None
        self.render(
            "home.html",
            tokens=tokens,
            person=person,
            balance=balance,
            expiry=time.strftime("%H:%M:%S UTC", time.gmtime(tokens.expires_at)) if tokens else "",
            answer=session.answer,
            longest=LONGEST_QUESTION,
            form_token=session.form_token,
        )

    async def balance(self, tokens: Tokens) -> str:
        """What the person can spend, where the app may know it; the page is worth showing without it."""
        if "credits:read" not in tokens.scope.split():
            return ""
        try:
            return await read_balance(self.client, tokens)
        except Trouble as trouble:
            if trouble.code == "invalid_token":
                raise
            return trouble.message


class Ask(Page):
    """Asks a model something, which the person pays. What came of it stands on the front page: reloading that asks,
    and costs, nothing."""

    async def post(self) -> None:
        session = self.checked_session()
        question = self.get_body_argument("question", "").strip()[:LONGEST_QUESTION]
        try:
            async with session.lock:
                tokens = await self.live_tokens(session)
            if tokens and question:
                session.answer = await ask(self.client, tokens, question)
        except Trouble as trouble:
            raise self.ended(session, trouble) from None
        self.redirect("/", status=303)


class Login(Page):
    """Begins a sign-in: remembers a state and a verifier, and sends the browser to the server."""

    async def get(self) -> None:
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        address = await self.client.authorization_url(state, verifier)
        session = self.session()
        if session is None:
            session = Session()
            self.start_session(session)
        session.pending[state] = verifier
        while len(session.pending) > MOST_PENDING:
            session.pending.popitem(last=False)
        self.redirect(address, status=303)


class Callback(Page):
    """Where the browser comes back to, with a code or an error."""

    async def get(self) -> None:
        verifier = self.check_state()
        await self.client.check_issuer(self.get_query_argument("iss", ""))
        error = self.get_query_argument("error", "")
        if error:
            description = self.get_query_argument("error_description", "no description")
            raise Trouble(f"You are not signed in. Latchkey says {error}: {description}")
        tokens = await self.client.exchange(self.get_query_argument("code", ""), verifier)
        self.start_session(Session(tokens=tokens))
        # The code leaves the address bar and the history.
        self.redirect("/", status=303)

    def check_state(self) -> str:
        """The PKCE verifier. RFC 6749 10.12: the answer belongs to a sign-in this browser began, and counts once."""
        session = self.session()
        verifier = session.pending.pop(self.get_query_argument("state", ""), None) if session else None
        if verifier is None:
            raise Trouble("This answer does not belong to a sign-in that you started here. (The state does not match.)")
        return verifier


class Refresh(Page):
    """Trades the refresh token for new tokens."""

    async def post(self) -> None:
        session = self.checked_session()
        async with session.lock:
            if session.tokens:
                try:
                    session.tokens = await self.client.refresh(session.tokens)
                except Trouble as trouble:
                    if trouble.code == "invalid_grant":
                        session.tokens = None
                    raise
        self.redirect("/", status=303)


class Disconnect(Page):
    """Ends both tokens at the server; keeps them if the server does not confirm it, to try again."""

    async def post(self) -> None:
        session = self.checked_session()
        async with session.lock:
            if session.tokens:
                await self.client.revoke(session.tokens)
                session.tokens = session.answer = None
        self.redirect("/", status=303)


def log_path(handler: RequestHandler) -> None:
    """The access log, without query strings for the same reason."""
    LOG.info("%d %s %s", handler.get_status(), handler.request.method, handler.request.path)


def make_app(client: OAuthClient) -> Application:
    """The app's routes."""
    shared = {"client": client, "sessions": OrderedDict()}
    pages = {"/": Home, "/login": Login, "/callback": Callback}
    pages |= {"/ask": Ask, "/refresh": Refresh, "/disconnect": Disconnect}
    templates = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
    routes = [(path, page, shared) for path, page in pages.items()]
    return Application(routes, template_path=templates, log_function=log_path)


def arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="A small third-party app that signs people in with Latchkey.")
    parser.add_argument("--latchkey", required=True, metavar="URL", help="the server's base address")
    parser.add_argument("--client-id", required=True)
    parser.add_argument("--client-secret", help="default: DEMO_CLIENT_SECRET; without either, a public client")
    parser.add_argument("--scopes", default="profile", help="what to ask for, separated by spaces (%(default)s)")
    parser.add_argument("--host", default="localhost")
    parser.add_argument("--port", type=int, default=8090, help="0 picks a free one (%(default)s)")
    parser.add_argument("--exit-with-parent", action="store_true", help="stop when the starting process ends")
    return parser.parse_args()


async def serve(options: argparse.Namespace, parent: int) -> None:
    """Listen until interrupted, or until `parent` (a process id) is no longer the parent."""
    sockets = bind_sockets(options.port, options.host)
    here = f"http://{options.host}:{sockets[0].getsockname()[1]}"
    secret = options.client_secret or os.environ.get("DEMO_CLIENT_SECRET") or None
    client = OAuthClient(options.latchkey, options.client_id, secret, f"{here}/callback", options.scopes)
    HTTPServer(make_app(client)).add_sockets(sockets)
    done = asyncio.Event()
    if options.exit_with_parent:
        PeriodicCallback(lambda: None if os.getppid() == parent else done.set(), 500).start()
    print(f"Demo app listening on {here}", flush=True)
    await done.wait()


def main() -> None:
    parent = os.getppid()
    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    with contextlib.suppress(KeyboardInterrupt):
        asyncio.run(serve(arguments(), parent))


if __name__ == "__main__":
    main()
