"""What a device's request may carry: keys, APIs, ways to authenticate; and what its page demands of the person."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.application import Latchkey
from handlers.oauth.pushed_record import write_record
from store.oauth.device_requests import GRANT_TYPE
from store.results import Visitor
from tests.oauth.device.devices import ENDPOINT, Device, a_console, a_tv, ask, decide, let_in, type_code
from tests.support.browser.mailbox import Kept, mailer
from tests.support.http.api_shop import BILLS, ORDERS, Shop, at
from tests.support.http.dpop_app import Device as Key
from tests.support.http.driver import PASSWORD, Service, fields_of, json_of, send

pytestmark = pytest.mark.gen_test(timeout=60)


def error_of(response: HTTPResponse) -> str:
    assert response.code in (400, 401), response.body
    return str(json_of(response)["error"])


async def test_a_proof_at_the_beginning_binds_the_tokens_to_its_key(service: Service) -> None:
    tv, key, thief = await a_tv(service), Key(), Key()
    token = f"{service.base_url}/api/oauth/token"

    async def poll(device: Device, key: Key | None) -> HTTPResponse:
        form = {"grant_type": GRANT_TYPE, "device_code": device.codes["device_code"], "client_id": "tv"}
        return await send(token, "POST", form=form, headers={"DPoP": key.proof("POST", token)} if key else {})

    begun = await ask(tv, headers={"DPoP": key.proof("POST", service.base_url + ENDPOINT)})
    assert "DPoP-Nonce" in begun.headers
    named = await ask(tv, dpop_jkt=key.jkt)
    for response in (begun, named):
        device = Device(tv, json_of(response))
        await let_in(await service.signed_in(), device)
        assert error_of(await poll(device, None)) == "invalid_grant"
        assert error_of(await poll(device, thief)) == "invalid_grant"
        assert json_of(await poll(device, key))["token_type"] == "DPoP"
    assert error_of(await ask(tv, dpop_jkt="short")) == "invalid_request"
    await service.store.apps.update("tv", dpop_required=True)
    assert error_of(await poll(await Device.begun(tv), None)) == "invalid_dpop_proof"


async def test_a_device_gets_a_token_for_an_api(service: Service) -> None:
    await Shop.open(service)  # registers the APIs
    app = await service.add_app("meter", public=True, scopes=("profile",), api_scopes=at(ORDERS, "read", "write"))
    device, browser = await Device.begun(app, scope="read write", resource=ORDERS.identifier), await service.signed_in()
    page = await type_code(browser, device.user_code)
    assert "Orders" in page.body.decode()
    await decide(browser, page, untick=("write",))
    tokens = json_of(await device.poll())
    assert tokens["scope"] == "read"
    wrong = await ask(app, scope="read", resource=BILLS.identifier)
    assert error_of(wrong) == "invalid_target"


@pytest.mark.rfc("8628 3.4 authentication")
async def test_an_app_proves_itself_at_both_ends(service: Service) -> None:
    console = await a_console(service)
    device = await Device.begun(console)
    for secret in (None, "wrong"):
        assert error_of(await ask(console, client_secret=secret)) == "invalid_client"
        assert error_of(await device.poll(client_secret=secret)) == "invalid_client"
    assert await device.hears() == "authorization_pending"


@pytest.mark.rfc("8628 3.1 ignored")
async def test_malformed_requests_are_refused(service: Service) -> None:
    tv = await a_tv(service)
    assert (await ask(tv, nothing="", unknown="x")).code == 200
    assert error_of(await ask(tv, scope=None)) == "invalid_request"
    assert error_of(await ask(tv, scope="")) == "invalid_request"
    assert error_of(await ask(tv, scope="admin")) == "invalid_scope"
    assert error_of(await ask(tv, client_id="nobody")) == "invalid_client"
    doubled = await send(f"{service.base_url}{ENDPOINT}", "POST", body="client_id=tv&scope=profile&scope=profile")
    assert error_of(doubled) == "invalid_request"
    device = await Device.begun(tv)
    assert error_of(await device.poll(device_code=None)) == "invalid_request"
    for wrong in ("x", "lk_dc_", device.codes["device_code"][:-1], device.user_code, "lk_dc_" + "A" * 5000):
        assert error_of(await device.poll(device_code=wrong)) == "invalid_grant"


async def test_a_changed_registration_voids_what_waits(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    before, during = await Device.begun(tv), await Device.begun(tv)
    page = await type_code(browser, during.user_code)
    await service.store.apps.update("tv", scopes=("profile",))
    assert (await type_code(browser, before.user_code)).code == 400
    assert (await decide(browser, page)).code == 400
    await let_in(browser, await Device.begun(tv, scope="profile"))


async def test_a_request_that_a_later_release_kept_begins_again(
    service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    with monkeypatch.context() as later:
        later.setattr(
            "handlers.oauth.device.authorization.write_record",
            lambda record: write_record(record)[:-1] + ',"a condition that nobody knew"]',
        )
        device = await Device.begun(tv)
    assert (await type_code(browser, device.user_code)).code == 400
    await let_in(browser, await Device.begun(tv))


async def test_no_app_sees_an_address_that_nobody_confirmed(service: Service, app: Latchkey) -> None:
    tv, mails = await a_tv(service), Kept()
    app.site = replace(app.site, mail=mailer(mails))
    person = "new@example.com", "New", PASSWORD
    await service.store.people.create(*person, verified=False, event="signed_up", visitor=Visitor())
    browser = await service.signed_in("new@example.com")
    device = await Device.begun(tv)
    page = await type_code(browser, device.user_code)
    assert "First, confirm your e-mail address" in page.body.decode()
    assert b'name="decision"' not in page.body
    assert f"/device?user_code={device.user_code}" in page.body.decode()


async def test_a_person_who_is_signed_out_comes_back_with_the_code(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    device = await Device.begun(tv)
    page = await browser.get("/device")
    del browser.cookies["latchkey_session"]
    away = await browser.submit(page, "/device", user_code=device.user_code)
    assert away.code == 303
    assert away.headers["Location"] == f"/signin?next=%2Fdevice%3Fuser_code%3D{device.user_code}"


async def test_json_clients_get_where_to_go_on(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    device = await Device.begun(tv)
    page = await type_code(browser, device.user_code)
    fields = fields_of(page, "/api/oauth/authorize")
    body = {"request_id": fields["request_id"], "decision": "allow", "scopes": ["profile"]}
    headers = {"Content-Type": "application/json", "Accept": "application/json", "X-Xsrftoken": fields["_xsrf"]}
    answer = await browser.send("/api/oauth/authorize", "POST", body=json.dumps(body), headers=headers)
    assert json_of(answer) == {"redirect_to": f"{service.base_url}/device?connected"}
    assert json_of(await device.poll())["scope"] == "profile"


async def test_the_activity_names_the_device_s_app(service: Service) -> None:
    tv, browser = await a_tv(service), await service.signed_in()
    await let_in(browser, await Device.begun(tv))
    page = (await browser.get("/account/security/activity")).body.decode()
    assert "App connected on a device" in page
