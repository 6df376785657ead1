"""What a document's URL and its inner id lead to, who waits while it is read again, and what strangers learn of it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from handlers.core.site import Site
from outbound.client_documents import DocumentAsker
from outbound.client_keys import payer_of
from store.apps.client_ids import inner_id
from store.apps.registration import DYNAMIC, Registration
from store.names import DEVICE_GRANT
from store.refused import Refused
from tests.oauth.device.devices import Device, let_in
from tests.support.http.documented_app import NATIVE, PLAIN, URL, WEB, Publisher, json_reply, plain_app
from tests.support.http.driver import App, Service
from tests.support.http.receiver import Reply, answering
from tests.support.processes.proven_domain import DOMAIN

QUIET: dict[str, Any] = {"scope": None, "state": None}


@pytest.mark.gen_test
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


@pytest.mark.gen_test
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


@pytest.mark.gen_test
@pytest.mark.trap(59)
@pytest.mark.parametrize(
    "reply", [answering(404), answering(200, "Content-Type: text/html"), json_reply(["secret"]), json_reply(PLAIN)]
)
async def test_strangers_learn_nothing_of_what_answers_in_the_operators_networks(
    service: Service, site: Site, publisher: Publisher, reply: Reply
) -> None:
    publisher.answers(reply)
    asker = DocumentAsker("192.0.2.1", service.base_url, "Latchkey")
    other = f"{URL}?other"
    with pytest.raises(Refused) as refused:
        await publisher.documents.current(service.store, other, asker)
    assert (publisher.fetched, str(refused.value.description)) == (1, "Its document can’t be used.")
    assert await service.store.document_fetches.state(inner_id(other)) == "Its document can’t be used."


def test_keys_of_apps_that_registered_themselves_share_the_places_of_one() -> None:
    facts: dict[str, Any] = {"redirect_uris": (WEB,), "scopes": (), "jwks_uri": f"{URL}?keys", "private_key_jwt": True}
    made = [Registration(f"app{number}", "App", origin=DYNAMIC, pkce_required=True, **facts) for number in range(2)]
    theirs = Registration("app2", "App", **{**facts, "scopes": ("profile",)})
    assert len({payer_of(app) for app in made}) == 1
    assert payer_of(theirs) != payer_of(made[0])


@pytest.mark.gen_test
@pytest.mark.trap(60)
async def test_strangers_who_use_up_a_hosts_fetches_end_none_of_its_apps(
    service: Service, publisher: Publisher, later: Callable[[float], None]
) -> None:
    app, browser, limits = plain_app(service.base_url), await service.signed_in(), service.store.limits
    limits.documents = replace(limits.documents, limit=2)
    assert (await browser.get(app.authorize_url(**QUIET))).code == 200
    await limits.client_document("192.0.2.1", DOMAIN)
    with pytest.raises(Refused, match="rate_limited"):
        await limits.client_document("192.0.2.1", DOMAIN)
    later(400)
    assert (await browser.get(app.authorize_url(**QUIET))).code == 200
    assert publisher.fetched == 2
    # The address that asks still pays.
    later(400)
    assert (await browser.get(app.authorize_url(**QUIET))).code == 429
