"""Suspended people: what they read, when a suspension ends, and what it takes to learn of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from store.operations import Suspension
from store.refused import SignedOut, Suspended
from store.wiring import Store
from tests.support.browser.second_factors import Person, says
from tests.support.browser.signup import signed_in_as
from tests.support.http.driver import EMAIL, Service
from tests.support.lists.offenders import each
from tests.support.processes.engines import FakeClock
from tests.support.store.world import PASSWORD, World

pytestmark = pytest.mark.gen_test

REASON, NOTE = "Unpaid <b>since</b> May", "Ticket 4711"


async def test_a_suspended_person_with_the_right_password_reads_the_reason(service: Service) -> None:
    ada = await service.signed_in()
    await service.store.operator.suspend(EMAIL, Suspension(REASON, NOTE))
    assert await signed_in_as(ada) is None, "every session ended"
    page = await service.browser().sign_in()
    assert page.code == 403
    assert "Your account is suspended: Unpaid &lt;b&gt;since&lt;/b&gt; May" in page.body.decode()
    assert NOTE not in page.body.decode()
    wrong = await service.browser().sign_in(password="wrong password")
    assert (wrong.code, says(wrong, "suspended")) == (400, False)
    await service.store.operator.set_status(EMAIL, "active")
    assert await signed_in_as(await service.signed_in()) == EMAIL


async def test_a_second_step_is_not_asked_of_a_suspended_person(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    await service.store.operator.suspend(EMAIL, Suspension(REASON))
    page = await service.browser().sign_in()
    assert (page.code, says(page, "Your account is suspended")) == (403, True)


async def test_a_suspended_person_with_a_passkey_reads_the_reason_and_a_stranger_does_not(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_passkey("Phone")
    await service.store.operator.suspend(EMAIL, Suspension(REASON))
    browser = service.browser()
    options = await ada.options("/signin/passkey/options", browser, "/signin")
    page = await browser.submit(await browser.get("/signin"), "/signin/passkey", credential=ada.device.get(options))
    assert (page.code, says(page, "Your account is suspended")) == (400, True)
    options = await ada.options("/signin/passkey/options", browser, "/signin")
    other = ada.device.get({**options, "challenge": options["challenge"][::-1]})
    page = await browser.submit(await browser.get("/signin"), "/signin/passkey", credential=other)
    assert (page.code, says(page, "suspended")) == (400, False)


async def test_a_suspension_ends_at_the_first_sign_in_after_its_time(memory_store: Store, clock: FakeClock) -> None:
    store = memory_store
    world = await World.make(store)
    until = datetime.fromtimestamp(int(clock.time()), UTC) + timedelta(days=2)
    person = await store.operator.suspend(world.email, Suspension(REASON, NOTE, until))
    assert (person.status, person.suspension) == ("disabled", Suspension(REASON, NOTE, until))
    with pytest.raises(Suspended):
        await store.people.verify(world.email, PASSWORD)
    clock.advance(2 * 86400 + 1)
    found = await store.people.verify(world.email, PASSWORD)
    assert found is not None
    assert found.active
    after = await store.operator.find(world.email)
    assert (after.status, after.suspension) == ("active", None)
    assert [entry.event for entry in after.activity[:2]] == ["suspension_ended", "suspended_by_operator"]
    with pytest.raises(SignedOut):
        await store.sessions.profile(world.session)


async def test_a_changed_reason_is_noted_and_disabling_forgets_it(store: Store) -> None:
    world = await World.make(store)
    for reason in ("One", "One", "Two"):
        await store.operator.suspend(world.email, Suspension(reason))
    person = await store.operator.find(world.email)
    assert [entry.event for entry in person.activity].count("suspended_by_operator") == 2
    assert (await store.operator.set_status(world.email, "disabled")).suspension is None
    with pytest.raises(Suspended) as refused:
        await store.people.verify(world.email, PASSWORD)
    assert refused.value.description == "Your account is suspended."


@each("reason", ["", "  ", "two\nlines", "x" * 501])
async def test_a_reason_is_one_short_line(store: Store, reason: str) -> None:
    world = await World.make(store)
    with pytest.raises(ValueError, match=r"[Rr]eason"):
        await store.operator.suspend(world.email, Suspension(reason))
    assert (await store.operator.find(world.email)).status == "active"
