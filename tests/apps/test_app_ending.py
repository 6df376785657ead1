"""An owner deletes an app over HTTP: the requirements, what a thief gets, what people see."""

from __future__ import annotations

import re
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from outbound.mail.message import plain_text
from store.apps.registration import Registration
from store.wiring import Store
from tests.support.browser.mailbox import Kept, mailer, until
from tests.support.browser.second_factors import Person, says
from tests.support.http.driver import CALLBACK, EMAIL, PASSWORD, Service, fields_of
from tests.support.store.many_documents import connect_app, write
from tests.support.store.world import VISITOR

pytestmark = pytest.mark.gen_test(timeout=60)

WHERE = "/developer/apps/own-app"
DELETE = f"{WHERE}/delete"


@pytest.fixture
def mails() -> Kept:
    return Kept()


@pytest.fixture
def site(memory_store: Store, base_url: str, mails: Kept) -> Site:
    return Site(memory_store, base_url, mail=mailer(mails))


async def own(service: Service) -> Person:
    """Ada, who owns an app that keeps a document for Bob."""
    facts: dict[str, Any] = {"redirect_uris": (CALLBACK,), "scopes": ("profile", "data:read", "data:write")}
    app, _ = await service.store.apps.create(Registration("own-app", "My App", owner=service.ada, **facts))
    bob = await service.add_person("bob@example.com")
    await write(service.store, await connect_app(service.store, bob, app), {"notes/n1": b'"of Bob"'})
    return await Person.arrive(service)


async def send(ada: Person, **fields: str) -> HTTPResponse:
    return await ada.browser.submit(await ada.browser.get(DELETE), DELETE, **{"confirm": " my  app", **fields})


def deleted(answer: HTTPResponse) -> bool:
    return (answer.code, answer.headers.get("Location")) == (303, "/developer/apps?deleted")


@pytest.mark.parametrize(
    ("fields", "part"),
    [
        pytest.param({}, "password", id="a thief with the cookie alone"),
        pytest.param({"password": "wrong horse battery"}, "password", id="a thief who guesses"),
        pytest.param({"password": PASSWORD, "confirm": "Not My App"}, "confirm", id="another name"),
        pytest.param({"password": PASSWORD, "confirm": "a" + "\u0344" * 5000}, "confirm", id="an endless name"),
    ],
)
async def test_deleting_an_app_needs_its_name_and_the_password(
    service: Service, mails: Kept, fields: dict[str, str], part: str
) -> None:
    ada = await own(service)
    answer = await send(ada, **fields)
    assert answer.code == 400
    assert f'id="{part}-error"' in answer.body.decode()
    assert await service.store.apps.active("own-app")
    assert "Your app was deleted" not in [mail["Subject"] for mail in mails.to(EMAIL)]


async def test_with_a_second_step_the_password_alone_cannot_delete_an_app(service: Service) -> None:
    ada = await own(service)
    await ada.add_app()
    for code in ("", "000000"):
        assert 'id="code-error"' in (await send(ada, password=PASSWORD, code=code)).body.decode()
    assert await service.store.apps.active("own-app")
    assert deleted(await send(ada, password=PASSWORD, code=await ada.code()))
    assert await service.store.apps.active("own-app") is None


async def test_a_passkey_confirms_the_deletion_of_one_app_only(service: Service) -> None:
    ada = await own(service)
    other, _ = await service.store.apps.create(
        Registration("other-app", "My App", redirect_uris=(CALLBACK,), scopes=("profile",), owner=service.ada)
    )
    await ada.add_passkey()
    elsewhere = f"/developer/apps/{other.client_id}/delete"
    for page, works in ((elsewhere, False), (DELETE, True)):
        options = await ada.options(f"{page}/options", page=page)
        fields = {**fields_of(await ada.browser.get(DELETE), DELETE), "confirm": "My App"}
        answer = await ada.browser.send(DELETE, "POST", form={**fields, "credential": ada.device.get(options)})
        assert deleted(answer) == works
    assert await service.store.apps.active(other.client_id)


async def test_the_owner_is_mailed_and_the_old_cookie_stops_working(service: Service, site: Site, mails: Kept) -> None:
    ada = await own(service)
    before = dict(ada.browser.cookies)
    assert deleted(await send(ada, password=PASSWORD))
    await until(lambda: not site.tasks and not site.mail._tasks)
    (mail,) = [mail for mail in mails.to(EMAIL) if "app" in mail["Subject"]]
    assert mail["Subject"] == "Your app was deleted"
    assert "Your app “My App” (own-app)" in plain_text(mail)
    assert (await ada.browser.get("/developer/apps?deleted")).code == 200
    assert not says(await ada.browser.get("/developer/apps"), "own-app")
    assert (await ada.browser.get(WHERE)).code == 404
    ada.browser.cookies = before
    assert (await ada.browser.get("/developer/apps")).code == 303


async def test_people_see_the_deleted_app_and_can_export_their_documents(service: Service, site: Site) -> None:
    ada = await own(service)
    assert deleted(await send(ada, password=PASSWORD))
    await until(lambda: not site.tasks)
    bob = await service.signed_in("bob@example.com")
    page = await bob.get("/account/apps")
    assert re.search(r"<bdi>My App</bdi></strong>\s*<span[^>]*>App deleted", page.body.decode())
    assert says(await bob.get("/account/apps/own-app/data"), "My App")
    assert b"of Bob" in (await bob.get("/account/apps/own-app/data/notes/n1")).body
    assert (await bob.get("/account/apps/own-app/export")).code == 200
    activity = await bob.get("/account/security")
    assert says(activity, "App deleted by its developer; its documents are kept for 30 days")
    assert await service.store.person_documents.delete_all(await session_of(service), "own-app", VISITOR) == 1


async def session_of(service: Service) -> Any:
    browser = await service.confirmed("bob@example.com")
    return service.store.sessions.open(browser.cookies["latchkey_session"])
