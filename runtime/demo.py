"""`--demo`: a demo person, a third-party app and instructions for the operator."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from handlers.core.site import DemoFacts
from settings.types import PREFIX
from store.apps.client_secrets import new_secret, secret_digest
from store.apps.registration import Registration
from store.apps.webhooks import new_webhook_secret
from store.errors import StartupError
from store.refused import Refused
from store.results import Visitor
from store.wiring import Store

log = logging.getLogger("latchkey.demo")

PROGRAM = Path(__file__).resolve().parent.parent / "examples" / "demo_app.py"
CLIENT_ID = "demo-app"
# The owner tells the demo's records from other people's.
OWNER = "demo"
SCOPES = ("profile", "credits:read", "credits:spend", "data:read", "data:write")
EMAIL = "demo@example.com"
NAME = "Ada Lovelace"
# Known to everybody, which is why the demo is refused on any host but loopback.
PASSWORD = "latchkey-demo"  # noqa: S105  # meant to be known
FACTS = DemoFacts(CLIENT_ID, EMAIL, PASSWORD)
PREFERRED_PORT = 8090
CREDITS = 5_000_000
"""The credits of the demo person at the first start, in micro-dollars."""


@dataclass
class Demo:
    """The running demo app."""

    process: subprocess.Popen[str]
    url: str
    account: str
    """The address of the account pages."""
    inbox: str
    """The address of the page with mails."""
    portal: str
    """The address of the developer portal."""

    @classmethod
    async def start(cls, store: Store, base_url: str) -> Demo:
        """Registers the demo person and the app, and starts the app as a separate process. The app reaches the server
        only over HTTP. Raises StartupError."""
        if urlsplit(base_url).hostname not in ("localhost", "127.0.0.1", "::1"):
            raise StartupError("the demo has a password that everybody knows: it runs on a loopback base URL only")
        try:
            await store.people.create(
                EMAIL, NAME, PASSWORD, verified=True, event="created_by_operator", visitor=Visitor()
            )
        except Refused:  # left by an earlier start
            if not await _is_the_demo_person(store):
                raise StartupError(f"{EMAIL} is the account of somebody else, or still being made") from None
            await store.operator.set_status(EMAIL, "active")
        person = await store.operator.find(EMAIL)
        await store.credits.begin(person.user, CREDITS, reason="To try things out")
        secret, signing = new_secret(), new_webhook_secret()
        options = ["--latchkey", base_url, "--client-id", CLIENT_ID, "--scopes", " ".join(SCOPES)]
        port = _free_port()
        # Another process may take the port first. In that case any free port will do.
        started = await _start(options, port, secret, signing) or (port and await _start(options, 0, secret, signing))
        if not started:
            raise StartupError("the demo app did not start")
        demo = cls(*started, f"{base_url}/account", f"{base_url}/inbox", f"{base_url}/developer/apps")
        await demo.register(store, secret, signing)
        return demo

    async def register(self, store: Store, secret: str, signing: str) -> None:
        """Registers the app. If an earlier start registered it, updates its addresses and secrets. Raises StartupError
        if another app has the client id."""
        addresses: dict[str, Any] = {"redirect_uris": (f"{self.url}/callback",), "webhook_url": f"{self.url}/webhooks"}
        wanted = Registration(CLIENT_ID, "The Daily Leaf", scopes=SCOPES, owner=OWNER, **addresses)
        registration = store.webhooks.begun(wanted, signing).registration
        present = await store.apps.find(CLIENT_ID)
        if present is None:
            await store.apps.create(registration, secret)
        elif present.owner == OWNER:
            secrets = {"secrets": (secret_digest(secret),), "webhook_secrets": registration.webhook_secrets}
            await store.apps.update(CLIENT_ID, scopes=SCOPES, **addresses, **secrets, status="active")
        else:
            self.stop()
            raise StartupError(f"the client id {CLIENT_ID} is another app's, so there is no demo on this store")

    @staticmethod
    async def put_away(store: Store) -> None:
        """Disables the demo account and app of an earlier start: everybody knows the password."""
        if await _is_the_demo_person(store, active=True):
            await store.operator.set_status(EMAIL, "disabled")
            log.warning("disabled %s, whom an earlier start with --demo left here", EMAIL)
        app = await store.apps.find(CLIENT_ID)
        if app and app.active and app.owner == OWNER:
            await store.apps.update(CLIENT_ID, status="disabled")
            log.warning("disabled the app %s, which an earlier start with --demo left here", CLIENT_ID)

    def instructions(self) -> str:
        """Tells the operator what to click."""
        return (
            f"\n  Open {self.url} and sign in with Latchkey as\n"
            f"\n      e-mail    {EMAIL}\n      password  {PASSWORD}\n"
            "\n  Take its five steps: a limit, a note of yours, a helper with less, the limit reached, and the end."
            f"\n  You disconnect the site at {self.account}/apps. Ctrl-C stops everything.\n"
            f"\n  The e-mails that a server would send are at {self.inbox}.\n"
            f"\n  Register an app of your own at {self.portal}. docs/quickstart.md has the steps.\n"
        )

    def stop(self) -> None:
        """Stops the app."""
        self.process.terminate()
        self.process.wait()
        if self.process.stdout:
            self.process.stdout.close()


async def _start(options: list[str], port: int, secret: str, signing: str) -> tuple[subprocess.Popen[str], str] | None:
    """The app's process and address, or None if it ended at once."""
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), *options, "--port", str(port), "--exit-with-parent"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
        # The app doesn't need our settings, which may include secret keys.
        env={**_without_settings(os.environ), "DEMO_CLIENT_SECRET": secret, "DEMO_WEBHOOK_SECRET": signing},
        start_new_session=True,  # Ctrl-C goes to the server, which stops the demo
    )
    assert process.stdout is not None
    line = await asyncio.to_thread(process.stdout.readline)
    if " on http" in line:
        return process, line.rpartition(" ")[2].strip()
    process.terminate()
    process.wait()
    process.stdout.close()
    return None


async def _is_the_demo_person(store: Store, *, active: bool = False) -> bool:
    """Whether the demo's account has the well-known password (and is active)."""
    found = await store.people.credentials(EMAIL)
    if found is None or (active and not found.active):
        return False
    return await store.hasher.verify(PASSWORD, found.password)


def _without_settings(environ: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environ.items() if not name.startswith(PREFIX)}


def _free_port() -> int:
    """The demo's usual port, or 0 if it is taken."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", PREFERRED_PORT))
        except OSError:
            return 0
        return PREFERRED_PORT
