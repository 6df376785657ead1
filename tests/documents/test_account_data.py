"""A person views, downloads and deletes an app's documents over HTTP."""

from __future__ import annotations

import asyncio
import io
import json
import logging
import re
import zipfile

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.application import Latchkey
from store import keys
from tests.support.http import downloads
from tests.support.http.downloads import begin_download, measured_download
from tests.support.http.driver import Browser, Service
from tests.support.lists.offenders import each
from tests.support.store.many_documents import check_usage, connect_app, numbered, stock, write

DATA, EXPORT = "/account/apps/web-app/data", "/account/apps/web-app/export"
DOCUMENTS = {
    "notes/a": b' {"first": 1.50,\r\n "html": "<script>alert(1)</script>"}\n',
    "notes/b": b'"second"',
    "settings/user:1@x~y": b"12345678901234567890",
}
site = downloads.site


async def with_documents(service: Service, documents: dict[str, bytes] = DOCUMENTS) -> Browser:
    """Ada, signed in; the app stores documents for her."""
    app = await service.store.apps.find("web-app")
    assert app is not None
    await write(service.store, await connect_app(service.store, service.ada, app), documents)
    return await service.confirmed()


def links(page: HTTPResponse) -> list[str]:
    return re.findall(r'href="(/account[^"]*)"', page.body.decode())


def unzipped(download: HTTPResponse) -> dict[str, bytes]:
    with zipfile.ZipFile(io.BytesIO(download.body)) as archive:
        assert archive.testzip() is None
        return {name: archive.read(name) for name in archive.namelist()}


@pytest.mark.gen_test
async def test_pages_lead_from_the_apps_to_a_document(service: Service) -> None:
    browser = await with_documents(service)
    apps = await browser.get("/account/apps")
    assert "3\u00a0documents" in apps.body.decode()
    assert {DATA, EXPORT} <= set(links(apps))
    listing = await browser.get(DATA)
    assert listing.code == 200
    for words in ("Web App", "3\u00a0documents", "8\u00a0bytes", ">notes<", ">settings<", "user:1@x~y"):
        assert words in listing.body.decode()
    shown = next(link for link in links(listing) if link.endswith("/notes/a"))
    page = (await browser.get(shown)).body.decode()
    assert "&quot;first&quot;: 1.50,\n  &quot;html&quot;: &quot;&lt;script&gt;alert(1)&lt;/script&gt;&quot;" in page
    assert "<script>" not in page
    odd = next(link for link in links(listing) if "/settings/" in link)
    assert b"12345678901234567890" in (await browser.get(odd)).body


@pytest.mark.gen_test
async def test_long_listings_have_pages_and_collections(service: Service) -> None:
    browser = await with_documents(service, {})
    documents = numbered(230, 30, collections=2)
    await stock(service.store, service.ada, "web-app", documents)
    found: list[str] = []
    address: str | None = DATA
    while address:
        page = await browser.get(address)
        found += [link.removeprefix(DATA + "/") for link in links(page) if re.search(r"/doc\d+$", link)]
        following = re.search(r'href="([^"]*)" rel="next"', page.body.decode())
        address = following[1].replace("&amp;", "&") if following else None
    assert found == list(documents)
    alone = await browser.get(f"{DATA}?collection=c001&after=c001/doc000201")
    assert [link.rpartition("/")[2] for link in links(alone) if re.search(r"/doc\d+$", link)] == [
        f"doc{number:06d}" for number in range(203, 230, 2)
    ]


@pytest.mark.gen_test
async def test_a_document_too_long_to_format_is_shown_as_sent(service: Service) -> None:
    deep = b"[" * 199 + b",".join([b"[]"] * 20_000) + b"]" * 199
    browser = await with_documents(service, {"notes/deep": deep})
    found, path = "", f"{DATA}/notes/deep"
    while path:
        page = (await browser.get(path)).body.decode()
        found += page.partition('aria-label="Content">')[2].partition("</pre>")[0]
        onward = re.search(r'href="([^"]*)" rel="next"', page)
        path = onward[1] if onward else ""
    assert found == deep.decode()


@pytest.mark.gen_test
async def test_a_zip_holds_every_document_byte_for_byte(service: Service) -> None:
    browser = await with_documents(service)
    download = await browser.get(EXPORT)
    assert download.code == 200
    assert download.headers["Content-Type"] == "application/zip"
    disposition = download.headers["Content-Disposition"]
    assert re.fullmatch(r'attachment; filename="web-app-\d{4}-\d\d-\d\d\.zip"', disposition)
    assert download.headers["Cache-Control"] == "no-store"
    assert unzipped(download) == {f"{name.replace(':', '%3A')}.json": content for name, content in DOCUMENTS.items()}


