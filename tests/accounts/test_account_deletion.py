"""A person downloads everything about the account, and deletes it."""

from __future__ import annotations

import base64
import io
import json
import zipfile
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.account.deletion import PIECE_BYTES
from store import keys
from tests.accounts.test_profile_http import picture_for, upload
from tests.documents.test_account_data import DOCUMENTS
from tests.support.browser.pictures import drawn
from tests.support.http import downloads
from tests.support.http.downloads import measured_download
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of, json_of
from tests.support.store.many_documents import connect_app, numbered, stock, write
from tests.support.store.world import every_key

pytestmark = pytest.mark.gen_test(timeout=60)

DELETE, DOWNLOAD = "/account/delete", "/account/download"
site = downloads.site


async def settled(service: Service) -> Browser:
    """Ada, signed in, with a picture, credits, and an app that stores documents."""
    app = await service.store.apps.find("web-app")
    assert app is not None
    await write(service.store, await connect_app(service.store, service.ada, app), DOCUMENTS)
    await service.store.credits.grant(service.ada, 5_000_000, reason="A gift")
    browser = await service.signed_in()
    assert (await upload(browser, drawn())).code == 303
    return browser


def lines_of(download: HTTPResponse) -> list[dict[str, Any]]:
    return [json.loads(line) for line in download.body.splitlines()]


async def test_the_download_contains_everything(service: Service) -> None:
    browser = await settled(service)
    page = await browser.get("/account")
    assert f'href="{DOWNLOAD}"' in page.body.decode()
    download = await browser.get(DOWNLOAD)
    assert download.code == 200
    assert download.headers["Content-Type"] == "application/zip"
    assert download.headers["Content-Disposition"].startswith('attachment; filename="latchkey-')
    assert download.headers["Cache-Control"] == "no-store"
    with zipfile.ZipFile(io.BytesIO(download.body)) as archive:
        assert archive.testzip() is None
        found = {name: archive.read(name) for name in archive.namelist()}
    assert json.loads(found["profile.json"])["email"] == EMAIL
    assert [app["client_id"] for app in json.loads(found["apps.json"])] == ["web-app"]
    assert "account_downloaded" in {entry["event"] for entry in json.loads(found["activity.json"])}
    assert b"A gift" in found["credits.jsonl"]
    assert found["picture.webp"].startswith(b"RIFF")
    assert found["documents/web-app/notes/b.json"] == DOCUMENTS["notes/b"]
    assert b"password" not in download.body
    security = (await browser.get("/account/security")).body.decode()
    assert "Account data downloaded" in security


async def test_the_download_is_also_available_as_json_lines(service: Service) -> None:
    browser = await settled(service)
    lines = lines_of(await browser.get(f"{DOWNLOAD}?format=jsonl"))
    kinds = [line["type"] for line in lines]
    assert kinds[0] == "profile"
    assert {"picture", "app", "activity", "balance", "entry", "opening", "document"} <= set(kinds)
    assert base64.b64decode(lines[kinds.index("picture")]["base64"]).startswith(b"RIFF")
    assert (await browser.get(f"{DOWNLOAD}?format=exe")).code == 400


async def test_download_and_deletion_need_a_session(service: Service) -> None:
    for path in (DOWNLOAD, DELETE):
        answer = await service.browser().get(path)
        assert (answer.code, answer.headers["Location"]) == (303, f"/signin?next={path.replace('/', '%2F')}")


async def test_the_download_is_sent_in_pieces_of_bounded_size(service: Service) -> None:
    app = await service.store.apps.find("web-app")
    assert app is not None
    documents = {f"notes/n{number}": b'"' + bytes([97 + number % 26]) * 60_000 + b'"' for number in range(30)}
    await write(service.store, await connect_app(service.store, service.ada, app), documents)
    browser = await service.signed_in()
    lines = await browser.get(f"{DOWNLOAD}?format=jsonl")
    assert len(lines.body) > 20 * PIECE_BYTES
    assert lines.headers["Transfer-Encoding"] == "chunked"
    assert [line["type"] for line in lines_of(lines)].count("document") == 30


