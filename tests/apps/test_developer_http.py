"""The developer portal over HTTP: as the owner, as somebody else, signed out, and with hostile input."""

from __future__ import annotations

import html
import re
from dataclasses import replace

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from store import keys
from store.apps.client_secrets import secret_mark
from store.credits.prices import TokenCounts
from tests.support.browser.own_apps import URI, client_id_of, facts, own_app, register, secret_of, site
from tests.support.http.driver import App, Service, fields_of, json_of, send, text_of

__all__ = ["facts", "site"]  # fixtures


@pytest.mark.gen_test
async def test_changes_to_an_app_take_effect_at_once(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}"
    page = await browser.get(f"{where}/settings")
    form = fields_of(page, where)
    assert form["scope:profile"] == "on"
    new = "https://mine.example/other"
    changed = await browser.send(where, "POST", form={**form, "name": "Other", "redirect_uris": new})
    assert (changed.code, changed.headers["Location"]) == (303, f"{where}/settings?saved")
    assert "Saved." in text_of(await browser.get(f"{where}/settings?saved"))
    assert (await browser.get(app.authorize_url(scope="profile"))).code == 400
    app.redirect_uri = new
    assert (await browser.get(app.authorize_url(scope="profile"))).code == 200
    wrong = await browser.send(where, "POST", form={**form, "name": "Third", "redirect_uris": "nonsense"})
    assert wrong.code == 400
    assert "Line 1: " in text_of(wrong)
    registration, _ = await service.store.apps.fresh(app.client_id)
    assert registration is not None
    assert registration.name == "Other"
    del form["scope:profile"]
    assert "at least one thing" in text_of(await browser.send(where, "POST", form={**form, "redirect_uris": new}))


@pytest.mark.gen_test
async def test_the_owner_can_set_document_refresh_and_library_options(service: Service) -> None:
    browser = await service.confirmed()
    page = await register(browser, **{"scope:data:read": "on"}, hosted_storage="on", refresh_retry_seconds=" 30 ")
    where = f"/developer/apps/{client_id_of(page)}"

    async def facts() -> tuple[bool, bool, int]:
        app, _ = await service.store.apps.fresh(client_id_of(page))
        assert app is not None
        return app.hosted_storage, app.iss_in_response, app.refresh_retry_seconds

    assert await facts() == (True, True, 30)
    shown = await browser.get(f"{where}/settings")
    assert 'name="refresh_retry_seconds" type="text" inputmode="numeric" value="30"' in shown.body.decode()
    assert "Only the operator of this server can change the kind of app" in text_of(shown)
    form = {**fields_of(shown, where), "name": "Mine", "redirect_uris": URI, "refresh_retry_seconds": "30"}
    assert form["hosted_storage"] == "on"
    assert "omit_iss" not in form
    assert (await browser.send(where, "POST", form={**form, "omit_iss": "on"})).code == 303
    assert await facts() == (True, False, 30)
    assert fields_of(await browser.get(f"{where}/settings"), where)["omit_iss"] == "on"
    del form["scope:data:read"]
    wrong = await browser.send(where, "POST", form=form)
    assert (wrong.code, "storage-error" in wrong.body.decode()) == (400, True)
    del form["hosted_storage"], form["refresh_retry_seconds"]
    assert (await browser.send(where, "POST", form=form)).code == 303
    assert await facts() == (False, True, 0)


@pytest.mark.gen_test
@pytest.mark.trap(35)
async def test_both_secrets_are_valid_until_the_old_one_is_ended(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}"
    page = await browser.submit(await browser.get(f"{where}/credentials"), f"{where}/rotate")
    assert page.code == 200
    newer = App(app.base_url, app.client_id, secret_of(page), URI)

    async def valid() -> list[int]:
        return [
            (await one.revoke("none", client_id=one.client_id, client_secret=one.secret or "")).code
            for one in (app, newer)
        ]

    assert await valid() == [200, 200]
    # The person reloads the page: the secret in use must stay.
    form = {"_xsrf": fields_of(page, f"{where}/end-secret")["_xsrf"]}
    again = await browser.send(f"{where}/rotate", "POST", form=form)
    assert again.code == 400
    assert b"lk_cs_" not in again.body
    assert await valid() == [200, 200]
    marks = re.findall(r'name="mark" value="(\w+)"', page.body.decode())
    ended = await browser.send(f"{where}/end-secret", "POST", form={**form, "mark": marks[1]})
    assert ended.code == 303
    assert await valid() == [401, 200]
    assert (await browser.send(f"{where}/end-secret", "POST", form={**form, "mark": marks[1]})).code == 404
    assert (await browser.send(f"{where}/end-secret", "POST", form={**form, "mark": marks[0]})).code == 400


