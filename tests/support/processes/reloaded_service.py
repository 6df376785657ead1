"""A service that reloads settings, and the settings that it starts with."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from tornado.httpserver import HTTPServer

from handlers.core.site import Site
from handlers.ops.credits import make_ops_application
from observability import logs
from outbound.ai.models import Models
from outbound.mail.mailer import SmtpServer
from runtime.http.server import HttpServer
from runtime.listening import Listening
from runtime.process_state import Runtime
from runtime.reload import Reloads
from settings.declared import Settings
from store.crypto.keyring import KeyRing, Keys
from store.wiring import Store
from tests.support.http import http_servers

PUBLIC = Settings(base_url="https://id.example.com")
"""Of a server that others reach."""
OLD_RING, NEW_RING = KeyRing.generate(1), KeyRing.generate(2)


class Reloading:
    """A service that reloads settings. `wanted` are the settings of the next reload."""

    def __init__(self, site: Site, app: Any, http_server: HTTPServer, ring: Keys) -> None:
        self.wanted = PUBLIC
        self.runtime = Runtime(PUBLIC, "memory", ring, [], "", site.base_url, None, Models(()))
        self.runtime.reread = lambda: self.wanted
        self.store: Store = site.store
        self.main = Listening(app, http_server, [])
        operations = make_ops_application(site, ())
        self.ops = Listening(operations, http_servers.chosen(operations), [])
        self.ops.server.add_sockets([])
        self.reloads = Reloads(self.runtime, site.store, [self.main, self.ops], alone=True)

    @property
    def site(self) -> Site:
        """The settings that handlers use now."""
        found: Site = self.main.application.site
        return found

    async def take(self, **changed: Any) -> None:
        """Reloads with these settings changed."""
        self.wanted = replace(self.wanted, **changed)
        await self.reloads.reload()


@pytest.fixture
def logging_kept(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, str]]:
    """How the log was set up, instead of doing so."""
    found: list[tuple[str, str]] = []
    monkeypatch.setattr(logs, "configure", lambda *form: found.append(form))
    return found


@pytest.fixture
def reloading(
    io_loop: Any, site: Site, app: Any, http_server: HTTPServer, keys: Keys, logging_kept: list[Any]
) -> Iterator[Reloading]:
    """The service of the other tests. A reload sets no log up: later tests of the process would log as it says."""

    async def make() -> Reloading:
        return Reloading(site, app, http_server, keys)

    made = io_loop.run_sync(make)
    yield made
    io_loop.run_sync(made.reloads.close)


def http_limits(found: Reloading) -> Any:
    """Of the fast server."""
    return found.main.server.limits if isinstance(found.main.server, HttpServer) else None


def sends_to(found: Reloading) -> str:
    """The mail server's settings."""
    transport = vars(found.site.mail)["_transport"]
    return "smtp://127.0.0.1:1" if isinstance(transport, SmtpServer) else "nowhere"


OF_STORE: dict[str, tuple[Any, Any]] = {
    "audit_days": (7, lambda r: r.store.security.trail.bounds.days),
    "audit_bytes": (2**21, lambda r: r.store.security.trail.bounds.bytes),
    "second_step": ("owners", lambda r: r.store.sessions.required.who),
}
"""Settings of the store's services: another value, and what has it after a reload."""
