"""Passkeys over HTTP."""

from __future__ import annotations

from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from tests.support.browser.second_factors import CONFIRM, PASSKEYS, SECURITY, Person, recovery_codes, says
from tests.support.http.driver import FRESH, Browser, Service, fields_of
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test(timeout=60)


async def test_a_passkey_confirms_each_change(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_passkey()
    options = await ada.options(f"{CONFIRM}/options")
    page = await ada.browser.get(SECURITY)
    lie = await ada.browser.submit(page, CONFIRM, credential=ada.device.get(options, signature=b"0" * 70))
    assert (lie.code, says(lie, "That passkey can't be used here")) == (400, True)
    broken = await ada.browser.submit(page, CONFIRM, credential="{}")
    assert (broken.code, says(broken, "That passkey can't be used here")) == (400, True)
    options = await ada.options(f"{CONFIRM}/options")
    answer = await ada.browser.submit(page, CONFIRM, credential=ada.device.get(options))
    assert answer.headers["Location"] == f"{SECURITY}?confirmed"
    page = await ada.browser.get(SECURITY)
    renewed = await ada.browser.submit(page, f"{SECURITY}/recovery")
    assert says(renewed, "we show them only once")
    assert (await ada.browser.submit(page, f"{SECURITY}/recovery")).code == 403, "it is good for one change"


async def test_a_passkey_is_added_and_signs_in_alone(service: Service) -> None:
    ada = await Person.arrive(service)
    done = await ada.add_passkey("Phone <b>")
    assert (done.code, says(done, "Your passkey was added.")) == (200, True)
    page = await ada.browser.get(SECURITY)
    assert "Phone &lt;b&gt;" in page.body.decode()

    browser = service.browser()
    options = await ada.options("/signin/passkey/options", browser, "/signin?next=/account")
    assert options["allowCredentials"] == []
    form = await browser.get("/signin?next=/account")
    answer = await browser.submit(form, "/signin/passkey", credential=ada.device.get(options))
    assert (answer.code, answer.headers["Location"]) == (303, "/account")
    assert (await browser.get("/account")).code == 200
    again = await browser.submit(form, "/signin/passkey", credential=ada.device.get(options))
    assert again.code == 403, "the earlier XSRF token is gone"
    form = await browser.get(f"/signin?next={FRESH}")
    again = await browser.submit(form, "/signin/passkey", credential=ada.device.get(options))
    assert (again.code, says(again, "Try again")) == (400, True)


@pytest.mark.parametrize("credential", ["", "null", "{}", "[" * 5_000, '{"id":"AAAA","response":{}}'])
async def test_broken_answers_are_refused_on_the_page(service: Service, credential: str) -> None:
    ada = await Person.arrive(service)
    page = await service.browser().get("/signin")
    assert 'data-passkey="get"' in page.body.decode()
    browser = service.browser()
    page = await browser.get("/signin")
    assert (await browser.submit(page, "/signin/passkey", credential=credential)).code == 400
    await ada.reauth()
    page = await ada.browser.get(SECURITY)
    assert (await ada.browser.submit(page, PASSKEYS, credential=credential)).code == 400


async def test_a_passkey_is_renamed_and_signs_in_as_before(service: Service, clock: FakeClock) -> None:
    ada = await Person.arrive(service)
    ada.codes = recovery_codes(await ada.add_passkey("My phone"))
    await ada.reauth(ada.codes.pop())
    rename = f"{PASSKEYS}/rename"

    async def send(name: str) -> HTTPResponse:
        return await ada.browser.submit(await ada.browser.get(SECURITY), rename, name=name)

    long = await send(f"Old phone {'x' * 51}")
    assert (long.code, says(long, "A passkey's name can have at most 60 characters.")) == (400, True)
    answer = await send(f"  Old   phone {'x' * 50}")
    assert answer.headers["Location"] == "/account/security?passkey-renamed"
    page = await ada.browser.get("/account/security?passkey-renamed")
    assert says(page, "The passkey was renamed.")
    assert says(page, f"Old phone {'x' * 50} ")
    assert not says(page, "My phone")
    assert says(page, "Passkey renamed")
    empty = await send(" ")
    assert (empty.code, says(empty, "Enter a name for the passkey.")) == (400, True)
    fields = {**fields_of(page, rename), "credential": "AAAA", "name": "x"}
    assert (await ada.browser.send(rename, "POST", form=fields)).code == 404

    half = await ada.half()
    options = await ada.options("/signin/second/options", half, "/signin/second")
    signed = ada.device.get(options)
    done = await half.submit(await half.get("/signin/second"), "/signin/second", credential=signed)
    assert done.code == 303
    clock.advance(11 * 60)
    fields["credential"] = ada.device.credential
    assert (await ada.browser.send(rename, "POST", form=fields)).code == 403, "only who proved it is them a moment ago"


async def test_a_passkey_is_removed(service: Service) -> None:
    ada = await Person.arrive(service)
    ada.codes = recovery_codes(await ada.add_passkey())
    await ada.reauth(ada.codes.pop())
    page = await ada.browser.get(SECURITY)
    answer = await ada.browser.submit(page, f"{PASSKEYS}/remove")
    assert answer.headers["Location"] == "/account/security?passkey-removed"
    assert says(await ada.browser.get(answer.headers["Location"]), "The passkey was removed.")
    assert (await ada.browser.submit(page, f"{PASSKEYS}/remove")).code == 404


class TestWithoutAName:
    """The server's address is an IP address, not a name."""

    @pytest.fixture
    def site(self, memory_store: Any) -> Site:
        return Site(memory_store, "http://127.0.0.1:8080")

    async def test_passkeys_are_not_offered_and_the_page_says_why(self, service: Service, base_url: str) -> None:
        service.base_url = base_url
        ada = Person(service, Browser(base_url))
        await ada.browser.sign_in()
        await ada.reauth()
        page = await ada.browser.get(SECURITY)
        assert says(page, "Passkeys don’t work at this address")
        xsrf = fields_of(page, SECURITY)["_xsrf"]
        setup = "/signin/setup/passkey"
        for path in (
            *("/signin/passkey", "/signin/passkey/options", PASSKEYS, f"{PASSKEYS}/options"),
            *(setup, f"{setup}/options"),
        ):
            assert (await ada.browser.send(path, "POST", form={"_xsrf": xsrf})).code == 400
        assert "passkey" not in (await Browser(base_url).get("/signin")).body.decode()
        service.store.sessions.required.who = "all"
        other = Browser(base_url)
        page = await other.get((await other.sign_in()).headers["Location"])
        assert (says(page, "Scan this QR code"), says(page, "passkey")) == (True, False)
        service.store.sessions.required.who = "off"
        assert (await ada.add_app()).code == 200
