"""Headless Chromium, driven over the WebDriver protocol (W3C) with plain HTTP."""

from __future__ import annotations

import base64
import http.client
import json
import os
import re
import shutil
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import pytest

FLAGS = (
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--window-size=1100,900"),
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"),
    *("--no-default-browser-check", "--disable-features=PasswordManagerOnboarding,PasswordLeakDetection"),
)
NAMES, SHELL = ("chromium", "google-chrome", "chromium-browser"), "chromium-headless-shell"
"""Programs on the PATH."""
TAB, ENTER, SPACE, SHIFT, CONTROL = "\ue004", "\ue007", " ", "\ue008", "\ue009"
ELEMENT = "element-6066-11e4-a52e-4f735466cecf"  # the protocol's key for an element reference
PATIENCE = 30.0  # seconds
LONGEST_SCRIPT = 120
"""Seconds. A busy machine needs more than 30 to look through the unfolded page of `/docs`."""

# Without waiting, a picture may have the height that the page had before, or lack an image of another colour scheme.
_DRAWN = """
return Promise.all([...document.images].map((one) => one.decode().catch(() => null)))
  .then(() => new Promise((drawn) => requestAnimationFrame(() => requestAnimationFrame(drawn))));
"""
_LOOK = """
const element = document.activeElement, style = getComputedStyle(element), box = element.getBoundingClientRect();
return {
  nothing: element === document.body || element === document.documentElement,
  outline: style.outlineStyle === "none" ? 0 : parseFloat(style.outlineWidth),
  seen: box.width > 0 && box.height > 0
    && box.bottom > 0 && box.top < innerHeight && box.right > 0 && box.left < innerWidth,
}
"""


@dataclass(frozen=True)
class Focused:
    """The focused element: `outline` is the outline's width in pixels, `seen` whether any of it is in the window,
    `nothing` whether it is the page itself, which has the focus where no element has it."""

    role: str
    name: str
    nothing: bool
    outline: float
    seen: bool


