"""Latchkey and its ceilings as measured: store, people, two servers, a row for each endpoint."""

from __future__ import annotations

import contextlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from itertools import takewhile
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlencode

from dev.bench.cores import Cores, pin
from dev.bench.measure import HOST, Unexpected, progress
from dev.bench.parts.devices import DEVICES, BoundCalls, Device
from dev.bench.parts.filling import FilledStore, document, name_of
from dev.bench.parts.people import CALLBACK, VERIFIER, Crowd, Lineage, cycled
from dev.bench.parts.rows import Chained, Once, Pushed, Replayed, Row, Source, bearer, http
from dev.lab.ports import free_port
from dev.lab.processes import Process, started
from outbound.ai.echo import ECHO
from settings.declared import SETTINGS
from store.oauth.tokens import s256

SYSTEM = "Latchkey"
CEILING = "ceiling"
BARE, EVALSHA = "bare handler", "bare handler, one EVALSHA"
SIGNED = "bare handler, one EVALSHA, one signature"
RELAY = "AI call, passed on by a bare handler"
SIZE = 1024
"""Bytes of a document."""
BOUND = "DPoP-bound userinfo"
PUSHED = "PAR + authorize"
"""A pair of requests: one pushes, the other brings the person's browser and gets a code."""
CALLS = (
    "userinfo",
    BOUND,
    "document GET",
    "document PUT",
    "list of 10",
    "code exchange",
    "refresh",
    "refresh, ES256 id_token",
    "introspection",
    "revoke",
    "consent page",
    PUSHED,
    "AI call",
)
"""The endpoints of the rows."""
LISTED = 10
"""Documents of each person."""
CREDITS = 10**9
"""Micro-dollars of each person."""
QUESTION = {
    "max_tokens": 100,
    "messages": [{"role": "user", "content": "Which key opens every door there is?"}],
}

LOOKS = 3
QUIET_SECONDS = 0.05
_ATTEMPTS = 50
_UNLIMITED = ("--introspections-per-minute", "10000000", "--app-calls-per-minute", "10000000")
"""Windows of callers, which one load generator would fill."""
_MARK = "here"
_SLICES = 100


class Filling(NamedTuple):
    """Store content other than the measured people: numbers of people, tokens (access and refresh) and documents."""

    users: int = 0
    tokens: int = 0
    documents: int = 0


_NOTHING = Filling()


