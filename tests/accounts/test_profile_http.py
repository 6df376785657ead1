"""The profile over HTTP: the name, the picture from upload to app, and hostile uploads."""

from __future__ import annotations

import asyncio
import re
from typing import Any
from urllib.parse import urlsplit

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.application import Latchkey
from handlers.core.pictures.image_upload import MOST_UPLOAD, ROOM
from handlers.core.pictures.uploads import PASSED_OVER
from handlers.core.site import Site
from tests.accounts.test_image_upload import SVG, close, opened
from tests.conftest import OpenStore
from tests.support.browser.pictures import BLUE, RED, drawn, png_bomb
from tests.support.http.driver import NAME, Browser, Service, fields_of, json_of, send
from tests.support.lists.offenders import each

pytestmark = pytest.mark.gen_test(timeout=60)

UPLOAD, REMOVE = "/account/picture", "/account/picture/remove"
BOUNDARY = "----a-boundary"


@pytest.fixture
def site(open_store: OpenStore, base_url: str) -> Site:
    return Site(open_store("memory"), base_url)


def multipart(file: bytes, xsrf: str | None, name: str = "picture", kind: str = "image/png") -> bytes:
    """The body of the form."""
    head = f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="_xsrf"\r\n\r\n{xsrf}\r\n' if xsrf else ""
    head += f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"; filename="<b>.svg"\r\n'
    return head.encode() + f"Content-Type: {kind}\r\n\r\n".encode() + file + f"\r\n--{BOUNDARY}--\r\n".encode()


async def post(browser: Browser, body: bytes, **headers: str) -> HTTPResponse:
    sent = {"Content-Type": f"multipart/form-data; boundary={BOUNDARY}", **headers}
    return await browser.send(UPLOAD, "POST", body=body, headers=sent)


async def token_of(browser: Browser) -> str:
    return fields_of(await browser.get("/account"), UPLOAD)["_xsrf"]


async def upload(browser: Browser, file: bytes, **form: str) -> HTTPResponse:
    """Submits the page's form with a file."""
    return await post(browser, multipart(file, await token_of(browser), **form))


async def picture_for(service: Service, access_token: str) -> str:
    """The address that an app receives."""
    person: dict[str, Any] = json_of(await service.web.userinfo(access_token))
    return str(person["picture"])


async def test_a_new_name_reaches_apps_at_once(service: Service) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    page = await browser.get("/account")
    assert f'value="{NAME}"' in page.body.decode()
    changed = await browser.submit(page, "/account", name="  Grace Hopper ")
    assert (changed.code, changed.headers["Location"]) == (303, "/account?name")
    after = (await browser.get("/account?name")).body.decode()
    assert "Your name was changed." in after
    assert "Grace Hopper" in after
    assert json_of(await service.web.userinfo(tokens["access_token"]))["name"] == "Grace Hopper"
    assert "Name changed" in (await browser.get("/account/security")).body.decode()


@pytest.mark.parametrize("name", ["", "x" * 101, "\u202e", "a\u200bb", "\x07"])
async def test_an_invalid_name_is_reported_next_to_its_field(service: Service, name: str) -> None:
    browser = await service.signed_in()
    page = await browser.submit(await browser.get("/account"), "/account", name=name)
    assert page.code == 400
    assert 'id="name-error"' in page.body.decode()
    assert "<title>Error: " in page.body.decode()
    assert NAME in (await browser.get("/account")).body.decode()


