"""Which id of a person an owner's app gets: chosen when the app is registered, and never changed."""

from __future__ import annotations

import pytest

from tests.apps.test_portal_proofs import change, stored
from tests.support.browser.own_apps import URI, client_id_of, facts, register, secret_of, site
from tests.support.http.driver import App, Service, json_of, text_of

__all__ = ["facts", "site"]  # fixtures

PAIRWISE = {"subject_type": "pairwise"}


@pytest.mark.gen_test
async def test_an_owner_chooses_an_id_of_the_apps_own(service: Service) -> None:
    browser = await service.confirmed()
    page = await register(browser, **PAIRWISE)
    app = App(service.base_url, client_id_of(page), secret_of(page), URI)
    tokens = await service.tokens(app, browser, scope="profile")
    sub = json_of(await app.userinfo(tokens["access_token"]))["sub"]
    assert sub.startswith("pw_")
    public = await register(browser)
    assert (await stored(service, client_id_of(public))).subject_type == "public"


@pytest.mark.gen_test
async def test_the_choice_is_fixed_and_shown(service: Service) -> None:
    browser = await service.confirmed()
    client_id = client_id_of(await register(browser, **PAIRWISE))
    saved = await change(browser, client_id, subject_type="public", homepage="https://mine.example/")
    assert saved.code == 303
    app = await stored(service, client_id)
    assert (app.subject_type, app.homepage) == ("pairwise", "https://mine.example/")
    page = await browser.get(f"/developer/apps/{client_id}/settings")
    assert "only apps at mine.example get the same one" in text_of(page)
    assert 'name="subject_type"' not in page.body.decode()


@pytest.mark.gen_test
async def test_an_owner_hears_of_ids_only_at_their_own_host(service: Service) -> None:
    """Whoever registers an app with the redirect URI of another site would learn its ids of people: by events."""
    browser = await service.confirmed()
    there, here = "https://evil.example/hook", "https://mine.example/hook"
    refused = await register(browser, **PAIRWISE, backchannel_logout_uri=there)
    assert (refused.code, "only URLs at mine.example" in text_of(refused)) == (400, True)
    client_id = client_id_of(await register(browser, **PAIRWISE, backchannel_logout_uri=here))
    assert (await change(browser, client_id, backchannel_logout_uri=there)).code == 400
    webhooks = f"/developer/apps/{client_id}/webhooks"
    refused = await browser.submit(await browser.get(webhooks), webhooks, url=there)
    assert (refused.code, "only URLs at mine.example" in text_of(refused)) == (400, True)
    app = await stored(service, client_id)
    assert (app.backchannel_logout_uri, app.webhook_url) == (here, "")
    # What the operator set stays, and for a verified app the operator vouches.
    await service.store.webhooks.set_url(client_id, there)
    assert (await browser.submit(await browser.get(webhooks), webhooks, url=there)).code in (200, 303)
    await service.store.apps.update(client_id, verified=True)
    assert (await change(browser, client_id, backchannel_logout_uri=there)).code == 303
    public = client_id_of(await register(browser))
    assert (await change(browser, public, backchannel_logout_uri=there)).code == 303


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"subject_type": "secret"}, "Choose one of these."),
        ({**PAIRWISE, "redirect_uris": f"{URI}\nhttps://other.example/cb"}, "Use redirect URIs of one host"),
    ],
)
async def test_a_wrong_choice_registers_nothing(service: Service, fields: dict[str, str], said: str) -> None:
    browser = await service.confirmed()
    page = await register(browser, **fields)
    assert page.code == 400
    assert said in text_of(page)
    assert b"lk_cs_" not in page.body


@pytest.mark.gen_test
async def test_an_owners_pairwise_app_uses_no_devices(service: Service) -> None:
    """A device needs no redirect URI, so the owner would learn the ids of a site that is not theirs."""
    browser = await service.confirmed()
    refused = await register(browser, **PAIRWISE, device_grant="on")
    assert (refused.code, "can’t sign people in on devices" in text_of(refused)) == (400, True)
    client_id = client_id_of(await register(browser, **PAIRWISE))
    assert (await change(browser, client_id, device_grant="on")).code == 400
    await service.store.apps.update(client_id, verified=True)
    assert (await change(browser, client_id, device_grant="on")).code == 303
