"""What is counted of each kind of request, whichever worker serves it, and what no label tells."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import urlencode

import pytest
from tornado.ioloop import IOLoop

from handlers.core.errors import CATALOGUE
from handlers.ops.credits import OPS_ROUTES
from handlers.routes import ROUTES
from outbound.ai.echo import ECHO
from store import keys
from store.lifetimes import OAUTH
from tests.support.http.api_shop import ORDERS, Shop
from tests.support.http.dpop_app import Device
from tests.support.http.driver import EMAIL, VERIFIER, Service, json_of, send
from tests.support.http.key_app import key_app, query_pairs
from tests.support.http.scraped_metrics import Samples, gains, metrics_port, scrape, scraped, until
from tests.support.processes.measured_server import answered, running, service
from tests.support.processes.processes import Pair, at_once

__all__ = ["running", "service"]  # fixtures

pytestmark = pytest.mark.slow


def called(client: str) -> str:
    """The sample of an app's calls."""
    return f"latchkey_app_requests_total{{client_id={client}}}"


def ran(script: str, answer: str) -> str:
    """The sample of a script's answers."""
    return f"latchkey_store_calls_total{{answer={answer},script={script}}}"


async def minted(service: Service, scopes: str) -> Any:
    """A token response, at no cost to the server's metrics."""
    app = await service.store.apps.active(service.web.client_id)
    assert app is not None
    return await service.store.tokens.mint(service.ada, app, scopes.split())


Case = Callable[[Service], Awaitable[Samples]]
"""Does something, and says by how much which samples have risen."""


async def a_userinfo(service: Service) -> Samples:
    token = await minted(service, "profile")
    assert (await service.web.userinfo(token.access_token)).code == 200
    return {
        answered("userinfo", 200): 1,
        "latchkey_request_seconds_count{route=userinfo}": 1,
        called(service.web.client_id): 1,
        ran("read_userinfo", "ok"): 1,
    }


async def a_wrong_token(service: Service) -> Samples:
    assert (await service.web.userinfo("lk_at_invented")).code == 401
    return {
        answered("userinfo", 401): 1,
        "latchkey_refusals_total{code=invalid_token,route=userinfo}": 1,
        called(service.web.client_id): 0,
    }


async def a_rotation_and_a_replay(service: Service) -> Samples:
    token = await minted(service, "profile")
    assert (await service.web.refresh(token.refresh_token)).code == 200
    assert (await service.web.refresh(token.refresh_token)).code == 400
    return {
        "latchkey_rotations_total": 1,
        "latchkey_replays_total{kind=refresh_token}": 1,
        "latchkey_replays_total{kind=code}": 0,
        answered("token", 200, "POST"): 1,
        answered("token", 400, "POST"): 1,
        "latchkey_refusals_total{code=invalid_grant,route=token}": 1,
        called(service.web.client_id): 2,
        ran("rotate_refresh", "ok"): 1,
        ran("rotate_refresh", "replayed"): 1,
    }


async def an_exchange_and_a_replay(service: Service) -> Samples:
    browser = service.browser()
    assert (await browser.sign_in(email_of(service))).code == 303
    code = await service.code(browser=browser, scope="profile")
    assert (await service.web.exchange(code)).code == 200
    assert (await service.web.exchange(code)).code == 400
    return {
        "latchkey_exchanges_total": 1,
        "latchkey_replays_total{kind=code}": 1,
        "latchkey_replays_total{kind=refresh_token}": 0,
        answered("signin", 303, "POST"): 1,
        answered("authorize", 200): 1,
        answered("decide", 303, "POST"): 1,
    }


async def too_many(service: Service) -> Samples:
    token = await minted(service, "profile")
    let_in = await at_once(service.web.userinfo(token.access_token) for _ in range(100))
    # Places come free while this runs. A window that counted ten times its limit has none for minutes.
    now, _ = await service.store.client.time()
    window = keys.limit(service.ada, OAUTH.name)
    await service.store.client.set(window, f"{now}000 {10 * OAUTH.limit} {now}000")
    refused = await at_once(service.web.userinfo(token.access_token) for _ in range(20))
    assert ({one.code for one in let_in}, {one.code for one in refused}) == ({200}, {429})
    return {
        answered("userinfo", 200): 100,
        answered("userinfo", 429): 20,
        ran("read_userinfo", "ok"): 100,
        ran("read_userinfo", "rate_limited"): 20,
        "latchkey_refusals_total{code=rate_limited,route=userinfo}": 20,
        called(service.web.client_id): 120,
    }