@pytest.mark.gen_test
async def test_json_lines_have_one_document_per_line(service: Service) -> None:
    browser = await with_documents(service)
    download = await browser.get(EXPORT + "?format=jsonl")
    assert download.headers["Content-Type"] == "application/x-ndjson"
    lines = download.body.splitlines()
    assert [f"{line['collection']}/{line['id']}" for line in map(json.loads, lines)] == list(DOCUMENTS)
    assert [json.loads(line)["data"] for line in lines] == [json.loads(content) for content in DOCUMENTS.values()]
    assert b'"first": 1.50,' in lines[0]
    first = json.loads(lines[0])
    assert set(first) == {"collection", "id", "etag", "size", "createdAt", "updatedAt", "data"}
    assert first["size"] == len(DOCUMENTS["notes/a"])


@pytest.mark.gen_test
async def test_head_of_a_download_has_no_body(service: Service) -> None:
    browser = await with_documents(service)
    head = await browser.send(EXPORT, "HEAD")
    assert (head.code, head.body) == (200, b"")
    assert head.headers["Content-Type"] == "application/zip"


@pytest.mark.gen_test
async def test_a_form_deletes_one_document(service: Service) -> None:
    browser = await with_documents(service)
    page = await browser.get(f"{DATA}/notes/b")
    answer = await browser.submit(page, f"{DATA}/notes/b/delete")
    assert (answer.code, answer.headers["Location"]) == (303, f"{DATA}?deleted")
    assert "The document was deleted." in (await browser.get(f"{DATA}?deleted")).body.decode()
    assert await check_usage(service.store, service.ada, "web-app") == 2
    assert (await browser.get(f"{DATA}/notes/b")).code == 404
    assert b"Document deleted" in (await browser.get("/account/security")).body


@pytest.mark.gen_test
async def test_deleting_all_documents_asks_for_confirmation(service: Service) -> None:
    browser = await with_documents(service)
    page = await browser.get(DATA)
    assert re.search(r"<details>\s*<summary>Delete all", page.body.decode())
    answer = await browser.submit(page, f"{DATA}/delete")
    assert (answer.code, answer.headers["Location"]) == (303, f"{DATA}?all-deleted")
    assert "All stored documents were deleted." in (await browser.get(f"{DATA}?all-deleted")).body.decode()
    assert await check_usage(service.store, service.ada, "web-app") == 0
    assert b"This app stores no documents" in (await browser.get(DATA)).body
    assert unzipped(await browser.get(EXPORT)) == {}
    assert (await browser.get(EXPORT + "?format=jsonl")).body == b""


@pytest.mark.gen_test
@pytest.mark.trap(22)
@pytest.mark.parametrize("path", [f"{DATA}/delete", f"{DATA}/notes/b/delete"])
async def test_a_deletion_needs_its_token_and_its_origin(service: Service, path: str) -> None:
    browser = await with_documents(service)
    page = await browser.get(DATA)
    bare = await browser.send(path, "POST", form={}, headers={"Sec-Fetch-Mode": "cors"})
    token = re.search(r'name="_xsrf" value="([^"]+)"', page.body.decode())
    assert token
    foreign = await browser.send(path, "POST", form={"_xsrf": token[1]}, headers={"Origin": "https://evil.example"})
    assert (bare.code, foreign.code) == (403, 403)
    assert (await browser.send(path)).code == 405
    assert await check_usage(service.store, service.ada, "web-app") == 3


@pytest.mark.gen_test
@pytest.mark.spec("3.1")
async def test_after_a_disconnection_the_person_still_has_the_data(service: Service) -> None:
    browser = await with_documents(service)
    await browser.submit(await browser.get("/account/apps"), "/account/apps/web-app/revoke")
    apps = await browser.get("/account/apps")
    assert b"Recently disconnected" in apps.body
    assert {DATA, EXPORT} <= set(links(apps))
    assert b"delete them for good" in (await browser.get(DATA)).body
    assert len(unzipped(await browser.get(EXPORT))) == 3
    await browser.submit(await browser.get(f"{DATA}/notes/b"), f"{DATA}/notes/b/delete")
    await browser.submit(await browser.get(DATA), f"{DATA}/delete")
    assert await check_usage(service.store, service.ada, "web-app") == 0