async def test_a_picture_is_uploaded_shown_to_an_app_and_removed(service: Service) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    generated = await picture_for(service, tokens["access_token"])
    addresses = [generated]
    for colour in (RED, BLUE):
        answer = await upload(browser, drawn("PNG", colour=colour))
        assert (answer.code, answer.headers["Location"]) == (303, "/account?picture")
        address = await picture_for(service, tokens["access_token"])
        assert urlsplit(address).path in (await browser.get("/account")).body.decode()
        shown = await send(address)
        assert shown.code == 200
        assert shown.headers["Content-Type"] == "image/webp"
        assert shown.headers["X-Content-Type-Options"] == "nosniff"
        assert shown.headers["Content-Security-Policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'"
        assert shown.headers["Cross-Origin-Resource-Policy"] == "cross-origin"
        assert shown.headers["Cache-Control"] == "public, max-age=2592000, immutable"
        assert "Set-Cookie" not in shown.headers
        assert close(opened(shown.body).getpixel((9, 9)), colour)
        head = await send(address, "HEAD")
        assert (head.code, head.headers["Content-Length"], head.body) == (200, str(len(shown.body)), b"")
        assert [(await send(old)).code for old in addresses] == [404] * len(addresses)
        addresses.append(address)
    page = await browser.get("/account")
    assert (await browser.submit(page, REMOVE)).code == 303
    assert await picture_for(service, tokens["access_token"]) == generated
    assert [(await send(address)).code for address in addresses] == [200, 404, 404]


@pytest.mark.trap(25)
@pytest.mark.spec("9")
async def test_a_picture_has_no_etag_and_is_never_not_modified(service: Service) -> None:
    address = await picture_for(service, (await service.tokens())["access_token"])
    for given in ("*", '"1"'):
        shown = await send(
            address, headers={"If-None-Match": given, "If-Modified-Since": "Thu, 01 Jan 2099 00:00:00 GMT"}
        )
        assert shown.code == 200
        assert shown.body
        assert "ETag" not in shown.headers


@pytest.mark.trap(18)
async def test_the_pages_of_the_profile_are_not_framed(service: Service) -> None:
    browser = await service.signed_in()
    for path in ("/account", "/account/delete", "/account/deleted"):
        headers = (await browser.get(path)).headers
        assert headers["X-Frame-Options"] == "DENY"
        assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


async def test_without_a_picture_the_initials_are_shown(service: Service) -> None:
    address = await picture_for(service, (await service.tokens())["access_token"])
    assert service.ada not in address
    shown = await send(address)
    assert shown.headers["Content-Type"] == "image/svg+xml"
    assert shown.headers["Content-Security-Policy"] == "default-src 'none'; sandbox; frame-ancestors 'none'"
    assert ">AL</text>" in shown.body.decode()
    assert "script" not in shown.body.decode()


@pytest.mark.trap(21)
@pytest.mark.parametrize(
    "path", ["x.svg", "lk_pc_x.webp", "lk_pc_" + "A" * 99 + ".webp", "%00.svg", "%ff.webp", "..%2f.svg"]
)
async def test_an_invented_picture_address_is_not_found(service: Service, path: str) -> None:
    assert (await send(f"{service.base_url}/picture/{path}")).code in (400, 404)


@each(
    ("file", "status"),
    [
        pytest.param(b"", 400, id="nothing"),
        pytest.param(SVG, 400, id="an SVG"),
        pytest.param(b"<html><script>alert(1)</script>", 400, id="a page"),
        pytest.param(png_bomb(60_000, 60_000), 400, id="a bomb"),
        pytest.param(drawn("PNG", (300, 300))[:-60], 400, id="cut off"),
        pytest.param(drawn("BMP"), 400, id="another format"),
        pytest.param(drawn() + bytes(MOST_UPLOAD), 413, id="more than may be"),
        pytest.param(bytes(3 * MOST_UPLOAD), 413, id="far more than may be"),
    ],
)
async def test_an_invalid_picture_is_reported_next_to_its_field(service: Service, file: bytes, status: int) -> None:
    browser = await service.signed_in()
    page = await upload(browser, file)
    assert page.code == status, page.body
    text = page.body.decode()
    assert re.search(r'role="alert" id="picture-error">[A-Z][^<]+\.</p>', text), text
    assert "alert(1)" not in text
    assert ".svg" in re.findall(r'<img src="(/picture/[^"]+)"', text)[0]


async def test_an_oversized_upload_is_cut_off(service: Service) -> None:
    browser = await service.signed_in()
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    length = PASSED_OVER * MOST_UPLOAD + 1
    parts = urlsplit(service.base_url)
    reader, writer = await asyncio.open_connection("127.0.0.1", parts.port)
    head = f"POST {UPLOAD} HTTP/1.1\r\nHost: {parts.netloc}\r\nCookie: {cookies}\r\nContent-Length: {length}\r\n\r\n"
    writer.write(head.encode())
    assert (await reader.read()).startswith(b"HTTP/1.1 400 ")
    writer.close()
    await writer.wait_closed()


async def test_a_picture_of_the_maximum_size_is_accepted(service: Service) -> None:
    file = drawn()
    browser = await service.signed_in()
    assert (await upload(browser, file + bytes(MOST_UPLOAD - len(file)))).code == 303


@pytest.mark.trap(22)
@pytest.mark.trap(27)
@pytest.mark.parametrize("xsrf", [None, "2|00|00|0"])
async def test_a_form_without_its_token_changes_nothing(service: Service, xsrf: str | None) -> None:
    browser = await service.signed_in()
    await browser.get("/account")
    answer = await post(browser, multipart(drawn(), xsrf), **{"Sec-Fetch-Mode": "navigate"})
    assert answer.code == 403
    answer = await post(browser, multipart(drawn(), await token_of(browser)), Origin="https://evil.example")
    assert answer.code == 403
    ada = await service.store.operator.show(service.ada)
    assert ada is not None
    assert ada.picture == ""


async def test_uploads_need_a_session(service: Service, site: Site) -> None:
    browser = service.browser()
    answer = await post(browser, multipart(drawn(), None))
    assert (answer.code, answer.headers["Location"]) == (303, "/signin?next=%2Faccount")
    browser = await service.signed_in()
    token = await token_of(browser)
    await service.store.operator.set_status(service.ada, "disabled")
    assert (await post(browser, multipart(drawn(), token))).code == 303
    for number in range(ROOM):  # every place came free
        site.image_upload.enter(f"person {number}")


@pytest.mark.trap(21)
@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"", id="empty"),
        pytest.param(b"--" + BOUNDARY.encode(), id="a boundary alone"),
        pytest.param(b"\xff\x00" * 50, id="nonsense"),
        pytest.param(
            multipart(drawn(), "x").replace(b'name="picture"', b'name="\xff\xfe"'), id="a name that is no UTF-8"
        ),
        pytest.param(
            (f"--{BOUNDARY}\r\nContent-Disposition: form-data; name=a\r\n\r\n1\r\n" * 500).encode(), id="many parts"
        ),
    ],
)
async def test_a_broken_form_is_refused(service: Service, body: bytes) -> None:
    browser = await service.signed_in()
    assert (await post(browser, body)).code in (400, 403)
    for kind in ("application/x-www-form-urlencoded", "multipart/form-data", "image/png"):
        answer = await browser.send(UPLOAD, "POST", body=body, headers={"Content-Type": kind})
        assert answer.code in (400, 403, 415)