@pytest.mark.gen_test
async def test_a_disabled_apps_tokens_are_refused_until_it_is_enabled(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    tokens = await service.tokens(app, browser, scope="profile")
    where = f"/developer/apps/{app.client_id}"
    assert (await browser.submit(await browser.get(f"{where}/settings"), f"{where}/status")).code == 303
    assert (await app.userinfo(tokens["access_token"])).code == 401
    assert "Switched off" in text_of(await browser.get("/developer/apps"))
    asked = await browser.get(app.authorize_url(scope="profile"))
    assert (asked.code, "Your app is switched off." in text_of(asked)) == (400, True)
    assert f'href="{where}"' in asked.body.decode()
    stranger = await service.signed_in((await service.add_person("eve@example.com"), "eve@example.com")[1])
    for somebody in (stranger, service.browser()):
        asked = await somebody.get(app.authorize_url(scope="profile"))
        assert (asked.code, "is not known to this server" in text_of(asked)) == (400, True)
        assert where not in asked.body.decode()
    assert (await browser.submit(await browser.get(f"{where}/settings"), f"{where}/status")).code == 303
    assert (await app.userinfo(tokens["access_token"])).code == 200
    xsrf = fields_of(await browser.get(f"{where}/settings"), f"{where}/status")["_xsrf"]
    assert (await browser.send(f"{where}/status", "POST", form={"_xsrf": xsrf, "status": "disabled"})).code == 400


@pytest.mark.gen_test
async def test_other_peoples_apps_are_404_and_signed_out_people_sign_in(service: Service) -> None:
    await service.add_person("eve@example.com")
    owner, eve = await service.signed_in(), await service.confirmed("eve@example.com")
    app = await own_app(service, owner)
    where = f"/developer/apps/{app.client_id}"
    stranger = service.browser()
    tabs = ("", "/settings", "/credentials", "/webhooks", "/usage", "/log", "/try", "/usage.csv", "/model-usage.csv")
    for path in ("/developer/apps", "/developer/register", *(where + tab for tab in tabs)):
        answer = await stranger.get(path)
        assert answer.code == 303
        assert answer.headers["Location"].startswith("/signin?next=%2Fdeveloper")
    xsrf = fields_of(await eve.get("/developer/register"), "/developer/register")["_xsrf"]
    other = await own_app(service, eve)
    for path in (*(where + tab for tab in tabs), f"/developer/apps/{service.web.client_id}"):
        assert (await eve.get(path)).code == 404
    form = {"_xsrf": xsrf, "name": "Mine", "redirect_uris": "https://evil.example/", "scope:profile": "on"}
    for action in ("", "/rotate", "/end-secret", "/status", "/delete", "/try"):
        extra = {"mark": "00000000", "status": "off", "confirm": "My App"}
        assert (await eve.send(where + action, "POST", form={**form, **extra})).code == 404, action
    registration, _ = await service.store.apps.fresh(app.client_id)
    assert registration is not None
    assert (registration.name, registration.redirect_uris, registration.active) == ("My App", (URI,), True)
    assert other.client_id not in text_of(await owner.get("/developer/apps"))


@pytest.mark.gen_test
@pytest.mark.trap(22)
async def test_every_form_needs_its_xsrf_token_and_the_same_origin(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}"
    xsrf = fields_of(await browser.get(f"{where}/settings"), where)["_xsrf"]
    paths = [where, *(f"{where}/{action}" for action in ("rotate", "end-secret", "status", "delete", "try"))]
    for path in ["/developer/register", *paths]:
        form = {"mark": "x", "status": "off", "confirm": "My App", "name": "X", "redirect_uris": URI}
        assert (await browser.send(path, "POST", form=form)).code == 403
        headers = {"Sec-Fetch-Mode": "navigate", "Sec-Fetch-Site": "same-origin"}
        assert (await browser.send(path, "POST", form=form, headers=headers)).code == 403
        evil = {"Origin": "https://evil.example"}
        assert (await browser.send(path, "POST", form={**form, "_xsrf": xsrf}, headers=evil)).code == 403
    assert await service.store.apps.active(app.client_id)


@pytest.mark.gen_test
async def test_settings_list_their_sections_and_errors_open_theirs(service: Service) -> None:
    browser = await service.confirmed()
    where = f"/developer/apps/{(await own_app(service, browser)).client_id}"
    page = (await browser.get(f"{where}/settings")).body.decode()
    listed = dict(re.findall(r'<li><a href="#([^"]+)">([^<]+)</a></li>', page))
    below = page.rpartition("</nav>")[2]
    named = re.findall(r"<(?:h2[^>]*|summary)>([^<]+)</", below)
    outer = re.sub(r"<details.*?</details>", "", below, flags=re.DOTALL)
    named += re.findall(r"<legend>([^<]+)</legend>", outer)
    assert set(named) <= set(listed.values())
    assert all(page.count(f'id="{anchor}"') == 1 for anchor in listed)
    wrong = {"jwks_uri": "x", "refresh_retry_seconds": "x", "backchannel_logout_uri": "x"}
    answer = (await browser.submit(await browser.get(f"{where}/settings"), where, **wrong)).body.decode()
    folded = re.findall(r'<details class="code">.*?</details>', answer, flags=re.DOTALL)
    invalid = {one[1] for one in re.finditer(r'<(?:input|textarea) [^>]*name="([^"]+)"[^>]*aria-invalid', answer)}
    assert wrong.keys() <= invalid
    assert not any("aria-invalid" in one for one in folded)
    anchors = [anchor for one in folded for anchor in re.findall(r' id="([^"]+)" class="fields', one)]
    assert anchors == ["devices", "older"], "a browser unfolds a section for a link to something inside it"


@pytest.mark.gen_test
async def test_app_changes_appear_in_the_owners_activity(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}"
    await browser.submit(await browser.get(f"{where}/settings"), f"{where}/status")
    text = text_of(await browser.get("/account/security"))
    assert "App registered · My App" in text
    assert "Your app switched off · My App" in text


@pytest.mark.gen_test
async def test_a_page_shows_the_apps_statistics(service: Service, site: Site) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    await service.tokens(app, browser, scope="profile")
    service.store.app_stats.spent(app.client_id, 1500, "latchkey-echo", TokenCounts(12, 3, 2000, web_search=4).counted)
    await service.store.app_stats.flush()
    page = await browser.get(f"/developer/apps/{app.client_id}/usage")
    text = text_of(page)
    assert "30 days 1 person has connected" in text
    assert "Calls 1 Over the rate limit 0 Spent by people $0.0015" in text
    assert "$0.0015 in 30 days, most on " in text
    assert len(re.findall(r"<rect class=.series", page.body.decode())) == 2
    week = await browser.get(f"/developer/apps/{app.client_id}/usage?days=7")
    assert "1 call in 7 days, most on " in text_of(week)
    file = await browser.get(f"/developer/apps/{app.client_id}/usage.csv")
    header, *rows = file.body.decode().split()
    assert header == "day,calls,refused_as_too_many,dollars,connected,disconnected"
    assert len(rows) == 30
    assert rows[-1].split(",", 1)[1] == "1,0,0.0015,1,0"
    assert "$0.0015 2,012 tokens in, 3 out Prompt cache: 2,000 read, 0 written 4 web searches 1 AI call" in text
    (model,) = site.models.all()
    price = model.price()
    assert price is not None
    assert f"{model.display_name} ${price.input / 1e6:.2f} in, ${price.output / 1e6:.2f} out" in text
    file = await browser.get(f"/developer/apps/{app.client_id}/model-usage.csv")
    header, row = file.body.decode().split()
    assert header.startswith("day,model,calls,dollars,output_tokens,input_tokens,cache_read_tokens")
    assert row.split(",", 1)[1] == "latchkey-echo,1,0.0015,3,12,2000,0,0,4"


@pytest.mark.gen_test
async def test_programs_get_refusals_as_json(service: Service) -> None:
    answer = await send(f"{service.base_url}/developer/apps", headers={"Accept": "application/json"})
    assert (answer.code, json_of(answer)["error"]) == (401, "login_required")


@pytest.mark.gen_test(timeout=60)
async def test_the_list_shows_how_long_a_deleted_app_counts(service: Service, site: Site) -> None:
    browser = await service.signed_in()
    app = await own_app(service, browser)
    registration, _ = await service.store.apps.fresh(app.client_id)
    assert registration is not None
    await service.store.tokens.mint(service.ada, registration, ("profile",))
    await service.store.apps.begin_deletion(app.client_id)
    await service.store.apps.finish_deletion(app.client_id)
    text = text_of(await browser.get("/developer/apps"))
    assert re.search(rf"Apps: 1 of 20 .*Deleted {app.client_id} Counts toward your limit until [^.]+. Until then", text)


@pytest.mark.gen_test(timeout=60)
async def test_an_interrupted_deletion_can_be_continued_from_the_list(service: Service, site: Site) -> None:
    await service.add_person("eve@example.com")
    browser, eve = await service.signed_in(), await service.signed_in("eve@example.com")
    app = await own_app(service, browser)
    await service.store.apps.begin_deletion(app.client_id)
    listed = await browser.get("/developer/apps")
    assert "Finish deleting" in text_of(listed)
    action = f"/developer/apps/{app.client_id}/delete"
    xsrf = fields_of(await eve.get("/developer/register"), "/developer/register")["_xsrf"]
    assert (await eve.send(action, "POST", form={"_xsrf": xsrf})).code == 404
    assert (await browser.submit(listed, action)).code == 303
    for task in list(site.tasks):
        await task
    assert "You have no apps yet" in text_of(await browser.get("/developer/apps"))
    assert (await browser.submit(listed, action)).code == 404


@pytest.mark.gen_test
async def test_hostile_text_of_an_app_is_escaped(service: Service) -> None:
    """What a stranger may have written stays words, on the page that shows it and in the code to begin with."""
    browser = await service.confirmed()
    name = "</pre><script>alert(1)</script>"
    uri = "https://mine.example/cb?a='&b=$(id)"
    page = await register(browser, name=name, redirect_uris=uri)
    assert page.code == 200
    assert b"<script>" not in page.body
    assert name in text_of_raw(page)


def text_of_raw(page: HTTPResponse) -> str:
    return html.unescape(page.body.decode())


@pytest.mark.gen_test
async def test_secrets_show_by_their_last_four_with_their_last_use(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    where = f"/developer/apps/{app.client_id}/credentials"
    last_four = f"…{(app.secret or '')[-4:]}"
    unused = text_of(await browser.get(where))
    assert last_four in unused
    assert "Created just now · not used in the last 35 days" in unused
    wrong = await app.revoke("none", client_id=app.client_id, client_secret="lk_cs_wrong")
    assert wrong.code == 401
    await service.store.app_stats.flush()
    assert "not used in the last 35 days" in text_of(await browser.get(where)), "a wrong secret is no use"
    assert (await app.revoke("none", client_id=app.client_id, client_secret=app.secret or "")).code == 200
    await service.store.app_stats.flush()
    assert "last used on " in text_of(await browser.get(where))
    registration, _ = await service.store.apps.fresh(app.client_id)
    assert registration is not None
    # A registration of an earlier release has no notes about its secret.
    packed = replace(registration, secret_notes=()).pack()
    await service.store.client.set(keys.app(app.client_id), packed)
    older = text_of(await browser.get(where))
    assert secret_mark(registration.secrets[0]) in older
    assert "Created before we kept dates" in older
