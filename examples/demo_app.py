"""A third-party app that signs people in with Latchkey, as any developer would write it: see README.md.

It speaks HTTP to the server and shares no code with it. Its redirect URI is http://HOST:PORT/callback.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import logging
import os
import secrets
import sys
import time
from collections import OrderedDict
from typing import Any

from demo_live import LONGEST_QUESTION, Ask, AskStreamed, Events
from demo_minute import LIMIT, MinuteHelper, MinuteNote, MinuteSpend, limit_wanted, minute_of
from demo_notes import LONGEST_NOTE, AddNote, DeleteNote, EditNote
from demo_pages import LOG, Page, Session
from demo_webhooks import Webhooks, key_of
from notes_client import Notes, read_notes
from oauth_client import OAuthClient, Trouble
from tornado.httpserver import HTTPServer
from tornado.ioloop import PeriodicCallback
from tornado.netutil import bind_sockets
from tornado.web import Application, RequestHandler

MOST_PENDING = 5


class Home(Page):
    """The front page: an invitation to sign in, or the person's name and credits as the server has them now."""

    async def get(self) -> None:
        session = self.session() or Session()
        person, balance, notes = {}, "", Notes()
        notice, session.notice = session.notice, ""
        async with session.lock:
            try:
                tokens = await self.live_tokens(session)
                if tokens:
                    person = await self.client.person(tokens)
                    session.person = str(person.get("sub", ""))
                    balance = await self.balance(tokens)
                    notes = await read_notes(self.client, tokens)
            except Trouble as trouble:
                outcome = self.ended(session, trouble)
                if session.tokens:
                    raise outcome from None
                tokens, notice = None, outcome.message
        self.render(
            "home.html",
            notice=notice,
            tokens=tokens,
            person=person,
            balance=balance,
            notes=notes,
            minute=minute_of(self.client, session),
            picture=self.own_picture(person),
            expiry=time.strftime("%H:%M:%S UTC", time.gmtime(tokens.expires_at)) if tokens else "",
            answer=session.answer,
            longest=LONGEST_QUESTION,
            longest_note=LONGEST_NOTE,
            form_token=session.form_token,
            script=self.settings["script"],
        )

    def own_picture(self, person: dict[str, Any]) -> str:
        """The person's picture, if it is one of the server's own: the page loads pictures from nowhere else."""
        picture = person.get("picture")
        return picture if isinstance(picture, str) and picture.startswith(f"{self.client.origin}/") else ""


class Login(Page):
    """Begins a sign-in: remembers a state and a verifier, and sends the browser to the server. With `limit`, the person
    is asked for a limit on what this site may spend."""

    async def get(self) -> None:
        state, verifier = secrets.token_urlsafe(32), secrets.token_urlsafe(48)
        budgets = limit_wanted(LIMIT) if self.get_query_argument("limit", "") else None
        address = await self.client.authorization_url(state, verifier, budgets)
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
                        session.end()
                    raise
        self.redirect("/", status=303)


class Disconnect(Page):
    """Ends both tokens at the server; keeps them if the server does not confirm it, to try again."""

    async def post(self) -> None:
        session = self.checked_session()
        async with session.lock:
            if session.tokens:
                await self.client.revoke(session.tokens)
                session.end()
        self.redirect("/", status=303)


def log_path(handler: RequestHandler) -> None:
    """The access log, without query strings for the same reason."""
    LOG.info("%d %s %s", handler.get_status(), handler.request.method, handler.request.path)


def make_app(client: OAuthClient, webhook_key: bytes | None = None) -> Application:
    """The app's routes; one for webhooks where it has a key to check them by."""
    sessions: OrderedDict[str, Session] = OrderedDict()
    shared = {"client": client, "sessions": sessions}
    pages: dict[str, type[Page]] = {"/": Home, "/login": Login, "/callback": Callback}
    pages |= {"/notes": AddNote, "/notes/edit": EditNote, "/notes/delete": DeleteNote}
    pages |= {"/ask": Ask, "/ask/stream": AskStreamed, "/events": Events}
    pages |= {"/minute/note": MinuteNote, "/minute/helper": MinuteHelper, "/minute/spend": MinuteSpend}
    pages |= {"/refresh": Refresh, "/disconnect": Disconnect}
    templates = os.path.join(os.path.dirname(os.path.abspath(__file__)), "templates")
    routes: list[Any] = [(path, page, shared) for path, page in pages.items()]
    if webhook_key:
        routes.append(("/webhooks", Webhooks, {"key": webhook_key, "sessions": sessions, "seen": OrderedDict()}))
    with open(os.path.join(templates, "home.js"), encoding="utf-8") as file:
        script = file.read()
    return Application(routes, template_path=templates, log_function=log_path, script=script, origin=client.origin)


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


def webhook_key() -> bytes | None:
    """What webhooks are checked by, where the environment has it."""
    secret = os.environ.get("DEMO_WEBHOOK_SECRET")
    try:
        return key_of(secret) if secret else None
    except ValueError as error:
        sys.exit(f"DEMO_WEBHOOK_SECRET: {error}")


async def serve(options: argparse.Namespace, parent: int) -> None:
    """Listen until interrupted, or until `parent` (a process id) is no longer the parent."""
    try:
        sockets = bind_sockets(options.port, options.host)
    except OSError as error:
        sys.exit(f"The demo app cannot listen on {options.host}:{options.port}: {error.strerror}")
    here = f"http://{options.host}:{sockets[0].getsockname()[1]}"
    secret = options.client_secret or os.environ.get("DEMO_CLIENT_SECRET") or None
    client = OAuthClient(options.latchkey, options.client_id, secret, f"{here}/callback", options.scopes)
    HTTPServer(make_app(client, webhook_key())).add_sockets(sockets)
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