@pytest.mark.gen_test
async def test_a_disabled_apps_data_stays_accessible(service: Service) -> None:
    browser = await with_documents(service)
    await service.store.apps.update("web-app", status="disabled")
    assert len(unzipped(await browser.get(EXPORT))) == 3


@pytest.mark.gen_test
@pytest.mark.parametrize("path", [DATA, EXPORT, f"{DATA}/notes/a"])
async def test_data_pages_need_a_session(service: Service, path: str) -> None:
    await with_documents(service)
    away = await service.browser().get(path)
    assert away.code == 303
    assert away.headers["Location"].startswith("/signin?next=%2Faccount%2Fapps%2Fweb-app")


@pytest.mark.gen_test
@each(
    ("path", "status"),
    [
        pytest.param(EXPORT + "?format=rar", 400, id="a format there is not"),
        pytest.param(EXPORT + "?format=zip&format=zip", 400, id="a repeated parameter"),
        pytest.param("/account/apps/native-app/data", 404, id="an app that is not connected"),
        pytest.param("/account/apps/native-app/export", 404, id="the export of one"),
        pytest.param("/account/apps/a+b/data", 404, id="what names no app"),
        pytest.param(f"{DATA}/notes/nothing", 404, id="no such document"),
        pytest.param(f"{DATA}/notes/_hidden", 400, id="what names no document"),
        pytest.param(f"{DATA}/notes/%00", 400, id="a NUL"),
        pytest.param(f"{DATA}?collection=_meta", 400, id="what names no collection"),
        pytest.param(f"{DATA}?after=nowhere", 400, id="a cursor that is none"),
        pytest.param(f"{DATA}?after=notes/zzz", 200, id="a cursor behind the last"),
    ],
)
async def test_odd_addresses_get_an_explanation(service: Service, path: str, status: int) -> None:
    browser = await with_documents(service)
    page = await browser.get(path)
    assert page.code == status
    assert page.headers["Content-Type"].startswith("text/html")


async def until_idle(app: Latchkey) -> None:
    while app.in_flight:
        await asyncio.sleep(0.005)


@pytest.mark.gen_test(timeout=20)
async def test_an_interrupted_download_does_not_look_complete(
    service: Service, app: Latchkey, caplog: pytest.LogCaptureFixture
) -> None:
    browser = await with_documents(service, {})
    documents = numbered(12, 100_000)
    await stock(service.store, service.ada, "web-app", documents)
    damaged = keys.hosted(service.ada, "web-app")["docs"]
    await service.store.client.hset(damaged, list(documents)[-1], b"\x01" + b"\0" * 60)
    reader, writer = await begin_download(service, browser, EXPORT + "?format=jsonl")
    sent = await reader.read(-1)
    writer.close()
    assert sent.count(b'"collection"') >= 3
    assert not sent.endswith(b"0\r\n\r\n"), "the end of a chunked body"
    await until_idle(app)
    assert "a document does not open" in caplog.text


@pytest.mark.gen_test(timeout=20)
async def test_an_abandoned_download_leaves_nothing_behind(
    service: Service, app: Latchkey, caplog: pytest.LogCaptureFixture
) -> None:
    browser = await with_documents(service, {})
    await stock(service.store, service.ada, "web-app", numbered(120, 100_000))
    reader, writer = await begin_download(service, browser, EXPORT + "?format=jsonl")
    await reader.read(1000)
    assert app.in_flight == 1
    writer.transport.abort()
    await until_idle(app)
    assert [record for record in caplog.records if record.levelno > logging.INFO] == []


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("site", ["valkey"], indirect=True)
async def test_memory_does_not_grow_with_the_number_of_documents(service: Service) -> None:
    browser = await with_documents(service, {})
    peaks: dict[tuple[str, int], int] = {}
    for number in (100, 10_000):
        documents = numbered(number, 700, collections=7)
        total = sum(map(len, documents.values()))
        await stock(service.store, service.ada, "web-app", documents)
        del documents
        for form in ("zip", "jsonl"):
            await browser.get("/account/apps")  # caches are warm
            received, peaks[form, number] = await measured_download(service, browser, f"{EXPORT}?format={form}")
            assert received > (total if form == "jsonl" else 100 * number)
    for form in ("zip", "jsonl"):
        assert peaks[form, 10_000] < peaks[form, 100] + 1_000_000, peaks
    assert peaks["jsonl", 10_000] < total / 3
