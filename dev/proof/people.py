"""The clients: people with a password, apps with a secret, and workers, each one app of one person."""

from __future__ import annotations

import asyncio
import json
import random
import re
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from dev.proof.calling import Clients, Response
from dev.proof.history import Op, Recorder
from store.crypto.seal import Sealer, TokenKind
from store.oauth.tokens import s256

CALLBACK = "https://app.example.com/callback"
SCOPES = "profile credits:read credits:spend data:read data:write"
VERIFIER = "a-code-verifier-of-the-least-length-there-is-43"
PASSWORD = "correct horse battery"
JSON = {"Accept": "application/json"}
"""A signed-out person gets this page without a redirect to the sign-in page."""
AI_INPUT, AI_OUTPUT = 40, 5
"""Micro-dollars of an AI call: for all its input, and for one token of output."""

_REQUEST_ID = re.compile(r'name="request_id" value="([^"]+)"')


@dataclass(frozen=True)
class App:
    """A registered app; `retry` is its refreshRetrySeconds. A public app has no secret."""

    client_id: str
    secret: str | None
    retry: int = 0


APPS = (
    App("proof-strict", "s" * 40),
    App("proof-retrying", "r" * 40, retry=30),
    App("proof-public", None),
)
PLANNER = App("proof-planner", "p" * 40)
"""Hands tokens on to helpers."""
TELEVISION = App("proof-television", None)
"""Runs on devices without a browser."""


@dataclass
class Person:
    """An account. Its AI calls are numbered, and each has a different cost."""

    email: str
    calls: int = 0
    top_ups: int = 0

    def next_call(self, most: int) -> int:
        """The number of the next call, from 1 to `most`; 0 if all are used."""
        self.calls += 1
        return self.calls if self.calls <= most else 0


@dataclass
class Stage:
    """What all workers share: the servers, the recorder, the clock. `calls` is the number of AI calls that each person
    can make, `ops` the ports on which the servers take payments."""

    clients: Clients
    recorder: Recorder
    sealer: Sealer
    ops: Sequence[str]
    operator_key: str
    calls: int
    began: float = field(default_factory=time.monotonic)

    def now(self) -> float:
        """Seconds since the run started."""
        return time.monotonic() - self.began


class Tokens:
    """The tokens that an app got from one code, by generation."""

    def __init__(self, family: str, code: str) -> None:
        self.family = family
        self.code = code
        self.generation = -1
        self.access: dict[int, str] = {}
        self.refresh: dict[int, str] = {}

    @property
    def live(self) -> bool:
        """Whether there is a token to call with."""
        return bool(self.access)


def request_in(page: Response) -> str:
    """The id of the authorization request on a consent page; empty if this is none."""
    found = _REQUEST_ID.search(page.body.decode("utf-8", "replace"))
    return found[1] if found and page.status == 200 and not page.error else ""


