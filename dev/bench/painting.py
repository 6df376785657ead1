"""Measures the first paint of the most important pages on loopback, by Chromium's own trace.

python -m dev.bench.painting [--times N] [--json FILE]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any
from urllib.parse import urlencode

from tornado.httpclient import AsyncHTTPClient
from tornado.websocket import websocket_connect

from dev.bench.measure import Unexpected, serving, table
from dev.bench.parts import results, stores
from dev.bench.parts.options import RESULTS, count, end_on_sigterm
from store import keys
from store.apps.registration import Registration
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.results import Visitor
from store.wiring import Store
from tests.support.browser.webdriver import ENTER, Chromium

PAINT_MS = 100
"""The longest acceptable first paint, in milliseconds after the navigation began."""
EMAIL, NAME, PASSWORD = "ada@example.com", "Ada Lovelace", "bridge-table-lemon-42"  # of this run alone
CLIENT_ID, BACK = "daily-leaf", "http://localhost:8090/callback"
SCOPES = ("profile", "credits:read", "credits:spend", "data:read", "data:write")
_ASKED = {
    **{"client_id": CLIENT_ID, "redirect_uri": BACK, "response_type": "code", "scope": " ".join(SCOPES), "state": "s"},
    **{"code_challenge": "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM", "code_challenge_method": "S256"},
}
SIGNED_OUT = {"home": "/", "sign-in": "/signin", "sign-up": "/signup"}
SIGNED_IN = {
    "consent": f"/oauth/authorize?{urlencode(_ASKED)}",
    **{"account": "/account", "connected apps": "/account/apps", "credits": "/account/credits"},
    **{"security": "/account/security", "your apps": "/developer/apps", "console": "/admin"},
}
FLOOR = "data:text/html,<p>Hello"
"""A page without a server: what the browser itself takes on this machine."""
_CATEGORIES = ("rail", "blink.user_timing")


async def within(url: str, ring: KeyRing, work: Callable[[Store], Awaitable[None]]) -> None:
    """Does this work with the store."""
    hasher = PasswordHasher(8192, 1, workers=1, queue=1)
    store = Store(await connect(url, socket_timeout=5), Keys(ring), hasher, session_idle=1000, session_lifetime=1000)
    try:
        await work(store)
    finally:
        await store.close()


async def furnish(store: Store) -> None:
    """Adds a person with credits, and an app that may ask for everything."""
    visitor = Visitor()
    user = await store.people.create(EMAIL, NAME, PASSWORD, verified=True, event="signed_up", visitor=visitor)
    await store.credits.begin(user, 5_000_000, reason="To try things out")
    await store.apps.create(Registration(CLIENT_ID, "The Daily Leaf", scopes=SCOPES, redirect_uris=(BACK,)), "secret")


async def promote(store: Store) -> None:
    """Lets the person, who is signed in, open the console: as an administrator, with a second step."""
    user = (await store.operator.find(EMAIL)).user
    await store.role_holders.give(user, "admin")
    async for name in store.client.scan_iter(match=f"{keys.session_prefix(user)}*"):
        await store.client.hset(name, "method", "otp")


async def traced(address: str, visits: Callable[[], None]) -> list[dict[str, Any]]:
    """The events of Chromium's trace while these visits are made, in another thread. `address` is that of DevTools."""
    listed = await AsyncHTTPClient().fetch(f"http://{address}/json/version")
    socket = await websocket_connect(json.loads(listed.body)["webSocketDebuggerUrl"], max_message_size=2**28)

    async def call(number: int, method: str, **parameters: Any) -> list[dict[str, Any]]:
        """The messages until the answer, and after the end of a trace until all of it has come."""
        await socket.write_message(json.dumps({"id": number, "method": method, "params": parameters}))
        last, seen = "Tracing.tracingComplete" if method == "Tracing.end" else number, list[dict[str, Any]]()
        while not seen or last not in (seen[-1].get("id"), seen[-1].get("method")):
            message = await socket.read_message()
            if message is None:
                raise Unexpected("DevTools hung up")
            seen.append(json.loads(message))
        return seen

    config = {"includedCategories": _CATEGORIES, "excludedCategories": ["*"]}
    await call(1, "Tracing.start", transferMode="ReportEvents", traceConfig=config)
    await asyncio.to_thread(visits)
    messages = await call(2, "Tracing.end")
    socket.close()
    collected = [one["params"]["value"] for one in messages if one.get("method") == "Tracing.dataCollected"]
    return [event for events in collected for event in events]


