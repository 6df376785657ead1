"""Tools for a tour of all pages: the service in its own thread, a browser, and the checks of each page.

A stop has the name of its page in `tests/support/browser/pages.py`; `tests/support/browser/tour.py` makes the stops.
"""

from __future__ import annotations

import asyncio
import json
import re
import threading
import time
from collections.abc import Coroutine
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Any, Self, TypeVar

from tornado.netutil import bind_sockets
from tornado.template import Template

from handlers.core.brand.brand import Brand
from handlers.core.brand.overrides import TemplateLoader, Templates
from handlers.core.site import Site
from handlers.core.words.html import AUTOESCAPE
from handlers.core.words.languages import Languages, shipped
from handlers.routes import ROUTES, make_application
from runtime import demo
from store import keys
from store.crypto.keyring import KeyRing, Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.wiring import Store
from tests.support.browser.mailbox import Kept, link_in, mailer
from tests.support.browser.webdriver import PATIENCE, Chromium
from tests.support.http import http_servers
from tests.support.http.driver import FRESH, Service
from tests.support.looks import rules
from tests.support.looks.modes import lost
from tests.support.looks.rules import Rules
from tests.support.processes.engines import FakeClock

MODES = {"light": (1100, "light"), "dark": (1100, "dark"), "phone": (360, "light"), "phone-dark": (360, "dark")}
"""Width in pixels, and colour scheme."""
NARROWEST = 320
"""Pixels. WCAG 1.4.10: down to this width nobody has to scroll sideways."""
DAY = 86_400
DAYS = 12
"""Days since the service began."""
T = TypeVar("T")

# Some elements that make the page wider than the window, scroll sideways as cards, or are higher than their box.
BURST = """
const all = [...document.querySelectorAll("body *:not(svg *)")], edge = document.documentElement.clientWidth;
const over = document.documentElement.scrollWidth <= edge ? []
  : all.map((one) => [one, one.getBoundingClientRect()])
  .filter(([, box]) => box.right > edge + 0.5 || box.left < -0.5).map(([one]) => one);
// The room for fingers around a link is not seen.
const links = [...document.querySelectorAll("main a, .link-button")];
for (const link of links) Object.assign(link.style, {paddingBlock: "0", marginBlock: "0"});
const sideways = all.filter((one) => one.matches(".cards .scroll") && one.scrollWidth > one.clientWidth + 1);
const spilt = all.filter((one) => one.clientHeight && getComputedStyle(one).overflowY === "visible"
  && one.scrollHeight > one.clientHeight + 2);
for (const link of links) Object.assign(link.style, {paddingBlock: "", marginBlock: ""});
const deepest = [...over, ...sideways, ...spilt].filter((one, _, found) => !found.includes(one.firstElementChild));
return deepest.slice(0, 3).map((one) => one.outerHTML.slice(0, 200));
"""
# Some controls that are lower than 44 pixels (WCAG 2.5.5). A link in a sentence is as high as its line.
SMALL = """
if (!document.querySelector("link[href^='/static/latchkey.css']") || document.querySelector("#viewer")) return [];
const BOX = "[type=checkbox], [type=radio]";
const words = (one) => [...one.childNodes].some((node) => node.nodeType === 3 && node.textContent.trim());
const spoken = (one) => {
  let around = one.parentElement;
  while (getComputedStyle(around).display.startsWith("inline") && !words(around)) around = around.parentElement;
  return words(around);
};
const shown = [...document.querySelectorAll("a[href], button, summary, select, textarea, input, label")].filter((one) =>
  one.getBoundingClientRect().height && !one.disabled && !one.matches(".skip")
  && (one.matches("label") ? one.querySelector(BOX) : !one.matches(BOX))
  && !(one.matches("a, .link-button") && spoken(one)));
return shown.filter((one) => one.getBoundingClientRect().height < 43.5).slice(0, 5)
  .map((one) => `${Math.round(one.getBoundingClientRect().height)} px: ${one.outerHTML.slice(0, 160)}`);
"""
_ALLOW = "return document.querySelector('button[value=allow]')?.getBoundingClientRect().bottom ?? 0"
# Sends a form without its validation and its script: the tour also needs the pages with errors.
_SUBMIT = """
const [action, button, fields] = GIVEN;
const form = [...document.forms].find((one) => one.getAttribute("action") === action
  && Object.keys(fields).every((name) => one.elements.namedItem(name)));
if (!form) throw Error(`no form for ${action}: ${document.body.innerText}`);
for (const [name, value] of Object.entries(fields)) {
  const field = form.elements.namedItem(name);
  if (field.type === "checkbox") field.checked = Boolean(value); else field.value = value;
}
const elsewhere = [...form.elements].find((one) => one.tagName === "BUTTON" && one.name && !form.contains(one));
const pressed = button ? form.querySelector(`button[value="${button}"]`) : elsewhere;
if (pressed) {
  const sent = document.createElement("input");
  form.append(Object.assign(sent, {type: "hidden", name: pressed.name, value: pressed.value}));
}
document.documentElement.dataset.left = "left";
form.submit();
"""