async def test_the_field_must_have_its_name(service: Service) -> None:
    browser = await service.signed_in()
    page = await upload(browser, drawn(), name="file")
    assert page.code == 400
    assert "Choose a picture first." in page.body.decode()


async def test_uploads_beyond_a_processs_room_get_retry_after(service: Service, site: Site) -> None:
    browser = await service.signed_in()
    token = await token_of(browser)
    for number in range(ROOM):
        site.image_upload.enter(f"person {number}")
    answer = await post(browser, multipart(drawn(), token))
    assert (answer.code, answer.headers["Retry-After"]) == (503, "5")
    site.image_upload.leave("person 0")
    assert (await post(browser, multipart(drawn(), token))).code == 303


async def begin(service: Service, browser: Browser) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """An upload whose body never arrives."""
    cookies = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
    parts = urlsplit(service.base_url)
    reader, writer = await asyncio.open_connection("127.0.0.1", parts.port)
    head = f"POST {UPLOAD} HTTP/1.1\r\nHost: {parts.netloc}\r\nCookie: {cookies}\r\nContent-Length: 1000\r\n\r\n"
    writer.write(head.encode() + b"half of it")
    return reader, writer


async def test_one_person_cannot_block_other_uploads(service: Service, site: Site) -> None:
    await service.add_person("grace@example.com")
    browser, grace = await service.signed_in(), await service.signed_in("grace@example.com")
    begun = [await begin(service, browser) for _ in range(2 * ROOM)]
    first = [asyncio.ensure_future(reader.readline()) for reader, _ in begun]
    while sum(line.done() for line in first) < 2 * ROOM - 1:
        await asyncio.sleep(0.001)
    assert {line.result().split()[1] for line in first if line.done()} == {b"503"}, "one picture at a time"
    assert len(site.image_upload._inside) == 1
    assert (await upload(grace, drawn())).code == 303
    for _, writer in begun:
        writer.close()
    await asyncio.gather(*first)


async def test_an_upload_counts_from_its_start(service: Service, site: Site) -> None:
    browser = await service.signed_in()
    for _ in range(20):
        _, writer = await begin(service, browser)
        while not site.image_upload._inside:
            await asyncio.sleep(0.001)
        writer.close()
        while site.image_upload._inside:
            await asyncio.sleep(0.001)
    reader, writer = await begin(service, browser)
    assert (await reader.readline()).split()[1] == b"429"
    writer.close()


async def test_an_interrupted_upload_frees_its_place(service: Service, site: Site, app: Latchkey) -> None:
    browser = await service.signed_in()
    for _ in range(2 * ROOM):
        _, writer = await begin(service, browser)
        while not site.image_upload._inside:
            await asyncio.sleep(0.001)
        writer.close()
        while site.image_upload._inside:
            await asyncio.sleep(0.001)
        assert app.in_flight == 0
    assert (await upload(browser, drawn())).code == 303


async def test_uploads_are_limited_per_person(service: Service) -> None:
    browser = await service.signed_in()
    for _ in range(20):
        await service.store.limits.picture(service.ada)
    answer = await upload(browser, drawn())
    assert answer.code == 429
    assert "Retry-After" in answer.headers


async def test_only_the_upload_form_may_be_large(service: Service) -> None:
    browser = await service.signed_in()
    form = fields_of(await browser.get("/account"), "/account")
    answer = await browser.send("/account", "POST", form={**form, "name": "x" * 100_000})
    assert answer.code == 413