def visit(browser: Chromium, url: str) -> None:
    """Opens a page, from an empty one, and waits until it is painted. Raises Unexpected if it leads elsewhere."""
    browser.open("about:blank")
    browser.open(url)
    if browser.url != url:
        raise Unexpected(f"{url} led to {browser.url}")
    browser.run("return new Promise((painted) => requestAnimationFrame(() => setTimeout(painted, 50)))")


def first_paints(events: Sequence[dict[str, Any]]) -> dict[str, list[float]]:
    """Milliseconds from each navigation to its first paint, by address, from the events of a trace."""
    begun, found = dict[str, tuple[str, float]](), dict[str, list[float]]()
    for event in sorted((one for one in events if "ts" in one), key=lambda one: float(one["ts"])):
        data = event.get("args", {}).get("data") or {}
        if event.get("name") == "navigationStart" and data.get("documentLoaderURL"):
            begun[data["navigationId"]] = (data["documentLoaderURL"], event["ts"])
        elif event.get("name") == "firstPaint" and data.get("navigationId") in begun:
            url, start = begun.pop(data["navigationId"])
            found.setdefault(url, []).append((event["ts"] - start) / 1000)
    return found


def measure(times: int) -> dict[str, list[float]]:
    """The first paints of each page, in milliseconds."""
    ring = KeyRing.parse(KeyRing.generate(1))
    with tempfile.TemporaryDirectory(prefix="latchkey-bench-", dir="/tmp") as place:
        directory = Path(place)
        with stores.running(stores.valkey_binary(), directory / "store", stores.IN_MEMORY) as engine:
            url = f"unix://{engine.socket_path}"
            with (
                serving(url, ring, directory, "--host", "localhost") as served,
                Chromium() as browser,
            ):
                base = f"http://localhost:{served.port}"
                asyncio.run(within(url, ring, furnish))
                painted = _painted(browser, base, SIGNED_OUT, times)
                browser.open(f"{base}/signin?next=/account")
                browser.type("email", EMAIL)
                browser.type("password", PASSWORD)
                browser.press(ENTER)
                browser.wait_for(NAME, at=f"{base}/account")
                asyncio.run(within(url, ring, promote))
                floor = _painted(browser, "", {"no server": FLOOR}, times)
                return floor | painted | _painted(browser, base, SIGNED_IN, times)


def _painted(browser: Chromium, base: str, pages: Mapping[str, str], times: int) -> dict[str, list[float]]:
    def visits() -> None:
        for path in pages.values():
            # The first visit of a page may load files that the browser keeps. It does not count.
            for _ in range(times + 1):
                visit(browser, base + path)

    found = first_paints(asyncio.run(traced(browser.debugger, visits)))
    return {name: found[base + path][-times:] for name, path in pages.items()}


def paint_table(found: Mapping[str, Sequence[float]]) -> str:
    """A row for each page: the median, and the slowest."""
    rows = [(name, f"{median(paints):.0f} ms", f"{max(paints):.0f} ms") for name, paints in found.items()]
    return table(("page", "first paint, median", "slowest"), rows, words=1)


def main(argv: Sequence[str] | None = None) -> int:
    """Measures, prints the table in Markdown, and writes all samples as JSON. Raises Unexpected. Returns 1 if a
    median is too long."""
    parser = argparse.ArgumentParser(prog="python -m dev.bench.painting", allow_abbrev=False)
    parser.add_argument("--times", type=count, default=10, metavar="N", help="visits of each page (default 10)")
    parser.add_argument("--json", type=Path, default=RESULTS / "painting.json", metavar="FILE", help="where samples go")
    options = parser.parse_args(argv)
    end_on_sigterm()
    found = measure(options.times)
    print(paint_table(found))
    results.write(options.json, {"paints": found}, times=options.times)
    return int(any(median(paints) > PAINT_MS for paints in found.values()))


if __name__ == "__main__":
    sys.exit(main())
