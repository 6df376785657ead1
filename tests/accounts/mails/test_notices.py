"""Notices of changed sign-in methods and of possible sign-ins by somebody else."""

from __future__ import annotations

import asyncio

import pytest

from handlers.account.security import LOOK_AT_FACTORS
from handlers.core import mails
from handlers.core.site import Site
from outbound.mail.message import plain_text
from store.accounts.signin.passkeys import options_for_use, read_answer
from store.results import Visitor, Warned
from store.wiring import Store
from tests.support.browser.mailbox import Kept, link_in, mailer, until
from tests.support.browser.second_factors import APP, PASSKEYS, SECURITY, Person, recovery_codes, says
from tests.support.http.driver import EMAIL, PASSWORD, Browser, Service, fields_of, text_of
from tests.support.store.second_factors import RELYING_PARTY, add_passkey, half_of
from tests.support.store.world import VISITOR, World

pytestmark = pytest.mark.gen_test(timeout=60)

NEW_PASSWORD = "another horse battery"


@pytest.fixture
def box() -> Kept:
    return Kept()


@pytest.fixture
def site(memory_store: Store, base_url: str, box: Kept) -> Site:
    return Site(memory_store, base_url, mail=mailer(box))


async def settled(site: Site) -> None:
    """Waits until every queued mail is sent."""
    await until(lambda: not site.tasks and not site.mail._tasks)


async def change_password(ada: Person) -> str:
    if ada.codes:
        await ada.reauth(ada.codes.pop())
    page = await ada.browser.get(SECURITY)
    done = await ada.browser.submit(page, SECURITY, current_password=PASSWORD, new_password=NEW_PASSWORD)
    return text_of(await ada.browser.get(done.headers["Location"]))


async def test_each_change_of_the_second_step_is_mailed(service: Service, site: Site, box: Kept) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    await ada.add_passkey("Visit https://evil.example")
    for path in (f"{SECURITY}/recovery", f"{PASSKEYS}/remove", f"{APP}/remove"):
        await ada.reauth(ada.codes.pop())
        done = await ada.browser.submit(await ada.browser.get(SECURITY), path)
        ada.codes = recovery_codes(done) or ada.codes
    await settled(site)
    notices = [mail for mail in box.to(EMAIL) if mail["Subject"] != "New sign-in to your account"]
    assert sorted(mail["Subject"] for mail in notices) == [
        "A passkey was added to your account",
        "A passkey was removed from your account",
        "An authenticator app was added to your account",
        "New recovery codes were created for your account",
        "The authenticator app was removed from your account",
    ]
    for mail in notices:
        text = plain_text(mail)
        assert "/account/security" in text
        assert "Testing/1.0" in text
        assert "evil.example" not in text


async def test_refused_changes_are_not_mailed(service: Service, site: Site, box: Kept) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    await settled(site)
    box.mails.clear()
    page = await ada.browser.get(SECURITY)
    assert (await ada.browser.submit(page, f"{SECURITY}/confirm", password=PASSWORD, code="000000")).code == 400
    for path in (f"{SECURITY}/recovery", f"{APP}/remove"):
        assert (await ada.browser.send(path, "POST", form={"_xsrf": fields_of(page, "/signout")["_xsrf"]})).code == 403
    await settled(site)
    assert box.mails == []


async def test_after_a_password_change_the_page_asks_to_review_passkeys(service: Service) -> None:
    ada = await Person.arrive(service)
    ada.codes = recovery_codes(await ada.add_passkey())
    assert LOOK_AT_FACTORS in await change_password(ada)
    assert not says(await ada.browser.get(SECURITY), LOOK_AT_FACTORS)


async def test_without_a_second_step_there_is_no_review(service: Service) -> None:
    page = await change_password(await Person.arrive(service))
    assert "Your password was changed." in page
    assert LOOK_AT_FACTORS not in page


async def test_the_advice_names_what_a_new_password_does_not_end(service: Service, site: Site, box: Kept) -> None:
    ada = await Person.arrive(service)
    advice = text_of(await ada.browser.get(SECURITY)).partition("Recent activity")[2]
    await change_password(ada)
    await settled(site)
    subjects = ("New sign-in to your account", "Your password was changed")
    for text in (advice, *[plain_text(await box.newest(EMAIL, subject)) for subject in subjects]):
        assert "passkey" in text
        assert "authenticator app" in text
    browser = service.browser()
    await browser.submit(await browser.get("/forgot"), "/forgot", email=EMAIL)
    await settled(site)
    link = link_in(await box.newest(EMAIL, "Set a new password"))
    done = await browser.submit(await browser.get(link), "/reset", new_password="a third horse battery")
    assert says(done, "passkey")
    assert says(done, "authenticator app")


# New sign-ins


def seen_elsewhere(box: Kept, email: str = EMAIL) -> int:
    return sum(mail["Subject"] == "New sign-in to your account" for mail in box.to(email))


async def sign_in(service: Service, agent: str) -> Browser:
    browser = service.browser()
    browser.agent = agent
    assert (await browser.sign_in()).code == 303
    return browser


async def test_simultaneous_sign_ins_are_mailed_once(service: Service, site: Site, box: Kept) -> None:
    await asyncio.gather(*(sign_in(service, "Thief/1.0") for _ in range(8)))
    await settled(site)
    assert seen_elsewhere(box) == 1
    await sign_in(service, "Thief/1.1")
    await settled(site)
    assert seen_elsewhere(box) == 1


async def test_a_sign_in_is_mailed_even_if_its_session_ends_at_once(service: Service, site: Site, box: Kept) -> None:
    """Like a thief who has what was wanted and signs out at once."""
    credentials = await service.store.people.credentials(EMAIL)
    assert credentials is not None
    thief = Visitor("192.0.2.99", "Thief/1.0")
    found = await service.store.sessions.start(credentials, thief)
    await service.store.operator.set_status(service.ada, "disabled")
    mails.new_sign_in(site, found, thief)
    await settled(site)
    assert seen_elsewhere(box) == 1


async def test_scripts_report_earlier_sign_ins(store: Store) -> None:
    world = await World.make(store)
    credentials = await store.people.credentials(world.email)
    assert credentials is not None
    places = [Visitor(f"192.0.2.{number}", "Testing/1.0") for number in range(8)]
    found = await asyncio.gather(*(store.sessions.start(credentials, place) for place in places))
    assert sorted(len(one.before) for one in found) == list(range(2, 10)), "the sign-up, the first, and each other"
    assert {one.warned for one in found} == {Warned((world.email,))}
    device = await add_passkey(world)
    half = await half_of(world)
    with_code = await store.second_step.with_code(half, world.codes.pop(), VISITOR)
    assert len(with_code.before) == 10
    challenge = await store.second_step.challenge(None)
    answer = read_answer(device.get(options_for_use(RELYING_PARTY, challenge)))
    with_passkey = await store.second_step.with_passkey(None, RELYING_PARTY, challenge, answer, VISITOR)
    assert [entry.event for entry in with_passkey.before][:2] == ["signed_in_by_recovery", "signed_in"]
    assert [entry.event for entry in with_passkey.before][-1] == "signed_up"


async def test_other_events_hide_no_sign_in(store: Store) -> None:
    """A thief would rename the account, or download it, until the sign-ins drop out of the checked events."""
    world = await World.make(store)
    for _ in range(206):
        await store.sessions.note(world.session, "account_downloaded", VISITOR)
    credentials = await store.people.credentials(world.email)
    assert credentials is not None
    before = (await store.sessions.start(credentials, VISITOR)).before
    assert [entry.event for entry in before] == ["signed_in", "signed_up"]