class Recorder(TemplateLoader):
    """Loads the templates of a server's brand and records their names in `loaded`."""

    def __init__(self, brand: Brand, loaded: set[str]) -> None:
        super().__init__(brand.templates, autoescape=AUTOESCAPE)
        self.loaded = loaded

    def load(self, name: str, parent_path: str | None = None) -> Template:
        """The template."""
        self.loaded.add(name)
        return super().load(name, parent_path)


class Stand:
    """The service in its own thread, with the demo app, on an in-memory store whose clock can be moved. A context
    manager."""

    store: Store
    service: Service
    demo: demo.Demo

    def __init__(self, languages: Languages | None = None) -> None:
        self.languages = languages or shipped()
        self.loop = asyncio.new_event_loop()
        self.clock = FakeClock()
        self.mails = Kept()
        self._thread = threading.Thread(target=self.loop.run_forever)
        self.loaded: set[str] = set()

    def __enter__(self) -> Self:
        self.clock.__enter__()
        self.clock.back(DAYS * DAY)
        self._thread.start()
        self.run(self._begin())
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        self.run(self._finish())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()
        self.clock.__exit__(kind, exc, tb)

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        """The result of work done in the service's thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(PATIENCE)

    def change(self, **facts: Any) -> None:
        """Changes the server's settings: the given fields of Site; the others as at the start."""
        site = replace(self.site, **facts)
        self.app.site = replace(site, templates=self._recorded(site.brand))

    def _recorded(self, brand: Brand) -> Templates:
        templates = Templates(brand.templates)
        templates.pages = Recorder(brand, self.loaded)
        return templates

    def mailing(self) -> None:
        """Turns on mail."""
        self.change(mail=mailer(self.mails))

    def link(self, address: str, subject: str) -> str:
        """The path in the newest mail to an address with this subject, which has no values."""
        return link_in(self.run(self.mails.newest(address, self.languages.default.plain(subject))))

    def forget_windows(self) -> None:
        """Empties all rate limits."""

        async def forget() -> None:
            names = [name async for name in self.store.client.scan_iter(match=keys.window("*", "*") + "*")]
            if names:
                await self.store.client.delete(*names)

        self.run(forget())

    async def open_store(self, url: str) -> Store:
        """A store with the keys of the service."""
        client = await connect(url, socket_timeout=5)
        hasher = PasswordHasher(8192, 1, workers=2, queue=200)
        return Store(client, self._keys, hasher, session_idle=14 * DAY, session_lifetime=30 * DAY)

    async def _begin(self) -> None:
        self._keys = Keys(KeyRing.parse(KeyRing.generate(1)))
        self.store = await self.open_store("memory")
        self.store.apps.settle = 0
        sockets = bind_sockets(0, "localhost")
        origin = f"http://localhost:{sockets[0].getsockname()[1]}"
        self.site = Site(self.store, origin, languages=self.languages)
        self.app = make_application(self.site)
        self.change()
        self._server = http_servers.chosen(self.app)
        self._server.add_sockets(sockets)
        self.service = Service(self.site.base_url, self.store)
        self.demo = await demo.Demo.start(self.store, self.site.base_url)

    async def _finish(self) -> None:
        self.demo.stop()
        self._server.stop()
        await self._server.close_all_connections()
        while self.site.tasks:
            await asyncio.wait(self.site.tasks)
        await self.site.models.close()
        await self.store.close()


@dataclass(frozen=True)
class Seen:
    """A visited page: the name of the stop, the page's route, its status and templates; axe-core's violations, and what
    does not fit on a phone; texts that are in no catalogue, on a tour in another language; the bytes of its HTML; where
    the button Allow ends in a wide window, in pixels from the top; controls that are too small for a finger; what
    is lost in forced colours, on paper and with large text; requests to other origins."""

    name: str
    route: str
    status: int
    templates: frozenset[str]
    violations: tuple[str, ...]
    burst: tuple[str, ...]
    loose: tuple[str, ...] = ()
    size: int = 0
    allow_ends: float = 0
    small: tuple[str, ...] = ()
    lost: tuple[str, ...] = ()
    strange: tuple[str, ...] = ()


def picture_of(name: str) -> str:
    """The file of the picture of a stop."""
    return re.sub("[/ ]", "-", name.replace(".html", "")) + ".png"