@pytest.mark.slow
@pytest.mark.parametrize("site", ["valkey"], indirect=True)
async def test_memory_does_not_grow_with_the_number_of_documents(service: Service) -> None:
    app = await service.store.apps.find("web-app")
    assert app is not None
    await connect_app(service.store, service.ada, app)
    browser = await service.signed_in()
    peaks: dict[tuple[str, int], int] = {}
    for number in (100, 10_000):
        await stock(service.store, service.ada, "web-app", numbered(number, 700, collections=7))
        for form in ("zip", "jsonl"):
            await browser.get("/account")  # caches are warm
            received, peaks[form, number] = await measured_download(service, browser, f"{DOWNLOAD}?format={form}")
            assert received > 100 * number
    for form in ("zip", "jsonl"):
        assert peaks[form, 10_000] < peaks[form, 100] + 1_000_000, peaks


async def test_the_deletion_page_lists_what_is_deleted(service: Service) -> None:
    browser = await settled(service)
    page = (await browser.get(DELETE)).body.decode()
    for words in ("1\u00a0connected app", "3\u00a0documents", "$5.00", EMAIL, DOWNLOAD):
        assert words in page
    other = await service.add_person("new@example.com")
    assert other
    page = (await (await service.signed_in("new@example.com")).get(DELETE)).body.decode()
    for words in ("Your connected apps (none at", "for you here (none at the moment)", "Your credits (none at"):
        assert words in page


async def test_a_deleted_account_is_gone_at_once_and_leaves_no_permanent_keys(service: Service) -> None:
    browser = await settled(service)
    other = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    picture = await picture_for(service, tokens["access_token"])
    page = await browser.get(DELETE)
    answer = await browser.submit(page, DELETE, email=f" {EMAIL.upper()} ", password=PASSWORD)
    assert (answer.code, answer.headers["Location"]) == (303, "/account/deleted")
    assert "latchkey_session" not in browser.cookies
    said = await browser.get("/account/deleted")
    assert said.code == 200
    assert "Your account was deleted" in said.body.decode()
    assert (await service.web.userinfo(tokens["access_token"])).code == 401
    assert json_of(await service.web.refresh(tokens["refresh_token"]))["error"] == "invalid_grant"
    assert (await other.get("/account")).code == 303
    assert (await other.get(picture)).code == 404
    assert (await service.browser().sign_in()).code == 400
    left = await every_key(service.store.client, f"*{service.ada}*")
    assert all([await service.store.client.pttl(key) > 0 for key in left]), left
    assert await service.store.client.exists(keys.email(EMAIL)) == 0
    assert await service.add_person(EMAIL) != service.ada, "the address is free again"


@pytest.mark.parametrize(
    ("email", "password", "field"),
    [
        pytest.param("", PASSWORD, "email-error", id="nothing typed"),
        pytest.param("somebody@example.com", PASSWORD, "email-error", id="another address"),
        pytest.param(EMAIL, "", "password-error", id="no password"),
        pytest.param(EMAIL, "wrong horse battery", "password-error", id="a wrong password"),
    ],
)
async def test_deletion_needs_address_and_password(service: Service, email: str, password: str, field: str) -> None:
    browser = await service.signed_in()
    page = await browser.submit(await browser.get(DELETE), DELETE, email=email, password=password)
    assert page.code == 400
    assert f'id="{field}"' in page.body.decode()
    assert "<title>Error: " in page.body.decode()
    assert (await browser.get("/account")).code == 200


@pytest.mark.trap(22)
async def test_another_site_cannot_delete_an_account(service: Service) -> None:
    browser = await service.signed_in()
    await browser.get(DELETE)
    form = {"email": EMAIL, "password": PASSWORD}
    assert (await browser.send(DELETE, "POST", form=form)).code == 403
    page = await browser.get(DELETE)
    sent = {**fields_of(page, DELETE), **form}
    assert (await browser.send(DELETE, "POST", form=sent, headers={"Origin": "https://evil.example"})).code == 403
    assert (await browser.get("/account")).code == 200


async def test_the_deletion_form_limits_password_guesses(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get(DELETE)
    codes = []
    for _ in range(25):
        answer = await browser.submit(page, DELETE, email=EMAIL, password="wrong horse battery")
        codes.append(answer.code)
    assert codes[-1] == 429
    assert set(codes) == {400, 429}