class Latchkey:
    """One store with people in it, and its servers; all end with `stack`."""

    def __init__(
        self,
        stack: contextlib.ExitStack,
        directory: Path,
        people: int,
        cores: Cores,
        http: str = "",
        filling: Filling = _NOTHING,
        system: str = SYSTEM,
    ) -> None:
        directory.mkdir()
        self._stack, self._directory, self._cores, self._http_server, self._system = (
            stack,
            directory,
            cores,
            http,
            system,
        )
        self.filled = stack.enter_context(FilledStore.started(directory / "store"))
        self.socket_path: str = self.filled.client.get_connection_kwargs()["path"]
        self.crowd = Crowd.gather(self.socket_path, self.filled.ring)
        self.openid = Crowd.gather(self.socket_path, self.filled.ring, ("openid", "profile"))
        self._devices = [Device.make() for _ in range(DEVICES)]
        self.users: list[str] = []
        self.lineages: list[Lineage] = []
        self.cookies: list[str] = []
        with self.filled.unlogged():
            self._populate(people, filling)
            bound = self.openid.consent(self.users)
            self.openid.bind(bound, [one.thumbprint for one in cycled(self._devices, 0, people)])
        self._bound = [self.openid.access(lineage) for lineage in bound]
        # A rewrite of the append-only file would slow some bursts and not others.
        self.filled.client.config_set("auto-aof-rewrite-percentage", 0)
        self.store = Process(self.filled.client.info("server")["process_id"])
        pin(self.store.pid, cores.load)
        self._used = 0

    def _populate(self, people: int, filling: Filling) -> None:
        """The measured people are spread among the others, as in a store that grew over time."""
        crowd, slices = self.crowd, min(_SLICES, people) if filling.users else 1
        share = Filling(*(-(-number // slices) for number in filling))
        for number in range(slices):
            users = crowd.sign_up(people * (number + 1) // slices - people * number // slices)
            lineages = crowd.consent(users)
            self.cookies += crowd.sign_in(users)
            crowd.pay(users, CREDITS)
            crowd.write(lineages, LISTED, SIZE)
            self.users += users
            self.lineages += lineages
            others = crowd.sign_up(share.users)
            born = crowd.consent(cycled(others, 0, share.tokens // 2)) if others else []
            crowd.write(born[: min(share.documents, share.users)], -(-share.documents // max(1, share.users)), SIZE)
            if slices > 1 and number % 10 == 9:
                progress(f"filled {number + 1} of {slices} parts")
        progress(f"{self._system}: {people:,} people, {LISTED * people:,} documents, and others: {filling}")

    def serve(self, *flags: str, program: Sequence[str] = ("server.py",)) -> Process:
        """The server over this store, with default settings except for `flags`, and without a log line per request:
        neither ceilings nor peers write one."""
        port = free_port()
        command = [sys.executable, *program, "--host", HOST, "--port", str(port), "--redis-url", self.filled.url]
        command += ["--data-dir", str(self._directory / "server"), *self._http(), "--log-level", "warning"]
        command += [*_UNLIMITED, *flags]
        return self._start(command, port, "server.log", LATCHKEY_SECRET_KEYS=self.filled.ring.render())

    def serve_ceiling(self, model: str = "") -> Process:
        """A server that does nothing, over the same store; it passes calls on to the server of models at `model`."""
        port = free_port()
        command = [sys.executable, "-m", "dev.bench.ceiling", "--redis-url", self.filled.url, "--port", str(port)]
        command += ["--model", model]
        return self._start([*command, *self._http()], port, "ceiling.log")

    def _http(self) -> list[str]:
        known = any(setting.name == "http" for setting in SETTINGS)
        return ["--http", self._http_server] if known and self._http_server else []

    def _start(self, command: Sequence[str], port: int, log: str, **environment: str) -> Process:
        return self._stack.enter_context(
            started(command, self._directory / log, port=port, core=self._cores.server, environment=environment)
        )

    def ceilings(self, process: Process) -> list[Row]:
        """The bare handler: alone, with a script call, and with a script call and an ES256 signature."""
        made = ((BARE, "bare", b"bare"), (EVALSHA, "evalsha", b"bare"), (SIGNED, "signed", b"."))
        return [
            self._row(process, endpoint, Replayed(self._file(path), [http("GET", f"/{path}", {})]), expected, CEILING)
            for endpoint, path, expected in made
        ]

    def rows(self, process: Process, model: str = ECHO) -> list[Row]:
        """A row for each endpoint; AI calls go to `model`."""
        client, openid = _credentials(self.crowd), _credentials(self.openid)
        headers = [bearer(self.crowd.access(lineage)) for lineage in self.lineages]
        kept, content = f"/api/v1/data/{name_of(3)}", document(SIZE)
        json_headers = [{**header, "Content-Type": "application/json"} for header in headers]
        question = json.dumps({**QUESTION, "model": model})

        def exchange(code: str) -> bytes:
            form = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK}
            return http("POST", "/api/oauth/token", {}, urlencode({**form, "code_verifier": VERIFIER, **client}))

        def refresh(token: str) -> bytes:
            form = {"grant_type": "refresh_token", **client}
            return http("POST", "/api/oauth/token", {}, f"{urlencode(form)}&refresh_token={token}")

        def refresh_with_id_token(token: str) -> bytes:
            form = {"grant_type": "refresh_token", **openid}
            return http("POST", "/api/oauth/token", {}, f"{urlencode(form)}&refresh_token={token}")

        def introspect(token: str) -> bytes:
            return http("POST", "/api/oauth/introspect", {}, urlencode({"token": token, **client}))

        def revoke(token: str) -> bytes:
            return http("POST", "/api/oauth/revoke", {}, urlencode({"token": token, **client}))

        made: dict[str, tuple[Source, bytes]] = {
            "userinfo": (
                Replayed(self._file("userinfo"), [http("GET", "/api/oauth/userinfo", one) for one in headers]),
                b"Lovelace",
            ),
            BOUND: (Once(self._file("bound"), self._bound_calls(process).make), b"Lovelace"),
            "document GET": (Replayed(self._file("get"), [http("GET", kept, one) for one in headers]), b"A note"),
            "document PUT": (
                Replayed(self._file("put"), [http("PUT", kept, one, content) for one in json_headers]),
                b"etag",
            ),
            "list of 10": (
                Replayed(self._file("list"), [http("GET", "/api/v1/data/notes", one) for one in headers]),
                b"nextCursor",
            ),
            "code exchange": (
                Once(self._file("exchange"), lambda most: [exchange(code) for code in self._codes(most)]),
                b"refresh_token",
            ),
            "refresh": (Chained(self._file("refresh"), self._refresh_tokens, refresh), b"refresh_token"),
            "refresh, ES256 id_token": (
                Chained(
                    self._file("refresh-openid"),
                    lambda most: self._refresh_tokens(most, self.openid),
                    refresh_with_id_token,
                ),
                b"id_token",
            ),
            "introspection": (
                Replayed(self._file("introspection"), [introspect(self.crowd.access(one)) for one in self.lineages]),
                b'"active":true',
            ),
            "revoke": (
                Once(self._file("revoke"), lambda most: [revoke(token) for token in self._refresh_tokens(most)]),
                b"{}",
            ),
            "consent page": (
                Replayed(self._file("consent"), [self._page(cookie) for cookie in self.cookies]),
                b"Allow <bdi>Bench",
            ),
            PUSHED: (self._pushes(), b"code="),
            "AI call": (
                Replayed(
                    self._file("ai"), [http("POST", "/api/v1/ai/messages", one, question) for one in json_headers]
                ),
                b"charged",
            ),
        }
        return [self._row(process, endpoint, source, expected) for endpoint, (source, expected) in made.items()]

    def calls(self, row: Row) -> int:
        """The commands that the store receives for one request, by its own count; those inside a script do not count.

        This is the minimum over several tries, because background tasks of the server add commands. Some of them send
        many in a row, so a try counts only if the store receives nothing right before and right after it.
        """
        row.look()  # loads the script, and the registration, which is cached for 5 seconds
        return min(self._sent(row) for _ in range(LOOKS))

    def _sent(self, row: Row) -> int:
        for _ in range(_ATTEMPTS):
            request = row.source.sample()
            with self.filled.client.monitor() as monitor:
                self._mark(QUIET_SECONDS)
                self._mark()
                row.look(request)
                self._mark(QUIET_SECONDS)
                self._mark()
                words = (command["command"] for command in monitor.listen() if command["client_type"] != "lua")
                before, sent, after = _between(words, f"ECHO {_MARK}", marks=4)
            if before == after == 0:
                return sent
        raise Unexpected(f"{row.name}: the store is never told of this alone")

    def _mark(self, pause: float = 0) -> None:
        self.filled.client.echo(_MARK)
        time.sleep(pause)

    def _row(self, process: Process, endpoint: str, source: Source, expected: bytes, system: str = "") -> Row:
        return Row(system or self._system, endpoint, process, source, expected, self.store)

    def _file(self, name: str) -> Path:
        return self._directory / f"{name}.requests"

    def _next(self, count: int) -> int:
        """The start of the next `count` people, so that everybody's windows fill alike."""
        first, self._used = self._used, (self._used + count) % len(self.users)
        return first

    def _refresh_tokens(self, count: int, crowd: Crowd | None = None) -> list[str]:
        crowd = crowd or self.crowd
        made: list[Lineage] = crowd.consent(cycled(self.users, self._next(count), count))
        return [crowd.refresh(lineage) for lineage in made]

    def _codes(self, count: int) -> list[str]:
        return self.crowd.codes(cycled(self.cookies, self._next(count), count))

    def _page(self, cookie: str) -> bytes:
        request = authorization_request(" ".join(self.crowd.app.scopes))
        parameters = {"client_id": self.crowd.app.client_id, **request, "prompt": "consent"}
        return _arrival(urlencode(parameters), cookie)

    def _bound_calls(self, process: Process) -> BoundCalls:
        path = "/api/oauth/userinfo"
        return BoundCalls(self._devices, self._bound, path, f"http://localhost:{process.port}{path}")

    def _pushes(self) -> Pushed:
        request = authorization_request(" ".join(self.openid.app.scopes))
        push = http("POST", "/api/oauth/par", {}, urlencode({**request, **_credentials(self.openid)}))
        query = f"{urlencode({'client_id': self.openid.app.client_id})}&request_uri={Pushed.MARK.decode()}"
        return Pushed(self._file("pushed"), push, [_arrival(query, cookie) for cookie in self.cookies])


def authorization_request(scope: str) -> dict[str, str]:
    """The parameters of an authorization request, without the client's id."""
    return {
        "redirect_uri": CALLBACK,
        "response_type": "code",
        "scope": scope,
        "state": "a-state-of-32-characters-or-more",
        "code_challenge": s256(VERIFIER),
        "code_challenge_method": "S256",
    }


def _arrival(query: str, cookie: str) -> bytes:
    return http("GET", f"/oauth/authorize?{query}", {"Cookie": f"latchkey_session={cookie}"})


def _credentials(crowd: Crowd) -> dict[str, str]:
    return {"client_id": crowd.app.client_id, "client_secret": crowd.secret}


def _between(commands: Iterator[str], mark: str, *, marks: int) -> list[int]:
    """The number of items from each mark to the next."""
    return [len(list(takewhile(lambda command: command != mark, commands))) for _ in range(marks)][1:]
