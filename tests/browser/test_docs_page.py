"""/docs: the page around the viewer, and how its files are sent."""

from __future__ import annotations

import gzip
import re

import pytest
from tornado.httpclient import AsyncHTTPClient, HTTPRequest

from dev.checks.vendor import VENDOR, content_of
from handlers.core.fallback import StaticHandler
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.browser.pages import render
from tests.support.http.driver import Service, send, send_raw
from tests.support.processes.engines import valkey

VIEWER = VENDOR / "swagger-ui"


@pytest.mark.gen_test
async def test_the_page_has_the_policy_of_every_page_with_a_script(service: Service) -> None:
    docs, sign_in = [await service.browser().get(path) for path in ("/docs", "/signin")]
    assert docs.code == 200
    policy = docs.headers["Content-Security-Policy"]
    assert policy == sign_in.headers["Content-Security-Policy"]
    assert "script-src 'self'; connect-src 'self'; style-src 'self'; img-src 'self' data:" in policy
    assert "unsafe" not in policy
    assert "http" not in policy
    assert "Set-Cookie" not in docs.headers
    assert service.base_url in docs.body.decode()


@pytest.mark.gen_test
async def test_its_files_are_compressed_typed_and_cached_by_version(service: Service) -> None:
    page = (await service.browser().get("/docs")).body.decode()
    loaded = re.findall(r'(?:src|href)="(/static/vendor/swagger-ui/([\w.-]+)\?v=\w+)"', page)
    kinds = {"swagger-ui.css": "text/css", "swagger-ui-bundle.js": "text/javascript"}
    assert {name for _, name in loaded} == set(kinds)
    for address, name in loaded:
        for method in ("GET", "HEAD"):
            request = HTTPRequest(service.base_url + address, method, decompress_response=False)
            response = await AsyncHTTPClient().fetch(request)
            assert response.code == 200
            assert response.headers["Content-Encoding"] == "gzip"
            assert response.headers["Content-Type"] == kinds[name]
            assert "max-age=" in response.headers["Cache-Control"]
            assert int(response.headers["Content-Length"]) == (VIEWER / f"{name}.gz").stat().st_size
            assert re.fullmatch(r'"\w+"', response.headers["Etag"])
            assert gzip.decompress(response.body) == content_of(VIEWER, name) if method == "GET" else not response.body


@pytest.mark.gen_test
async def test_uncompressed_files_are_sent_uncompressed(service: Service) -> None:
    for path, kind in (("latchkey.css", "text/css"), ("vendor/swagger-ui/LICENSE", "application/octet-stream")):
        response = await send(f"{service.base_url}/static/{path}")
        assert response.code == 200
        assert "Content-Encoding" not in response.headers
        assert response.headers["Content-Type"].startswith(kind)
    # Under its name on disk it is an ordinary file.
    packed = await send(f"{service.base_url}/static/vendor/swagger-ui/swagger-ui.css.gz")
    assert packed.code == 200
    assert packed.headers["Content-Type"] == "application/gzip"
    assert "Content-Encoding" not in packed.headers
    for nothing in ("vendor/swagger-ui/nothing.js", "vendor", "vendor/swagger-ui/", "../setup.cfg", "%2e%2e/setup.cfg"):
        assert (await send(f"{service.base_url}/static/{nothing}")).code == 404, nothing


@pytest.mark.gen_test
@pytest.mark.trap(39)
@pytest.mark.parametrize("spelling", ["./latchkey.css", "vendor/../latchkey.css", "/latchkey.css", "vendor//../x"])
async def test_a_file_has_one_name(service: Service, spelling: str) -> None:
    # The server looks a path up whole: splitting one of 32,000 segments would delay everybody.
    for name, status in (("latchkey.css", 200), (spelling, 404)):
        assert (await send_raw(service.base_url, f"GET /static/{name} HTTP/1.1".encode()))[0] == status


@pytest.mark.gen_test
async def test_a_page_looks_its_files_up_once(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    first = (await service.browser().get("/docs")).body.decode()
    looked: list[str] = []
    look = StaticHandler.get_absolute_path

    def looking(root: str, path: str) -> str:
        looked.append(path)
        return look(root, path)

    monkeypatch.setattr(StaticHandler, "get_absolute_path", staticmethod(looking))
    again = (await service.browser().get("/docs")).body.decode()
    assert not looked
    addresses = [re.findall(r'"(/static/[^"]+)"', page) for page in (first, again)]
    assert addresses[0] == addresses[1]
    assert len(addresses[0]) > 3
    assert (await send(f"{service.base_url}{addresses[0][0]}")).code == 200
    assert looked


class TestWithoutAStore:
    @pytest.fixture
    def memory_store(self, open_store: OpenStore) -> Store:
        with valkey() as engine:
            store = open_store(engine.url)
        return store  # which is gone by now

    @pytest.mark.gen_test
    async def test_the_docs_work_without_the_store(self, http_server: object, base_url: str) -> None:
        assert (await send(f"{base_url}/docs", headers={"Accept": "text/html"})).code == 200
        assert (await send(f"{base_url}/openapi.json")).code == 200


def test_without_scripts_the_docs_page_links_to_the_document() -> None:
    page = render("base/docs.html")
    (words,) = page.all("noscript")
    assert "openapi.json" in words.text
    assert [link.get("href") for link in page.inside(words, "a")] == ["/openapi.json"]


@pytest.mark.parametrize(
    "name", ["base/home.html", "developer/apps.html", "developer/apps.html empty", "developer/overview.html"]
)
def test_developer_pages_link_to_the_docs(name: str) -> None:
    assert "/docs" in [link.get("href") for link in render(name).all("a")]
