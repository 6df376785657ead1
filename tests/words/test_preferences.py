"""What a person chose of how pages and mails read: kept with the person, shown by every page, used by every mail."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from dev.words import pseudo
from dev.words.pseudo import LONGER
from handlers.core.application import Latchkey
from handlers.core.mails import spoken
from handlers.core.site import Site
from handlers.core.words.languages import Languages, shipped
from handlers.core.words.wording import Wording
from handlers.core.words.zones import offered, places, zone_of
from store.refused import SignedOut
from store.results import NO_CHOICE, Preferences
from store.wiring import Store
from tests.support.http.driver import Browser, Service
from tests.support.lists.offenders import each
from tests.support.store.world import VISITOR, World, refusal_of

pytestmark = pytest.mark.gen_test
MADE = pseudo.languages(LONGER)
BOTH = Preferences("en_XA", "Asia/Kolkata")


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return Site(memory_store, base_url, languages=Languages([*shipped().all, *MADE.all]))


async def chosen(service: Service, browser: Browser) -> Preferences:
    session = service.store.sessions.open(browser.cookies["latchkey_session"])
    assert session
    return (await service.store.sessions.profile(session)).preferences


async def test_preferences_are_kept_with_the_person_and_known_with_the_profile(store: Store) -> None:
    world = await World.make(store)
    assert (await store.sessions.profile(world.session)).preferences == NO_CHOICE
    for preferences in (BOTH, BOTH, Preferences("", "UTC"), Preferences("en_XA", ""), NO_CHOICE):
        await store.profiles.prefer(world.session, preferences, VISITOR)
        profile, _ = await store.sessions.activity(world.session)
        page = await store.grants.list(world.session, 1)
        for seen in (profile, page.profile, await store.factors.of(world.session)):
            assert seen.preferences == preferences
        assert (await store.sessions.profile(world.session)).warned.preferences == preferences
    assert (await world.events()).count("preferences_changed") == 4
    row = await store.client.hgetall(f"{{{world.user[:3]}}}:{world.user}:user")
    assert not {b"language", b"zone"} & set(row)


async def test_only_who_is_signed_in_chooses(store: Store) -> None:
    world = await World.make(store)
    await store.sessions.end(world.session, VISITOR)
    with pytest.raises(SignedOut):
        await store.profiles.prefer(world.session, BOTH, VISITOR)


async def test_changes_are_limited(memory_store: Store) -> None:
    world = await World.make(memory_store)
    zones = [Preferences("", zone) for zone in offered()[:30]]
    refusals = [await refusal_of(memory_store.profiles.prefer(world.session, one, VISITOR)) for one in zones]
    assert refusals == [None] * 20 + ["rate_limited"] * 10


async def test_a_person_chooses_on_a_page(service: Service) -> None:
    browser = await service.signed_in()
    page = await browser.get("/account/language")
    assert page.code == 200
    assert len(page.body) < 40_000
    done = await browser.submit(page, "/account/language", language="en_XA", zone="Asia/Kolkata")
    assert (done.code, done.headers["Location"]) == (303, "/account?preferences")
    assert await chosen(service, browser) == BOTH
    page = await browser.get("/account/language")
    assert page.headers["Content-Language"] == "en-XA"
    text = page.body.decode()
    assert re.findall(r'<option value="([^"]*)"[^>]* selected>', text) == ["en_XA", "Asia/Kolkata"]
    await browser.submit(page, "/account/language", language="", zone="")
    assert await chosen(service, browser) == NO_CHOICE


async def test_a_server_with_one_language_does_not_ask_for_it(service: Service, app: Latchkey) -> None:
    browser = await service.signed_in()
    assert 'name="language"' in (await browser.get("/account/language")).body.decode()
    app.site = replace(app.site, languages=shipped().only(["en"]))
    page = await browser.get("/account/language")
    assert 'name="language"' not in page.body.decode()
    assert (await browser.submit(page, "/account/language", zone="UTC")).code == 303


@each("wrong", [{"language": "tlh"}, {"zone": "Mars/Olympus"}, {"zone": "../../etc/passwd"}, {"zone": "x" * 10_000}])
async def test_nothing_else_is_kept(service: Service, wrong: dict[str, str]) -> None:
    browser = await service.signed_in()
    page = await browser.get("/account/language")
    refused = await browser.submit(page, "/account/language", **{"language": "", "zone": "", **wrong})
    assert refused.code == 400
    assert "Choose a language and a time zone from the lists" in refused.body.decode()
    assert await chosen(service, browser) == NO_CHOICE


async def test_every_zone_of_the_list_exists_and_every_place_has_a_name() -> None:
    listed = [name for _, rows in places("en_GB") for name, _ in rows]
    assert {"UTC", *listed} == set(offered())
    assert [name for name in offered() if zone_of(name) is None] == []
    assert all(place for _, rows in places("en_GB") for _, place in rows)
    assert {"Europe/Berlin", "America/Argentina/Buenos_Aires", "Asia/Kolkata"} <= set(listed)


async def test_a_mail_speaks_as_its_person_chose_else_like_the_request(memory_store: Store) -> None:
    site = Site(memory_store, "https://id.example", languages=Languages([shipped().default, *MADE.all]))
    english, longer = (Wording(one) for one in site.languages.all)
    assert spoken(site, NO_CHOICE) == english
    assert spoken(site, NO_CHOICE, longer) == longer
    assert spoken(site, BOTH, english) == Wording(longer.language, zone_of("Asia/Kolkata") or english.zone)
    assert spoken(site, Preferences("tlh", "Mars"), longer) == longer, "a language that is gone"