async def ask(service: Service, model: str, **changes: Any) -> Any:
    token = await minted(service, "credits:spend")
    question = {"model": model, "max_tokens": 50, "messages": [{"role": "user", "content": "Hello"}], **changes}
    headers = {"Authorization": f"Bearer {token.access_token}", "Content-Type": "application/json"}
    return await send(f"{service.base_url}/api/v1/ai/messages", "POST", body=json.dumps(question), headers=headers)


async def an_ai_call(service: Service) -> Samples:
    reply = json_of(await ask(service, ECHO))
    return {
        answered("ai-messages", 200, "POST"): 1,
        "latchkey_long_request_seconds_count{route=ai-messages}": 1,
        "latchkey_request_seconds_count{route=ai-messages}": 0,
        "latchkey_holds_total{event=placed}": 1,
        "latchkey_holds_total{event=settled}": 1,
        "latchkey_holds_total{event=released}": 0,
        f"latchkey_upstream_calls_total{{model={ECHO},outcome=ok,server=echo}}": 1,
        f"latchkey_upstream_seconds_count{{model={ECHO},server=echo}}": 1,
        f"latchkey_upstream_tokens_total{{direction=input,model={ECHO},server=echo}}": reply["usage"]["input_tokens"],
        f"latchkey_upstream_tokens_total{{direction=output,model={ECHO},server=echo}}": reply["usage"]["output_tokens"],
        f"latchkey_charged_microdollars_total{{model={ECHO},server=echo}}": reply["credits"]["charged"],
    }


async def a_stream(service: Service) -> Samples:
    assert (await ask(service, ECHO, stream=True)).code == 200
    return {
        "latchkey_long_request_seconds_count{route=ai-messages}": 1,
        "latchkey_holds_total{event=placed}": 1,
        "latchkey_holds_total{event=settled}": 1,
        f"latchkey_upstream_calls_total{{model={ECHO},outcome=ok,server=echo}}": 1,
    }


async def a_model_that_is_away(service: Service) -> Samples:
    assert (await ask(service, "away")).code == 502
    return {
        answered("ai-messages", 502, "POST"): 1,
        "latchkey_refusals_total{code=upstream_error,route=ai-messages}": 1,
        "latchkey_upstream_calls_total{model=away,outcome=upstream_error,server=nobody}": 1,
        "latchkey_holds_total{event=placed}": 1,
        "latchkey_holds_total{event=settled}": 0,
        "latchkey_holds_total{event=released}": 1,
        "latchkey_upstream_tokens_total{direction=input,model=away,server=nobody}": 0,
    }


async def a_document(service: Service) -> Samples:
    token = await minted(service, "data:read data:write")
    headers = {"Authorization": f"Bearer {token.access_token}", "Content-Type": "application/json"}
    url = f"{service.base_url}/api/v1/data/private-notes/my-secret-document"
    assert (await send(url, "PUT", body="{}", headers=headers)).code == 201
    assert (await send(url, headers=headers)).code == 200
    return {
        answered("document", 201, "PUT"): 1,
        answered("document", 200): 1,
        "latchkey_request_seconds_count{route=document}": 2,
        called(service.web.client_id): 2,
    }


async def addresses_that_there_are_not(service: Service) -> Samples:
    for path in ("/nothing-here", "/api/v1/nothing-here", "/static/nothing-here"):
        assert (await send(service.base_url + path)).code == 404
    assert (await send(f"{service.base_url}/static/latchkey.css")).code == 200
    assert (await send(f"{service.base_url}/api/oauth/userinfo", "PROPFIND", described=False)).code == 405
    return {
        answered("unmatched", 404): 2,
        answered("static", 404): 1,
        answered("static", 200): 1,
        answered("userinfo", 405, "other"): 1,
        "latchkey_refusals_total{code=not_found,route=unmatched}": 2,
        "latchkey_refusals_total{code=method_not_allowed,route=userinfo}": 1,
    }


async def a_mail(service: Service) -> Samples:
    browser = service.browser()
    page = await browser.get("/forgot")
    assert (await browser.submit(page, "/forgot", email=email_of(service))).code in (200, 303)
    return {"latchkey_mails_total{outcome=sent,what=reset}": 1}


async def an_api_and_an_app_for_itself(service: Service) -> Samples:
    shop = await Shop.open(service, "counted-shop")
    issued = json_of(await shop.app.token(grant_type="client_credentials", resource=ORDERS.identifier))
    assert (await shop.at(ORDERS, issued["access_token"]))["active"]
    assert not (await shop.at(ORDERS, "invented"))["active"]
    return {
        "latchkey_app_tokens_total": 1,
        "latchkey_introspections_total{answer=live}": 1,
        "latchkey_introspections_total{answer=dead}": 1,
        answered("introspect", 200, "POST"): 2,
        called(ORDERS.client_id): 2,
        called(shop.app.client_id): 1,
    }


