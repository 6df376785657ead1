"""A device without a keyboard, and the person who lets it in."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tornado.httpclient import HTTPResponse

from store.oauth.device_requests import GRANT_TYPE
from tests.support.http.driver import App, Browser, Service, fields_of, json_of, send

ENDPOINT, DECISION = "/api/oauth/device_authorization", "/api/oauth/authorize"


async def a_tv(service: Service, **fields: Any) -> App:
    """A public app for devices."""
    facts = {"public": True, "redirect_uris": ("https://tv.example/cb",), **fields}
    return await service.add_app("tv", **facts)


async def a_console(service: Service, **fields: Any) -> App:
    """A confidential app for devices."""
    return await service.add_app("console", **fields)


async def ask(app: App, *, headers: dict[str, str] | None = None, **changes: Any) -> HTTPResponse:
    """A device's request with the app's credentials; a change to None leaves a parameter out."""
    form: dict[str, str | None] = {
        **{"client_id": app.client_id, "client_secret": app.secret, "scope": "profile data:read"},
        **changes,
    }
    kept = {name: value for name, value in form.items() if value is not None}
    return await send(f"{app.base_url}{ENDPOINT}", "POST", form=kept, headers=headers)


@dataclass
class Device:
    """A device that has its codes."""

    app: App
    codes: dict[str, Any]

    @classmethod
    async def begun(cls, app: App, **changes: Any) -> Device:
        response = await ask(app, **changes)
        assert response.code == 200, response.body
        return cls(app, json_of(response))

    @property
    def user_code(self) -> str:
        code: str = self.codes["user_code"]
        return code

    async def poll(self, **changes: str | None) -> HTTPResponse:
        return await self.app.token(**{"grant_type": GRANT_TYPE, "device_code": self.codes["device_code"], **changes})

    async def hears(self, **changes: str | None) -> str:
        """The error of a poll; empty for tokens."""
        response = await self.poll(**changes)
        assert response.code in (200, 400, 429), response.body
        return str(json_of(response).get("error", ""))


async def type_code(browser: Browser, user_code: str) -> HTTPResponse:
    """What the person sees who types a code."""
    page = await browser.get("/device")
    assert page.code == 200, page.body
    return await browser.submit(page, "/device", user_code=user_code)


async def decide(
    browser: Browser,
    page: HTTPResponse,
    decision: str = "allow",
    untick: tuple[str, ...] = (),
    tick: tuple[str, ...] = (),
) -> HTTPResponse:
    """The person's decision on the consent page."""
    ticked = {f"scope:{scope}": "on" for scope in tick}
    form = {**fields_of(page, DECISION), **ticked, "decision": decision}
    kept = {name: value for name, value in form.items() if name.removeprefix("scope:") not in untick}
    return await browser.send(DECISION, "POST", form=kept)


async def let_in(browser: Browser, device: Device, decision: str = "allow", untick: tuple[str, ...] = ()) -> None:
    """Types the code of a device and decides."""
    page = await type_code(browser, device.user_code)
    assert page.code == 200, page.body
    done = await decide(browser, page, decision, untick)
    assert done.code == 303, done.body
    said = "You denied access" if decision == "deny" else "Go back to your device"
    assert said in (await browser.get(done.headers["Location"])).body.decode()