class Chromium:
    """A browser with its own profile and one window; cookies live as long as the browser. A context manager. It notes
    its requests if it is `watched`. If it is `windowless`, it is Chromium's headless shell, where that is installed: it
    shows pages with the same engine, has nothing around them, and takes less processor time. `debugger` is the address
    of its DevTools."""

    def __init__(self, *, watched: bool = False, windowless: bool = False) -> None:
        driver = shutil.which("chromedriver")
        bare = shutil.which(SHELL) if windowless else None
        binary = bare or next(filter(None, map(shutil.which, NAMES)), None)
        flags = FLAGS if bare else ("--headless=new", *FLAGS)
        if driver is None or binary is None:
            pytest.skip("there is no Chromium with its chromedriver on the PATH")
        self.directory = Path(tempfile.mkdtemp(prefix="chromium-", dir="/tmp"))
        self._log = self.directory / "log"
        self._start(driver)
        try:
            self._at, self._session = self._port(driver), "/session"
            options: dict[str, Any] = {
                "binary": binary,
                "args": [*flags, f"--user-data-dir={self.directory / 'profile'}"],
            }
            wanted: dict[str, Any] = {
                "browserName": "chrome-headless-shell" if bare else "chrome",
                "goog:chromeOptions": options,
                "goog:loggingPrefs": {"browser": "ALL"},
            }
            if watched:
                wanted["goog:loggingPrefs"]["performance"] = "ALL"
                options["perfLoggingPrefs"] = {"enableNetwork": True, "enablePage": False}
            self._watched = watched
            self._width, self._media = 0, dict[str, Any]()
            # What is not there yet is waited for: a form's answer may take a while.
            wanted["timeouts"] = {"script": LONGEST_SCRIPT * 1000, "implicit": int(PATIENCE * 1000)}
            made = self._call("POST", "", {"capabilities": {"alwaysMatch": wanted}})
            self._session += f"/{made['sessionId']}"
            self.debugger = str(made["capabilities"]["goog:chromeOptions"]["debuggerAddress"])
        except BaseException:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        try:
            self._call("DELETE", "")
        finally:
            self._end()

    def open(self, url: str) -> None:
        """Opens the address and waits until the page has loaded."""
        self._call("POST", "/url", {"url": url})

    @property
    def url(self) -> str:
        """The address of the current page."""
        return str(self._call("GET", "/url"))

    @property
    def text(self) -> str:
        """The text of the page, found and read in one step, since a page may change in between. Its no-break spaces are
        spaces."""
        return str(self.run("return document.body ? document.body.innerText : ''")).replace("\N{NO-BREAK SPACE}", " ")

    def run(self, script: str) -> Any:
        """The result of a script run in the page."""
        return self._call("POST", "/execute/sync", {"script": script, "args": []})

    def type(self, field: str, text: str) -> None:
        """Types into the field with this name, once it is there."""
        self._call("POST", f"/element/{self._find('css selector', f'[name={field}]')}/value", {"text": text})

    def click(self, words: str) -> None:
        """Clicks the button, link or summary with this text, once it is there and the page accepts clicks."""
        path = f'//*[self::button or self::a or self::summary][contains(normalize-space(), "{words}")]'
        element = self._find("xpath", path)
        self.wait_until_ready()
        self._call("POST", f"/element/{element}/click", {})

    def press_on(self, path: str) -> None:
        """Clicks the first element of this XPath, once there is one."""
        self._call("POST", f"/element/{self._find('xpath', path)}/click", {})

    def wait_until_ready(self) -> None:
        """Waits until every button of the page accepts clicks (`static/unhurried.js`)."""
        deadline = time.monotonic() + PATIENCE
        while self.run("return document.querySelector('[aria-disabled]') !== null"):
            assert time.monotonic() < deadline, f"{self.url} takes no clicks"
            time.sleep(0.02)

    def press(self, *keys: str) -> None:
        """Presses the keys one after another on the focused element; a modifier precedes its key in the same string."""
        acts = []
        for chord in keys:
            acts += [{"type": "keyDown", "value": key} for key in chord]
            acts += [{"type": "keyUp", "value": key} for key in reversed(chord)]
        self._call("POST", "/actions", {"actions": [{"type": "key", "id": "keyboard", "actions": acts}]})

    def focused(self) -> Focused:
        """The focused element: its accessible name and its look."""
        at = f"/element/{next(iter(self._call('GET', '/element/active').values()))}"
        role, name = (str(self._call("GET", f"{at}/computed{what}")) for what in ("role", "label"))
        look = self.run(_LOOK)
        return Focused(role, name, **look)

    def devtools(self, command: str, **parameters: Any) -> Any:
        """A command of the browser's own protocol, for what WebDriver cannot do."""
        return self._call("POST", "/goog/cdp/execute", {"cmd": command, "params": parameters})

    def show_as(self, width: int, scheme: str) -> None:
        """Sets the window's width in pixels and the colour scheme `light` or `dark` for later pages. Hides the scroll
        bar; a page that reserves room for it (`scrollbar-gutter`) still does."""
        self.emulate({"features": [{"name": "prefers-color-scheme", "value": scheme}]}, width)

    def emulate(self, media: dict[str, Any], width: int = 0) -> None:
        """Sets the medium and the features that style sheets can ask for; and the window's width, if one is given."""
        if not self._width and width:
            self.devtools("Emulation.setScrollbarsHidden", hidden=True)
        if width not in (0, self._width):  # each change costs a layout and a picture
            size = {"width": width, "height": 900, "deviceScaleFactor": 1}
            self.devtools("Emulation.setDeviceMetricsOverride", **size, mobile=False)
            self._width = width
        if media != self._media:
            self.devtools("Emulation.setEmulatedMedia", **media)
            self._media = media

    def allow_scripts(self, allowed: bool) -> None:
        """Whether pages opened from now on may run scripts; scripts of tests always run."""
        self.devtools("Emulation.setScriptExecutionDisabled", value=not allowed)

    def wait_for(self, words: str, at: str = "") -> None:
        """Waits until the page, at an address that begins with `at`, contains this text."""
        deadline = time.monotonic() + PATIENCE
        while not (self.url.startswith(at) and words in self.text):
            assert time.monotonic() < deadline, f"{self.url} says: {self.text}\n{self.console()}"
            time.sleep(0.02)

    def cookies(self) -> set[str]:
        """The names of the cookies that the current page gets."""
        return {cookie["name"] for cookie in self._call("GET", "/cookie")}

    def add_authenticator(self) -> str:
        """Adds a virtual passkey device with automatic confirmation; returns its id."""
        made = {"protocol": "ctap2", "transport": "internal", "hasResidentKey": True, "hasUserVerification": True}
        return str(self._call("POST", "/webauthn/authenticator", {**made, "isUserVerified": True}))

    def offer_no_passkeys(self) -> None:
        """Lets later pages believe that the browser cannot offer passkeys in a field: a virtual device chooses at
        once."""
        source = "delete PublicKeyCredential.isConditionalMediationAvailable"
        self.devtools("Page.addScriptToEvaluateOnNewDocument", source=source)

    def remove_authenticator(self, authenticator: str) -> None:
        """Removes the device."""
        self._call("DELETE", f"/webauthn/authenticator/{authenticator}")

    def cookie(self, name: str) -> str:
        """The value of a cookie that the current page gets."""
        return str(self._call("GET", f"/cookie/{name}")["value"])

    def forget(self) -> None:
        """Deletes the cookies of the current page's host."""
        self._call("DELETE", "/cookie")

    def console(self) -> list[str]:
        """The browser's complaints since the last call: blocked by a policy, not found, failed.

        A blocked autofocus does not count: it only means that typing began early.
        """
        said = [str(entry["message"]) for entry in self._call("POST", "/se/log", {"type": "browser"})]
        return [message for message in said if "Autofocus processing was blocked" not in message]

    def requests(self) -> list[tuple[str, str]]:
        """The kind and the address of each request since the last call, such as `("Image", "https://…")`; none unless
        it is watched."""
        if not self._watched:
            return []
        entries = self._call("POST", "/se/log", {"type": "performance"})
        events = [json.loads(entry["message"])["message"] for entry in entries]
        sent = [event["params"] for event in events if event["method"] == "Network.requestWillBeSent"]
        return [(str(one.get("type", "")), str(one["request"]["url"])) for one in sent]

    def screenshot(self, path: Path) -> None:
        """Writes a PNG picture of the whole page, once it is drawn as it was changed last."""
        path.parent.mkdir(parents=True, exist_ok=True)
        self.run(_DRAWN)
        taken = self.devtools("Page.captureScreenshot", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(taken["data"]))

    def _start(self, driver: str) -> None:
        with self._log.open("wb") as output:
            self._process = subprocess.Popen(
                [driver, "--port=0"],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    def _port(self, driver: str) -> int:
        deadline = time.monotonic() + PATIENCE
        while not (found := re.search(r"started successfully on port (\d+)", self._log.read_text())):
            # The port it picks is free for IPv6; on IPv4 another program may use it.
            if self._process.poll() is not None and "Address already in use" in self._log.read_text():
                self._start(driver)
            assert self._process.poll() is None, self._log.read_text()
            assert time.monotonic() < deadline, self._log.read_text()
            time.sleep(0.01)
        return int(found[1])

    def _end(self) -> None:
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        shutil.rmtree(self.directory, ignore_errors=True)

    def _find(self, using: str, value: str) -> str:
        return str(self._call("POST", "/element", {"using": using, "value": value})[ELEMENT])

    def _call(self, method: str, path: str, body: dict[str, Any] | None = None) -> Any:
        connection = http.client.HTTPConnection("127.0.0.1", self._at, timeout=LONGEST_SCRIPT + PATIENCE)
        try:
            data = None if body is None else json.dumps(body)
            connection.request(method, self._session + path, data, {"Content-Type": "application/json"})
            response = connection.getresponse()
            value = json.load(response)["value"]
        finally:
            connection.close()
        assert response.status == 200, f"{method} {path} {body}: {value['message']}"
        return value