async def a_pushed_request_and_proofs_sent_twice(service: Service) -> Samples:
    app = await key_app(service, "counted-keys")
    parameters = query_pairs(app.authorize_url(scope="profile"))
    par, metadata = f"{service.base_url}/api/oauth/par", f"{service.base_url}/.well-known/oauth-authorization-server"
    issuer = json_of(await send(metadata))["issuer"]
    assertion, proof = app.proof(app.assertion(aud=issuer)), Device().proof("POST", f"{issuer}/api/oauth/par")
    uri = ""
    for status in (201, 401):
        pushed = await send(par, "POST", form={**parameters, **assertion})
        assert pushed.code == status, pushed.body
        uri = json_of(pushed).get("request_uri", uri)
    for status in (201, 400):
        form = {**parameters, **app.proof(app.assertion(aud=issuer))}
        answer = await send(par, "POST", form=form, headers={"DPoP": proof})
        assert answer.code == status, answer.body
    address = f"/oauth/authorize?{urlencode({'client_id': app.client_id, 'request_uri': uri})}"
    assert (await (await service.signed_in(email_of(service))).get(address)).code == 200
    assert (await service.browser().get(address)).code == 400
    return {
        "latchkey_replayed_proofs_total{kind=client_assertion}": 1,
        "latchkey_replayed_proofs_total{kind=dpop_proof}": 1,
        "latchkey_pushed_requests_total{event=pushed}": 2,
        "latchkey_pushed_requests_total{event=arrived}": 1,
        "latchkey_pushed_requests_total{event=gone}": 1,
        "latchkey_pushed_requests_total{event=full}": 0,
    }


CASES: list[Case] = [
    an_api_and_an_app_for_itself,
    a_pushed_request_and_proofs_sent_twice,
    a_userinfo,
    a_wrong_token,
    a_rotation_and_a_replay,
    an_exchange_and_a_replay,
    too_many,
    an_ai_call,
    a_stream,
    a_model_that_is_away,
    a_document,
    addresses_that_there_are_not,
    a_mail,
]


LED_UP = {
    "latchkey_requests_total",
    "latchkey_request_seconds_count",
    "latchkey_store_calls_total",
}


EMAILS: dict[str, str] = {}


def email_of(service: Service) -> str:
    """The address of the person that was made last."""
    return EMAILS[service.ada]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__.replace("_", " "))
def test_events_are_counted_once_on_any_worker(case: Case, running: Pair, service: Service, io_loop: IOLoop) -> None:
    server = running.servers[0]
    EMAILS[service.ada] = running.email
    before = scraped(server)
    expected = io_loop.run_sync(lambda: case(service), timeout=30)
    samples = until(lambda: scraped(server), {name: before.get(name, 0.0) + n for name, n in expected.items()})
    # And nothing else was, of the same metrics; what leads up to it is answered, too, and asks the store.
    names = {name.partition("{")[0] for name in expected} - LED_UP
    assert set(gains(before, samples, *names)) <= {name for name, gain in expected.items() if gain}


def test_metrics_contain_no_person_and_no_secret(running: Pair, service: Service, io_loop: IOLoop) -> None:
    """After everything above, too: it is the same server."""
    EMAILS[service.ada] = running.email
    secrets = [service.ada, running.email, EMAIL, VERIFIER, service.web.secret or "", "private-notes", "my-secret-doc"]

    async def act() -> None:
        for case in (a_document, an_exchange_and_a_replay, an_ai_call):
            await case(service)

    io_loop.run_sync(act, timeout=30)
    text = scrape(metrics_port(running.servers[0]))[2]
    assert service.web.client_id in text
    for secret in secrets:
        assert len(secret) > 5
        assert secret not in text
    assert "lk_" not in text
    assert "@" not in text
    routes = {route.name for route in (*ROUTES, *OPS_ROUTES)} | {"static", "unmatched"}
    for sample in scraped(running.servers[0]):
        labels = dict(part.split("=", 1) for part in sample.partition("{")[2].rstrip("}").split(",") if part)
        assert labels.get("route", "token") in routes
        assert labels.get("code", "not_found") in CATALOGUE
        assert labels.get("status", "200") in {"303"} | {str(number) for number in range(200, 600)}
        assert "/" not in "".join(labels.values())