class Tour:
    """A browser that visits pages. `shots` is the folder for pictures, if any."""

    def __init__(self, stand: Stand, browser: Chromium, shots: Path | None) -> None:
        self.stand, self.browser, self.shots = stand, browser, shots
        self.seen: list[Seen] = []
        self._rules = Rules()

    def open(self, path: str) -> None:
        """Opens a path of the service, or another address."""
        self.browser.open(path if path.startswith("http") else self.stand.site.base_url + path)

    def submit(self, action: str, button: str = "", **fields: str) -> None:
        """Fills in the form with this action, sends it with the button of this value if it has several, or with the
        first one elsewhere on the page, and waits for the answer."""
        self.browser.run(_SUBMIT.replace("GIVEN", json.dumps([action, button, fields])))
        deadline = time.monotonic() + PATIENCE
        while not self.browser.run(
            "return document.readyState === 'complete' && !document.documentElement.dataset.left"
        ):
            time.sleep(0.01)
            assert time.monotonic() < deadline, f"{action} leads nowhere: {self.browser.text}"

    def sign_in(self, email: str, password: str, onward: str = "/account") -> None:
        """Signs in and continues to a page."""
        self.open(f"/signin?next={onward}")
        if "/signin" not in self.browser.url:  # somebody is signed in
            self.open(f"/signin?next={FRESH}")
        self.submit("/signin", email=email, password=password, next=onward)

    def stop(self, name: str, words: str) -> None:
        """Checks the current page, once it has this text: in every mode, with everything unfolded."""
        self.browser.wait_for(words)
        templates = frozenset(self.stand.loaded)
        self.stand.loaded.clear()
        loaded = self.browser.run("return performance.getEntriesByType('navigation')[0].toJSON()")
        status, size = loaded["responseStatus"], loaded["decodedBodySize"]
        allow = self.browser.run(_ALLOW)
        self.browser.run("for (const one of document.querySelectorAll('details')) one.open = true")
        facts = {"status": status, "templates": templates, "size": size, "allow_ends": allow}
        self.seen.append(replace(self.look(name), strange=tuple(self.strange(name)), **facts))
        self.browser.show_as(*MODES["light"])

    def look(self, name: str) -> Seen:
        """The checks of the current page. Each change of the width costs a layout and a picture, so the order has
        few."""
        rules.load(self.browser)
        violations = [*self._broken(name, "light"), *self._broken(name, "dark")]
        losses = tuple(f"{name}, {one}" for one in lost(self.browser, BURST, len(self.seen)))
        violations += [*self._broken(name, "phone-dark"), *self._broken(name, "phone")]
        small, burst = self.small(name), self.burst(name)
        return Seen(name, self.route(), 0, frozenset(), tuple(violations), tuple(burst), small=small, lost=losses)

    def _broken(self, name: str, mode: str) -> list[str]:
        """The violations in a mode, whose picture is taken if there is a folder."""
        width, scheme = MODES[mode]
        self.browser.show_as(width, scheme)
        if self.shots:
            self.browser.screenshot(self.shots / mode / picture_of(name))
        found = self._rules.wide(self.browser) if mode == "light" else self._rules.other(self.browser, scheme)
        return [f"{name}, {mode}: {one}" for one in found]

    def strange(self, name: str) -> list[str]:
        """Requests since the last stop that left the service and the demo app. A form may lead to an app."""
        ours = (f"{self.stand.site.base_url}/", f"{self.stand.demo.url}/", "data:", "blob:", "chrome:")
        return [
            f"{name}: {one}" for kind, one in self.browser.requests() if kind != "Document" and not one.startswith(ours)
        ]

    def take_pictures(self, name: str) -> None:
        """Writes the pictures of the current page, if there is a folder for them."""
        if self.shots is None:
            return
        for mode, look in MODES.items():
            self.browser.show_as(*look)
            self.browser.screenshot(self.shots / mode / picture_of(name))

    def small(self, name: str) -> tuple[str, ...]:
        """What is too small for a finger, on a phone."""
        self.browser.show_as(*MODES["phone"])
        return tuple(f"{name}: {one}" for one in self.browser.run(SMALL))

    def burst(self, name: str, turn: str = "") -> list[str]:
        """What does not fit on a phone; also after the script `turn`, which undoes itself when it runs again."""
        found, widths = [], (MODES["phone"][0], NARROWEST)
        for width in widths:
            self.browser.show_as(width, "light")
            found += [f"{name}, {width} px: {one}" for one in self.browser.run(BURST)]
        if turn:
            self.browser.run(turn)
            for width in reversed(widths):
                self.browser.show_as(width, "light")
                found += [f"{name}, {width} px, turned around: {one}" for one in self.browser.run(BURST)]
            self.browser.run(turn)
        return found

    def route(self) -> str:
        """The route of the page's address; empty outside the service."""
        origin, slash, rest = self.browser.url.removeprefix(self.stand.site.base_url).partition("/")
        path = re.split(r"[?#]", slash + rest)[0]
        found = [route.name for route in ROUTES if not origin and re.fullmatch(route.pattern, path)]
        return found[0] if found else ""