class Hand:
    """One browser and one app back end of a person, with every request they can make."""

    def __init__(self, stage: Stage, person: Person, app: App, name: str, dice: random.Random) -> None:
        self.stage, self.person, self.app, self.name, self.dice = stage, person, app, name, dice
        self.session = ""
        self.cookies: dict[str, str] = {}
        self.address = f"192.0.2.{dice.randrange(1, 255)}"

    async def call(
        self,
        kind: str,
        args: dict[str, Any],
        method: str,
        path: str,
        *,
        done: Sequence[int] = (200,),
        result: Callable[[Response], dict[str, Any]] | None = None,
        browser: bool = False,
        op: Op | None = None,
        **options: Any,
    ) -> tuple[Op, Response]:
        """Sends one request and records it with the facts of an acknowledged answer."""
        op = op or self.begin(kind, args)
        answer = await self.send(method, path, browser=browser, **options)
        return self.finish(op, answer, done, result), answer

    def begin(self, kind: str, args: dict[str, Any]) -> Op:
        """An operation that starts now."""
        stage = self.stage
        number = stage.recorder.number()
        return Op(number, self.name, self.person.email, self.app.client_id, kind, round(stage.now(), 4), args)

    async def send(self, method: str, path: str, *, browser: bool = False, **options: Any) -> Response:
        """A request; a browser's has cookies and the form's XSRF token."""
        headers = {"X-Forwarded-For": self.address, **options.pop("headers", {})}
        if browser:
            headers["Cookie"] = "; ".join(f"{name}={value}" for name, value in self.cookies.items())
            if "latchkey_xsrf" in self.cookies:
                headers["X-Xsrftoken"] = self.cookies["latchkey_xsrf"]
        answer = await self.stage.clients.send(method, path, headers=headers, **options)
        if browser:
            for name, value in answer.cookies.items():
                self.cookies[name] = value
                if not value:
                    del self.cookies[name]
        return answer

    def finish(
        self, op: Op, answer: Response, done: Sequence[int], result: Callable[[Response], dict[str, Any]] | None = None
    ) -> Op:
        """Records the operation as it ended, and returns it."""
        op.outcome, op.status, op.error = answer.outcome(done), answer.status, answer.code()
        if op.acked and result is not None:
            op.result = result(answer)
        op.end = round(self.stage.now(), 4)
        self.stage.recorder.op(op)
        return op

    # What a person does in the browser.

    async def sign_in(self) -> Op:
        """Signs in through the page."""
        op = self.begin("sign_in", {})
        self.cookies.clear()
        page = await self.send("GET", "/signin", browser=True)
        if page.outcome((200,)) != "acknowledged":
            return self.finish(op, page, (0,))
        form = {"email": self.person.email, "password": PASSWORD, "next": "/"}
        answer = await self.send("POST", "/signin", browser=True, data=form)
        self.finish(op, answer, (303,), self._session)
        self.session = op.result.get("session", "")
        return op

    async def sign_up(self) -> Op:
        """Creates the account, which also signs in."""
        op = self.begin("sign_up", {})
        self.cookies.clear()
        page = await self.send("GET", "/signup", browser=True)
        if page.outcome((200,)) != "acknowledged":
            return self.finish(op, page, (0,))
        form = {"email": self.person.email, "name": "Ada", "password": PASSWORD, "next": "/"}
        answer = await self.send("POST", "/signup", browser=True, data=form)
        self.finish(op, answer, (303,), self._session)
        self.session = op.result.get("session", "")
        return op

    def _session(self, answer: Response) -> dict[str, Any]:
        token = self.stage.sealer.open(TokenKind.SESSION, answer.cookies.get("latchkey_session", ""))
        return {"session": token.id, "user": token.user} if token else {}

    async def sign_out(self) -> Op:
        """Ends the session."""
        await self.send("GET", "/account/apps", browser=True)
        op, _ = await self.call(
            "sign_out", {"session": self.session}, "POST", "/signout", done=(303,), browser=True, data={"next": "/"}
        )
        if not op.refused:
            self.session = ""
        return op

    async def erase(self) -> Op:
        """Deletes the account."""
        await self.send("GET", "/account/delete", browser=True)
        form = {"email": self.person.email, "password": PASSWORD}
        op, _ = await self.call(
            "erase", {"session": self.session}, "POST", "/account/delete", done=(303,), browser=True, data=form
        )
        return op

    async def page(self, session: str, cookie: str, kind: str = "page") -> Op:
        """A page for signed-in people."""
        headers = {"Cookie": f"latchkey_session={cookie}", **JSON}
        op, _ = await self.call(kind, {"session": session}, "GET", "/account/credits", headers=headers)
        return op

    async def consent(self, budget: int = 0) -> tuple[Op, Tokens | None]:
        """Asks for access, also to a budget (micro-dollars) unless that is 0, and allows it. Returns the code."""
        app, op = self.app, self.begin("consent", {"session": self.session, **({"budget": budget} if budget else {})})
        query = {
            "client_id": app.client_id,
            "redirect_uri": CALLBACK,
            "response_type": "code",
            "scope": SCOPES,
            "state": "a-state-of-32-characters-or-more",
            "code_challenge": s256(VERIFIER),
            "code_challenge_method": "S256",
        }
        if budget:
            query["authorization_details"] = json.dumps([{"type": "llm-inference", "budget": budget}])
        page = await self.send("GET", f"/oauth/authorize?{urlencode(query)}", browser=True)
        target = page.headers.get("Location", "")
        found = request_in(page)
        if found:
            decision = {"request_id": found, "decision": "allow"}
            page = await self.send("POST", "/api/oauth/authorize", browser=True, json=decision, headers=JSON)
            if page.status == 200 and not page.error:
                target = page.json()["redirect_to"]
        code = parse_qs(urlsplit(target).query).get("code", [""])[0]
        token = self.stage.sealer.open(TokenKind.CODE, code)
        done = (200, 303) if token else (0,)
        self.finish(op, page, done, lambda _: {"family": token.id, "user": token.user} if token else {})
        if token is None and page.status == 303:
            self.session = ""
        return op, Tokens(token.id, code) if token else None

    async def disconnect(self) -> Op:
        """Disconnects the app on the account page."""
        await self.send("GET", "/account/apps", browser=True)
        path, args = f"/account/apps/{self.app.client_id}/revoke", {"session": self.session}
        op, _ = await self.call("disconnect", args, "POST", path, done=(303,), browser=True, headers=JSON)
        return op

    async def pause(self, seconds: float) -> None:
        """Waits a random time of up to twice the given seconds."""
        await asyncio.sleep(self.dice.uniform(0, 2 * seconds))
