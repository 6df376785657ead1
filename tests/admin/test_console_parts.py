"""One thing at a time from a person's page: a session, an app, an account at another site."""

from __future__ import annotations

import re

import pytest

from handlers.admin.console.base import with_role_names
from store import keys
from store.accounts.identities import UpstreamIdentity
from store.phrases import Phrase, packed, plural
from tests.admin.conftest import Console
from tests.admin.test_console_people import proved, shown
from tests.support.http.driver import EMAIL, PASSWORD

pytestmark = pytest.mark.gen_test(timeout=60)
IDENTITY = UpstreamIdentity("https://elsewhere.example", "subject-1")


async def linked(console: Console, *, password: bool = True) -> None:
    """Links an identity to Ada, who may have no password."""
    client, person = console.store.client, keys.person(console.service.ada)
    await client.hset(person["identities"], IDENTITY.name, f"{IDENTITY.text}\n1000 2000 ada at work")
    await client.set(keys.identity(IDENTITY.name), console.service.ada)
    if not password:
        await client.hset(person["user"], "password", console.store.hasher.unusable())


async def test_one_session_ends_and_the_others_stay(console: Console) -> None:
    admin, path = await proved(console)
    first, second = [console.service.browser() for _ in range(2)]
    for browser in (first, second):
        assert (await browser.sign_in(EMAIL)).code == 303
    session = console.store.sessions.open(first.cookies["latchkey_session"])
    assert session
    listed = re.findall(r'name="session" value="([^"]*)"', await admin.open(path))
    assert len(listed) == 2
    assert session.session_id in listed
    done = await admin.do(f"{path}/end-session", session=session.session_id)
    assert "The person is signed out on that device" in shown(await admin.open(done.headers["Location"]))
    assert [(await one.get("/account")).code for one in (first, second)] == [303, 200]
    await admin.do(f"{path}/end-session", session=session.session_id)
    events = [entry.event for entry in (await console.store.operator.find(EMAIL)).activity]
    assert events.count("session_ended_by_operator") == 1


async def test_an_app_is_disconnected_and_its_tokens_end(console: Console) -> None:
    admin, path = await proved(console)
    tokens = await console.service.tokens()
    done = await admin.do(f"{path}/disconnect", client_id="web-app")
    text = shown(await admin.open(done.headers["Location"]))
    assert "The app was disconnected" in text
    assert "Disconnected" in text
    assert (await console.service.web.userinfo(tokens["access_token"])).code == 401
    assert (await admin.send(f"{path}/disconnect", client_id="web-app")).code == 404


async def test_an_account_elsewhere_is_unlinked_but_never_the_last_way_in(console: Console) -> None:
    admin, path = await proved(console)
    await linked(console, password=False)
    assert "ada at work" in shown(await admin.open(path))
    answer = await admin.send(f"{path}/unlink", identity=IDENTITY.name)
    assert (answer.code, "only this way" in shown(answer.body.decode())) == (400, True)
    assert await console.store.identities.find(IDENTITY) == console.service.ada
    await linked(console)
    await console.store.operator.set_password(EMAIL, await console.store.hasher.hash(PASSWORD))
    await admin.do(f"{path}/unlink", identity=IDENTITY.name)
    assert await console.store.identities.entry(IDENTITY) is None
    assert (await admin.send(f"{path}/unlink", identity=IDENTITY.name)).code == 404


async def test_acts_are_noted_with_the_operator(console: Console) -> None:
    admin, path = await proved(console)
    await console.service.tokens()
    await linked(console)
    ada = console.service.browser()
    await ada.sign_in(EMAIL)
    session = console.store.sessions.open(ada.cookies["latchkey_session"])
    assert session
    console.events.clear()
    await admin.do(f"{path}/end-session", session=session.session_id)
    await admin.do(f"{path}/disconnect", client_id="web-app")
    await admin.do(f"{path}/unlink", identity=IDENTITY.name)
    theirs = [event for event in console.events if event.person == console.service.ada]
    assert [(event.event, event.client, event.by) for event in theirs] == [
        ("session_ended_by_operator", "", f"person {admin.user}"),
        ("app_disconnected_by_operator", "web-app", f"person {admin.user}"),
        ("identity_unlinked_by_operator", "", f"person {admin.user}"),
    ]


@pytest.mark.parametrize(
    ("act", "field"), [("end-session", "session"), ("disconnect", "client_id"), ("unlink", "identity")]
)
@pytest.mark.parametrize("value", ["../../x", "a:b", "x" * 4000, "{x}", ""])
async def test_an_id_of_nothing_is_404_and_changes_nothing(console: Console, act: str, field: str, value: str) -> None:
    admin, path = await proved(console)
    await console.service.tokens()
    before = await console.store.people_acts.view(console.service.ada)
    assert (await admin.send(f"{path}/{act}", **{field: value})).code == (404 if value else 400)
    assert await console.store.people_acts.view(console.service.ada) == before


def test_only_the_role_in_a_message_is_changed_to_its_name() -> None:
    assert with_role_names(Phrase("They have the role %(role)s.", role="auditor")) == "They have the role Auditor."
    seconds = plural("Try again in %(count)s second.", "Try again in %(count)s seconds.", 30)
    for text in (seconds, Phrase("There is an app %(name)s.", name="support"), "auditor"):
        assert packed(with_role_names(text)) == packed(text)
