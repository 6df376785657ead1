"""What a document's client id on the wire and its inner id lead to, and who waits while the document is read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tornado.ioloop import IOLoop

from handlers.core.site import Site
from store.apps.client_ids import inner_id
from store.clock import wall
from store.names import DEVICE_GRANT
from store.wiring import Store
from tests.oauth.device.devices import Device, let_in
from tests.support.http.documented_app import NATIVE, URL, WEB, Publisher, plain_app
from tests.support.http.driver import App, Service, json_of
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test
QUIET: dict[str, Any] = {"scope": None, "state": None}


@pytest.fixture
def publisher(io_loop: IOLoop, tmp_path: Path) -> Iterator[Publisher]:
    made = io_loop.run_sync(lambda: Publisher.make(tmp_path))
    made.publishes()
    yield made
    io_loop.run_sync(made.domain.receiver.close)


@pytest.fixture
def later(clock: FakeClock) -> Iterator[Callable[[float], None]]:
    """Lets seconds pass, for the store and for the server."""

    def pass_by(seconds: float) -> None:
        clock.advance(seconds)
        wall.ahead += seconds

    yield pass_by
    wall.ahead = 0.0


@pytest.fixture
def site(memory_store: Store, base_url: str, publisher: Publisher) -> Site:
    """A server that reads documents."""
    memory_store.apps.documents = True
    return Site(memory_store, base_url, client_documents=publisher.documents)


@pytest.mark.trap(59)
async def test_the_inner_id_of_a_document_begins_no_authorization(
    service: Service, publisher: Publisher, later: Callable[[float], None]
) -> None:
    app, browser = plain_app(service.base_url), await service.signed_in()
    assert (await browser.consent(app.authorize_url(**QUIET))).code == 303
    publisher.publishes(redirect_uris=[NATIVE])
    later(3600)
    inner = App(service.base_url, inner_id(URL), None, WEB)
    page = await browser.get(inner.authorize_url(**QUIET))
    assert (page.code, "Location" in page.headers) == (400, False), page.headers
    assert "not known to this server" in page.body.decode()


async def test_a_device_is_let_in_after_its_document_was_read_again(
    service: Service, publisher: Publisher, later: Callable[[float], None]
) -> None:
    publisher.publishes(grant_types=["authorization_code", DEVICE_GRANT])
    app, browser = plain_app(service.base_url), await service.signed_in()
    device = await Device.begun(app, scope="profile")
    later(400)
    # Somebody else's request has the document read again.
    assert (await browser.get(app.authorize_url(**QUIET))).code == 200
    assert publisher.fetched == 2
    await let_in(browser, device)
    assert (await device.poll()).code == 200
