"""Logos of apps over HTTP: uploaded or fetched by the owner, shown to people, refused when hostile."""

from __future__ import annotations

from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.pictures.image_upload import MOST_LOGO
from outbound.address_policy import AddressPolicy
from outbound.fetching import Fetcher
from tests.accounts.test_image_upload import SVG, close, opened
from tests.accounts.test_profile_http import BOUNDARY, multipart
from tests.support.browser.own_apps import own_app, site
from tests.support.browser.pictures import BLUE, RED, drawn
from tests.support.http.driver import Browser, Service, fields_of, send, text_of
from tests.support.http.receiver import Receiver, Reply, answering
from tests.support.lists.offenders import each

__all__ = ["site"]  # a fixture

pytestmark = pytest.mark.gen_test(timeout=60)
PNG = "Content-Type: image/png"


@pytest.fixture
def facts() -> dict[str, Any]:
    return {"fetcher": Fetcher(AddressPolicy(loopback=True))}


def where(client_id: str) -> str:
    return f"/developer/apps/{client_id}"


async def sent(browser: Browser, client_id: str, file: bytes = b"", url: str = "", xsrf: str = "") -> HTTPResponse:
    """The form with a file, or with an address."""
    token = xsrf or fields_of(await browser.get(f"{where(client_id)}/settings"), f"{where(client_id)}/logo")["_xsrf"]
    body = multipart(file, token, "logo")
    if not file:  # as browsers send a field without a file
        typed = f'name="logo_url"\r\n\r\n{url}\r\n--{BOUNDARY}\r\n'
        empty = 'Content-Disposition: form-data; name="logo"; filename=""'
        body = body.replace(b'name="logo"; filename="<b>.svg"', (typed + empty).encode())
    kind = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}"}
    return await browser.send(f"{where(client_id)}/logo", "POST", body=body, headers=kind)


async def change_logo(browser: Browser, path: str, xsrf: str, number: int) -> None:
    """Gives the app at `path` a logo, or takes it away."""
    if number % 2:
        await browser.send(f"{path}/logo/remove", "POST", form={"_xsrf": xsrf})
    else:
        await sent(browser, path.rpartition("/")[2], drawn(colour=(number, 0, 0)), xsrf=xsrf)


async def logo_of(service: Service, client_id: str) -> str:
    app, _ = await service.store.apps.fresh(client_id)
    assert app is not None
    return app.logo_path


async def test_a_logo_is_uploaded_seen_by_people_and_removed(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    assert 'src="/logo/' not in (await browser.get(app.authorize_url(scope="profile"))).body.decode()
    answer = await sent(browser, app.client_id, drawn(colour=BLUE))
    assert (answer.code, answer.headers["Location"]) == (303, f"{where(app.client_id)}/settings?logo")
    assert "Logo changed." in text_of(await browser.get(f"{where(app.client_id)}/settings?logo"))
    path = await logo_of(service, app.client_id)
    consent = await browser.get(app.authorize_url(scope="profile"))
    assert f'src="{path}"' in consent.body.decode()
    await browser.consent(app.authorize_url(scope="profile"))
    for place in ("/account/apps", "/developer/apps", f"{where(app.client_id)}/settings"):
        assert f'src="{path}"' in (await browser.get(place)).body.decode(), place
    shown = await send(service.base_url + path)
    assert (shown.code, shown.headers["Content-Type"]) == (200, "image/webp")
    assert shown.headers["Content-Security-Policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'"
    assert shown.headers["Cache-Control"] == "public, max-age=2592000, immutable"
    assert "Set-Cookie" not in shown.headers
    assert close(opened(shown.body).convert("RGB").getpixel((9, 9)), BLUE)
    page = await browser.get(f"{where(app.client_id)}/settings")
    assert (await browser.submit(page, f"{where(app.client_id)}/logo/remove")).code == 303
    assert await logo_of(service, app.client_id) == ""
    assert (await send(service.base_url + path)).code == 404


@each(
    ("file", "status"),
    [
        pytest.param(SVG, 400, id="SVG"),
        pytest.param(drawn("GIF"), 400, id="GIF"),
        pytest.param(b"\x89PNG" + bytes(MOST_LOGO), 413, id="too large"),
    ],
)
async def test_what_is_no_logo_is_said_at_the_field(service: Service, file: bytes, status: int) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    page = await sent(browser, app.client_id, file)
    assert (page.code, 'id="logo-error"' in page.body.decode()) == (status, True)
    assert await logo_of(service, app.client_id) == ""


async def test_neither_another_site_nor_another_person_changes_a_logo(service: Service) -> None:
    ada = await service.confirmed()
    app = await own_app(service, ada)
    forged = await sent(ada, app.client_id, drawn(), xsrf="forged")
    assert forged.code == 403
    await service.add_person("eve@example.com")
    eve = await service.confirmed("eve@example.com")
    hers = fields_of(await eve.get("/account"), "/account/picture")["_xsrf"]
    assert (await sent(eve, app.client_id, drawn(), xsrf=hers)).code == 404
    assert await logo_of(service, app.client_id) == ""


async def test_a_logo_with_another_name_than_its_owners_is_not_shown(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    await sent(browser, app.client_id, drawn())
    path = await logo_of(service, app.client_id)
    await service.store.apps.update(app.client_id, name="PayPal")
    page = (await browser.get(app.authorize_url(scope="profile"))).body.decode()
    assert "Its name looks like PayPal" in page
    assert path not in page
    await service.store.apps.update(app.client_id, verified=True)
    assert path in (await browser.get(app.authorize_url(scope="profile"))).body.decode()


@each(
    ("reply", "reason"),
    [
        pytest.param(answering(200, PNG, body=drawn(colour=RED)), "", id="a picture"),
        pytest.param(answering(200, PNG, body=SVG), "read that file as a picture", id="SVG that says it is PNG"),
        pytest.param(answering(200, "Content-Type: image/svg+xml", body=SVG), "not of the right type", id="SVG"),
        pytest.param(answering(200, PNG, body=bytes(MOST_LOGO + 1)), "more than 1048576 bytes", id="too large"),
        pytest.param(answering(302, "Location: https://a.example/"), "redirects are not followed", id="a redirect"),
    ],
)
async def test_a_logo_is_fetched_from_an_address(service: Service, reply: Reply, reason: str) -> None:
    receiver = Receiver(reply)
    await receiver.start()
    browser = await service.confirmed()
    app = await own_app(service, browser)
    page = await sent(browser, app.client_id, url=f"http://127.0.0.1:{receiver.port}/logo.png")
    assert page.code == (400 if reason else 303), text_of(page)
    assert reason in text_of(page)
    assert bool(await logo_of(service, app.client_id)) == (not reason)
    await receiver.close()


async def test_an_address_inside_the_network_is_not_reached(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    for url in (
        "https://10.0.0.1/logo.png",
        "http://a.example/logo.png",
        "file:///etc/passwd",
        "https://a.example/<b>",
    ):
        page = await sent(browser, app.client_id, url=url)
        assert (page.code, "<b>" in page.body.decode()) == (400, False), url
    assert await logo_of(service, app.client_id) == ""
