"""Which id of a person an owner's app gets: chosen when the app is registered, and never changed."""

from __future__ import annotations

import pytest

from tests.apps.test_portal_proofs import change, stored
from tests.support.browser.own_apps import URI, client_id_of, facts, register, secret_of, site, text_of
from tests.support.http.driver import App, Service, json_of

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
    assert "People have an ID that only apps at mine.example get" in text_of(page)
    assert 'name="subject_type"' not in page.body.decode()


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
