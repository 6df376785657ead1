"""An app for members of groups: who may begin, who may decide, and who may refresh."""

from __future__ import annotations

import json

import pytest

from tests.oauth.assertions.identity_provider import Enterprise, granted, refused
from tests.oauth.device.devices import Device, type_code
from tests.support.http.driver import EMAIL, Service, answer_of, fields_of, json_of

pytestmark = pytest.mark.gen_test
GROUPS = ("editors", "staff")
DECIDE = "/api/oauth/authorize"
KEPT_OUT = "is only for members of certain groups"


async def join(service: Service, *groups: str) -> None:
    """Ada is in these groups, and in no others."""
    person = await service.store.operator.find(EMAIL)
    await service.store.groups.change(person.user, person.groups, add=groups, remove={*person.groups} - {*groups})


async def test_only_members_get_a_code(service: Service) -> None:
    app = await service.add_app("newsroom", allowed_groups=GROUPS)
    browser = await service.signed_in()
    page = (await browser.get(app.authorize_url())).body.decode()
    assert KEPT_OUT in page
    assert "error=access_denied" in page, "the way back"
    assert "editors" not in page, "the names of groups are for the operator"
    await join(service, "staff of another house")
    assert KEPT_OUT in (await browser.get(app.authorize_url())).body.decode()
    await join(service, "staff")
    assert "code" in answer_of(await browser.consent(app.authorize_url()))
    assert "code" in answer_of(await browser.get(app.authorize_url()))
    await join(service)
    assert KEPT_OUT in (await browser.get(app.authorize_url())).body.decode(), "remembered consent does not help"
    assert answer_of(await browser.get(app.authorize_url(prompt="none")))["error"] == "access_denied"


async def test_an_app_learns_nothing_about_who_is_signed_in_by_guessing(service: Service) -> None:
    app = await service.add_app("newsroom", allowed_groups=GROUPS, scopes=("openid", "profile"))
    browser = await service.signed_in()
    errors = set()
    for sub in (service.ada, "0" * 32):
        claims = json.dumps({"id_token": {"sub": {"value": sub}}})
        answer = answer_of(await browser.get(app.authorize_url(scope="openid", prompt="none", claims=claims)))
        errors.add((answer["error"], answer["error_description"]))
    assert errors == {("login_required", "The person has to sign in.")}


async def test_a_decision_needs_the_group_too(service: Service) -> None:
    app = await service.add_app("newsroom", allowed_groups=GROUPS)
    browser = await service.signed_in()
    await join(service, "staff")
    form = fields_of(await browser.get(app.authorize_url()), DECIDE)
    await join(service)
    assert (await browser.send(DECIDE, "POST", form={**form, "decision": "allow"})).code == 400
    assert (await service.store.operator.find(EMAIL)).apps == ()


async def test_a_change_of_the_groups_voids_open_pages(service: Service) -> None:
    app = await service.add_app("newsroom")
    browser = await service.signed_in()
    await join(service, "staff")
    form = fields_of(await browser.get(app.authorize_url()), DECIDE)
    await service.store.apps.update("newsroom", allowed_groups=GROUPS)
    assert (await browser.send(DECIDE, "POST", form={**form, "decision": "allow"})).code == 400


async def test_who_leaves_the_group_is_not_refreshed_until_they_are_back(service: Service) -> None:
    app = await service.add_app("newsroom", allowed_groups=GROUPS)
    browser = await service.signed_in()
    await join(service, "editors")
    tokens = await service.tokens(app, browser)
    await join(service)
    answer = await app.refresh(tokens["refresh_token"])
    assert (answer.code, json_of(answer)["error"]) == (400, "invalid_grant")
    await join(service, "staff")
    assert (await app.refresh(tokens["refresh_token"])).code == 200


async def test_nobody_outside_lets_a_device_in(service: Service) -> None:
    app = await service.add_app("newsroom", allowed_groups=GROUPS)
    device, browser = await Device.begun(app), await service.signed_in()
    assert (await type_code(browser, device.user_code)).code == 403
    await join(service, "staff")
    assert (await type_code(browser, device.user_code)).code == 200


async def test_an_issuer_connects_nobody_from_outside(enterprise: Enterprise, service: Service) -> None:
    await service.store.apps.update("web-app", allowed_groups=GROUPS)
    status, code, _ = await refused(service.web, enterprise.assertion(scope="profile"))
    assert (status, code) == (400, "invalid_grant")
    await join(service, "staff")
    assert (await granted(service.web, enterprise.assertion(scope="profile")))["scope"] == "profile"


async def test_an_assertion_counts_only_with_a_second_step_in_it(enterprise: Enterprise, service: Service) -> None:
    service.store.apis.stepped = ("email",)
    for amr in (["pwd"], None, "mfa"):
        answer = await granted(service.web, enterprise.assertion(scope="profile email data:read", amr=amr))
        assert answer["scope"] == "data:read", amr
    assert (await granted(service.web, enterprise.assertion(amr=["pwd", "mfa"], scope="email")))["scope"] == "email"
    await service.store.apps.update("web-app", second_step=True)
    status, code, _ = await refused(service.web, enterprise.assertion(scope="data:read"))
    assert (status, code) == (400, "invalid_grant")
    assert (await granted(service.web, enterprise.assertion(amr=["mfa"], scope="profile")))["scope"] == "profile"
