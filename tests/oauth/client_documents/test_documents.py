"""Client ID metadata documents: an app's URL is its client id. draft-ietf-oauth-client-id-metadata-document."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from handlers.core.site import Site
from outbound.address_policy import AddressPolicy
from store.apps.client_ids import inner_id
from store.moving.person_export import as_lines
from store.refused import Refused
from tests.support.http.api_shop import ORDERS, Shop, about
from tests.support.http.documented_app import NATIVE, PLAIN, URL, WEB, Publisher, json_reply, key_app, plain_app
from tests.support.http.driver import EMAIL, App, Browser, Service, answer_of, json_of, send
from tests.support.http.key_app import ASSERTION_TYPE, set_of
from tests.support.http.receiver import answering
from tests.support.processes.proven_domain import DOMAIN

QUIET: dict[str, Any] = {"scope": None, "state": None}


async def page_says(browser: Browser, app: App, words: str, **changes: Any) -> None:
    """The answer is an error page with these words, and no redirect."""
    page = await browser.get(app.authorize_url(**{**QUIET, **changes}))
    assert (page.code, "Location" in page.headers) == (400, False), page.body
    assert words in page.body.decode(), page.body.decode()


@pytest.mark.gen_test
async def test_a_url_is_a_client_id_from_authorization_to_introspection(service: Service, publisher: Publisher) -> None:
    shop, app, browser = await Shop.open(service), plain_app(service.base_url), await service.signed_in()
    answer = answer_of(await browser.consent(app.authorize_url(**{**QUIET, "scope": "openid profile"})))
    tokens = json_of(await app.exchange(answer["code"]))
    claims = await service.store.signing_keys.verify(tokens["id_token"], types=("JWT",))
    assert (claims.claims["aud"], claims.claims["azp"]) == (URL, URL)
    fresh = json_of(await app.refresh(tokens["refresh_token"]))
    assert (await app.userinfo(fresh["access_token"])).code == 200
    code = answer_of(await browser.consent(app.authorize_url(**QUIET, resource=ORDERS.identifier)))["code"]
    access = json_of(await app.exchange(code))["access_token"]
    seen = await about(service, access, ORDERS.client_id, shop.secrets[ORDERS.client_id])
    assert (seen["active"], seen["client_id"], seen["scope"]) == (True, URL, "read")
    other = await service.tokens(scope="apps:read profile")
    bearer = {"Authorization": f"Bearer {other['access_token']}"}
    listed = json_of(await send(f"{service.base_url}/api/v1/apps", headers=bearer))
    assert [one["client_id"] for one in listed["apps"]] == [URL]
    assert URL in (await browser.get("/account/apps")).body.decode()
    person = await service.store.operator.find(EMAIL)
    assert f'"documentUrl": "{URL}"' in "".join([line.decode() async for line, _ in as_lines(service.store, person)])
    [known] = [one for one in await service.store.apps.list() if one.origin]
    assert (known.record()["client_id"], known.client_id) == (URL, inner_id(URL))
    out = await browser.get("/oauth/logout?" + urlencode({"id_token_hint": tokens["id_token"], "client_id": URL}))
    assert out.code in (200, 303)
    assert (await app.revoke(fresh["refresh_token"], client_id=URL)).code == 200
    assert (await app.userinfo(fresh["access_token"])).code == 401
    assert publisher.fetched == 1


@pytest.mark.gen_test
async def test_the_consent_page_shows_the_host_as_what_the_app_says(service: Service, publisher: Publisher) -> None:
    publisher.publishes(client_name="PayPal", logo_uri=f"https://{DOMAIN}/logo.png", client_uri="https://other.example")
    page = (await (await service.signed_in()).get(plain_app(service.base_url).authorize_url(**QUIET))).body.decode()
    assert f"The app says it’s from <bdi>{DOMAIN}</bdi>." in page
    assert "Its name looks like PayPal" in page
    assert ("logo.png" in page, "other.example" in page) == (False, False)


@pytest.mark.gen_test
async def test_metadata_says_when_documents_are_read(service: Service) -> None:
    discovery = f"{service.base_url}/.well-known/oauth-authorization-server"
    assert json_of(await send(discovery))["client_id_metadata_document_supported"] is True
    service.store.apps.documents = False
    assert "client_id_metadata_document_supported" not in json_of(await send(discovery))


@pytest.mark.gen_test
async def test_switched_off_nothing_is_fetched_and_tokens_end(service: Service, publisher: Publisher) -> None:
    app, browser = plain_app(service.base_url), await service.signed_in()
    code = answer_of(await browser.consent(app.authorize_url(**QUIET)))["code"]
    tokens = json_of(await app.exchange(code))
    service.store.apps.documents = False
    assert (await app.userinfo(tokens["access_token"])).code == 401
    assert (await app.refresh(tokens["refresh_token"])).code == 401
    await page_says(browser, plain_app(service.base_url, f"https://{DOMAIN}/other.json"), "not known to this server")
    assert publisher.fetched == 1


_HUGE = json_reply({**PLAIN, "padding": "x" * 5 * 1024})
_WRONG: list[Any] = [
    pytest.param(answering(302, "Location: https://elsewhere.example/"), "redirect", id="redirect"),
    pytest.param(answering(404), "404", id="missing"),
    pytest.param(answering(200, "Content-Type: text/html", body=b"<p>"), "right type", id="page"),
    pytest.param(_HUGE, "more than 5120 bytes", id="5 KiB and more"),
    pytest.param(answering(200, "Content-Type: application/json", body=b"[1"), "JSON object", id="broken"),
    pytest.param(json_reply([PLAIN]), "JSON object", id="list"),
    pytest.param(json_reply({**PLAIN, "client_id": f"{URL}/"}), "another client_id", id="another id"),
    pytest.param(json_reply({**PLAIN, "client_secret": "s"}), "a secret", id="secret"),
    pytest.param(json_reply({**PLAIN, "token_endpoint_auth_method": "client_secret_post"}), "none or", id="method"),
    pytest.param(
        json_reply({**PLAIN, "redirect_uris": [WEB, "https://bank.example/cb"]}), "another site", id="another's URI"
    ),
    pytest.param(
        json_reply({**PLAIN, "redirect_uris": [f"https://{DOMAIN}.evil.example/"]}), "another site", id="lookalike"
    ),
    pytest.param(json_reply({**PLAIN, "redirect_uris": [f"https://{DOMAIN}:444/"]}), "another site", id="port"),
    pytest.param(json_reply({**PLAIN, "redirect_uris": ["com.bank.app:/cb"]}), "another site", id="scheme"),
    pytest.param(json_reply({**PLAIN, "redirect_uris": []}), "1 to 20", id="no redirect URI"),
    pytest.param(json_reply({**PLAIN, "client_name": "Latchkey"}), "name of this server", id="our name"),
    pytest.param(json_reply({**PLAIN, "jwks": {"keys": [{"kty": "oct", "k": "YQ"}]}}), "private", id="private key"),
]


@pytest.mark.gen_test
@pytest.mark.trap(59)
@pytest.mark.parametrize(("reply", "words"), _WRONG)
async def test_a_document_that_cannot_be_used_is_a_page_and_keeps_nothing(
    service: Service, publisher: Publisher, reply: Any, words: str
) -> None:
    publisher.answers(reply)
    await page_says(await service.signed_in(), plain_app(service.base_url), words)
    assert await service.store.apps.find(URL) is None
    assert [one for one in await service.store.apps.list() if one.origin] == []


@pytest.mark.gen_test
@pytest.mark.trap(59)
@pytest.mark.parametrize(
    "url",
    [
        f"https://user@{DOMAIN}/client.json",
        f"https://{DOMAIN}",
        f"https://{DOMAIN}/a/../client.json",
        f"https://{DOMAIN}/a/%2e%2e/client.json",
        f"https://{DOMAIN}/client.json#part",
        f"https://{DOMAIN.upper()}/client.json",
        f"https://{DOMAIN}/{'a' * 512}",
        f"http://{DOMAIN}/client.json",
        "https://127.0.0.1/client.json",
        "https://localhost/client.json",
        "https://[::1]/client.json",
        f"https://{DOMAIN}/client json",
    ],
)
async def test_other_urls_are_never_fetched(service: Service, publisher: Publisher, url: str) -> None:
    page = await (await service.signed_in()).get(plain_app(service.base_url, url).authorize_url(**QUIET))
    assert (page.code, publisher.fetched) == (400, 0)


@pytest.mark.gen_test
@pytest.mark.trap(59)
async def test_a_private_address_is_never_called(io_loop: Any, tmp_path: Path, service: Service) -> None:
    guarded = await Publisher.make(tmp_path, AddressPolicy())
    guarded.publishes()
    with pytest.raises(Refused, match="invalid_client_metadata") as refused:
        await guarded.documents.current(service.store, URL, _asker(service))
    assert "no address that this server may send to" in refused.value.description
    assert guarded.fetched == 0
    await guarded.domain.receiver.close()


@pytest.mark.gen_test
@pytest.mark.trap(59)
async def test_a_document_that_comes_byte_by_byte_is_cut(tmp_path: Path, service: Service) -> None:
    async def dripping(writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 4000\r\n\r\n{")
        while not writer.is_closing():
            writer.write(b" ")
            await writer.drain()
            await asyncio.sleep(0.02)

    slow = await Publisher.make(tmp_path, whole=0.3)
    slow.answers(dripping)
    begun = asyncio.get_running_loop().time()
    with pytest.raises(Exception, match="invalid_client_metadata"):
        await slow.documents.current(service.store, URL, _asker(service))
    assert asyncio.get_running_loop().time() - begun < 3
    await slow.domain.receiver.close()


def _asker(service: Service) -> Any:
    return Site(service.store, service.base_url).asker("192.0.2.1")


@pytest.mark.gen_test
@pytest.mark.trap(59)
async def test_a_document_counts_as_long_as_its_headers_say(
    later: Callable[[float], None], service: Service, publisher: Publisher
) -> None:
    app, browser = plain_app(service.base_url), await service.signed_in()
    publisher.publishes("Cache-Control: max-age=600")
    await browser.consent(app.authorize_url(**QUIET))
    later(590)
    await browser.get(app.authorize_url(**QUIET))
    assert publisher.fetched == 1
    later(20)
    publisher.publishes(client_name="Other notes")
    assert "Other notes" in (await browser.get(app.authorize_url(**QUIET))).body.decode()
    assert publisher.fetched == 2
    later(310)
    publisher.answers(answering(410))
    await page_says(browser, app, "410")


@pytest.mark.gen_test
async def test_a_failure_is_not_tried_again_at_once(
    later: Callable[[float], None], service: Service, publisher: Publisher
) -> None:
    app, browser = plain_app(service.base_url), await service.signed_in()
    publisher.answers(answering(500))
    await page_says(browser, app, "500")
    publisher.publishes()
    await page_says(browser, app, "500")
    assert publisher.fetched == 1
    later(11)
    assert (await browser.get(app.authorize_url(**QUIET))).code == 200


@pytest.mark.gen_test
async def test_requests_at_the_same_time_share_one_fetch(service: Service, publisher: Publisher) -> None:
    app, browsers = plain_app(service.base_url), [await service.signed_in() for _ in range(5)]
    pages = await asyncio.gather(*(one.get(app.authorize_url(**QUIET)) for one in browsers))
    assert [page.code for page in pages] == [200] * 5
    assert publisher.fetched == 1


@pytest.mark.gen_test
@pytest.mark.trap(59)
async def test_an_address_and_a_host_cause_a_number_of_fetches_an_hour(service: Service, publisher: Publisher) -> None:
    limits = service.store.limits
    limits.documents = type(limits.documents)("client-document", 2, limits.documents.period)
    browser = await service.signed_in()
    for number in range(2):
        await page_says(browser, plain_app(service.base_url, f"{URL}?{number}"), "another client_id")
    assert (await browser.get(plain_app(service.base_url).authorize_url(**QUIET))).code == 429
    assert publisher.fetched == 2
    with pytest.raises(Exception, match="rate_limited"):
        await limits.client_document("198.51.100.1", DOMAIN)
    await limits.client_document("198.51.100.1", "elsewhere.example")


@pytest.mark.gen_test
@pytest.mark.trap(59)
async def test_a_change_between_fetch_and_use_voids_the_request(
    later: Callable[[float], None], service: Service, publisher: Publisher
) -> None:
    app, browser = plain_app(service.base_url), await service.signed_in()
    page = await browser.get(app.authorize_url(**QUIET))
    code = answer_of(await browser.consent(app.authorize_url(**QUIET)))["code"]
    later(301)
    publisher.publishes(redirect_uris=[f"https://{DOMAIN}/moved"])
    moved = plain_app(service.base_url, URL, f"https://{DOMAIN}/moved")
    assert (await browser.get(moved.authorize_url(**QUIET))).code == 200
    decided = await browser.submit(page, "/api/oauth/authorize", decision="allow")
    assert decided.code == 400
    await page_says(browser, app, "did not register the address")
    assert (await app.exchange(code)).code == 400


@pytest.mark.gen_test
async def test_other_redirect_uris_end_remembered_consent(
    later: Callable[[float], None], service: Service, publisher: Publisher
) -> None:
    app, browser = plain_app(service.base_url), await service.signed_in()
    await browser.consent(app.authorize_url(**QUIET))
    assert (await browser.get(app.authorize_url(**QUIET))).code == 303
    later(301)
    publisher.publishes(redirect_uris=[WEB])
    assert (await browser.get(app.authorize_url(**QUIET))).code == 200


@pytest.mark.gen_test
async def test_a_refresh_outlives_an_outage_of_the_apps_site_for_a_week(
    later: Callable[[float], None], service: Service, publisher: Publisher
) -> None:
    app, browser = plain_app(service.base_url), await service.signed_in()
    code = answer_of(await browser.consent(app.authorize_url(**QUIET)))["code"]
    refresh = json_of(await app.exchange(code))["refresh_token"]
    publisher.answers(answering(503))
    later(6 * 86_400)
    refresh = json_of(await app.refresh(refresh))["refresh_token"]
    later(2 * 86_400)
    refused = await app.refresh(refresh)
    assert (refused.code, json_of(refused)["error"]) == (401, "invalid_client")
    later(11)
    publisher.publishes()
    assert (await app.refresh(refresh)).code == 200


@pytest.mark.gen_test
async def test_a_token_request_never_makes_the_server_fetch_an_unknown_document(
    service: Service, publisher: Publisher
) -> None:
    refused = await plain_app(service.base_url).refresh("lk_rt_invented")
    assert (refused.code, publisher.fetched) == (401, 0)


@pytest.mark.gen_test
async def test_an_app_proves_itself_by_the_keys_in_its_document(service: Service, publisher: Publisher) -> None:
    app, browser = key_app(service.base_url), await service.signed_in()
    publisher.publishes(token_endpoint_auth_method="private_key_jwt", jwks=json.loads(set_of(app.key)))
    asserted = {"client_assertion": app.assertion(), "client_assertion_type": ASSERTION_TYPE}
    form = {"redirect_uri": WEB, "response_type": "code", "code_challenge_method": "S256", **asserted}
    form["code_challenge"] = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
    answer = await send(f"{service.base_url}/api/oauth/par", "POST", form=form)
    assert answer.code == 201, answer.body
    query = urlencode({"client_id": URL, "request_uri": json_of(answer)["request_uri"]})
    code = answer_of(await browser.consent(f"/oauth/authorize?{query}"))["code"]
    exchange = {"grant_type": "authorization_code", "code": code, "redirect_uri": WEB}
    exchange["code_verifier"] = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
    endpoint = f"{service.base_url}/api/oauth/token"
    assert (await send(endpoint, "POST", form={**exchange, "client_id": URL})).code == 401
    again = {"client_assertion": app.assertion(), "client_assertion_type": ASSERTION_TYPE}
    tokens = json_of(await send(endpoint, "POST", form={**exchange, **again}))
    third = {"client_assertion": app.assertion(), "client_assertion_type": ASSERTION_TYPE}
    seen = await send(
        f"{service.base_url}/api/oauth/introspect", "POST", form={"token": tokens["access_token"], **third}
    )
    assert json_of(seen)["client_id"] == URL


@pytest.mark.gen_test
async def test_only_a_program_at_a_loopback_address_may_change_the_port(service: Service) -> None:
    browser = await service.signed_in()
    near = plain_app(service.base_url, URL, NATIVE.replace("localhost", "localhost:1234"))
    assert (await browser.get(near.authorize_url(**QUIET))).code == 200
    await page_says(browser, plain_app(service.base_url, URL, f"https://{DOMAIN}:1234/callback"), "did not register")


@pytest.mark.gen_test
async def test_looking_ahead_fetches_nothing(service: Service, publisher: Publisher) -> None:
    app = plain_app(service.base_url)
    looked = await send(service.base_url + app.authorize_url(**QUIET), "HEAD")
    assert (looked.code, publisher.fetched) == (400, 0)


@pytest.mark.gen_test
async def test_an_idle_app_comes_back_with_its_url(
    later: Callable[[float], None], service: Service, publisher: Publisher
) -> None:
    app, browser = plain_app(service.base_url), await service.signed_in()
    await browser.consent(app.authorize_url(**QUIET))
    later(91 * 86_400)
    await service.store.self_registered.end_idle()
    assert await service.store.apps.find(URL) is None
    again = await service.signed_in()
    code = answer_of(await again.consent(app.authorize_url(**QUIET)))["code"]
    assert (await app.exchange(code)).code == 200
