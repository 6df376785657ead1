"""On every route with a body, its errors are reported only to a live token with an open window."""

from __future__ import annotations

from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.reading import LONG_BODY
from handlers.core.site import Site
from handlers.routes import POLICIES, ROUTES
from store import keys
from store.lifetimes import AI, AI_MODELS, DATA_WRITE, Group
from tests.support.http.driver import ALL_SCOPES, Service, send
from tests.support.store.ai_spender import Spender, question
from tests.support.store.windows import full

pytestmark = pytest.mark.gen_test(timeout=60)

GROUPS = {group.name: group for group in (AI, AI_MODELS, DATA_WRITE)}
UNREAD = {"userinfo"}
"""Routes that ignore the body."""
APART = {"mcp"}
"""Routes that take only tokens of their own resource: tests/mcp/test_mcp_hostile.py has their bodies."""
TAKING = sorted(
    (route.name, method)
    for route in ROUTES
    for method in ("post", "put", "patch")
    if route.name not in UNREAD | APART
    and route.policy.scope
    and any(method in vars(kind) for kind in route.handler.__mro__[:-2])
)
BODIES = {"short": b'["\\ud800"]', "long": b"[" + b"{}," * LONG_BODY + b'"\\ud800"]'}
every = pytest.mark.parametrize(("name", "method"), TAKING)
sized = pytest.mark.parametrize("body", [pytest.param(body, id=size) for size, body in BODIES.items()])


@pytest.fixture
def site(ai_site: Site) -> Site:
    return ai_site


async def refused(service: Service, token: str, name: str, method: str, body: bytes) -> HTTPResponse:
    """The answer to a body that no route accepts."""
    pattern = next(route.pattern for route in ROUTES if route.name == name)
    headers = {"Authorization": f"Bearer {token}", "Content-Type": "application/json"}
    url = service.base_url + pattern.replace("([^/]+)", "n1")
    return await send(url, method.upper(), body=body, headers=headers)


def group_of(name: str) -> Group:
    """The window of a route that writes."""
    return GROUPS[POLICIES[name].write_window or POLICIES[name].window]


async def fill(spender: Spender, name: str) -> None:
    """Fills the route's window: the pair's and the person's."""
    group = group_of(name)
    for client in ("", spender.app.client_id):
        key = keys.limit(spender.user, group.name, client)
        await spender.service.store.client.set(key, full(group.limit), px=60_000)


def test_walk_finds_the_routes_that_take_a_body() -> None:
    assert {name for name, _ in TAKING} == {
        *("document", "ai-messages", "ai-sdk-messages", "ai-sdk-count", "ai-chat", "ai-responses")
    }


@sized
@pytest.mark.parametrize("name", sorted(UNREAD))
async def test_routes_that_ignore_the_body_refuse_none(service: Service, name: str, body: bytes) -> None:
    spender = await Spender.make(service, *ALL_SCOPES)
    assert (await refused(service, spender.token, name, "post", body)).code == 200


@every
@sized
async def test_a_dead_token_is_refused_before_the_body_is_checked(
    service: Service, name: str, method: str, body: bytes
) -> None:
    spender = await Spender.make(service, *ALL_SCOPES)
    await service.web.revoke(spender.token)
    assert (await refused(service, spender.token, name, method, body)).code == 401


@every
@sized
async def test_a_missing_scope_is_refused_before_the_body_is_checked(
    service: Service, name: str, method: str, body: bytes
) -> None:
    spender = await Spender.make(service, "profile")
    assert (await refused(service, spender.token, name, method, body)).code == 403


@every
@sized
async def test_a_full_window_refuses_before_the_body_is_checked(
    service: Service, name: str, method: str, body: bytes
) -> None:
    spender = await Spender.make(service, *ALL_SCOPES)
    await fill(spender, name)
    assert (await refused(service, spender.token, name, method, body)).code == 429


@every
@sized
async def test_a_refused_body_counts_in_the_window(service: Service, name: str, method: str, body: bytes) -> None:
    spender = await Spender.make(service, *ALL_SCOPES)
    limit = group_of(name).limit
    for left in (limit - 1, limit - 2):
        answer = await refused(service, spender.token, name, method, body)
        assert answer.code == 400
        assert (answer.headers["X-RateLimit-Limit"], answer.headers["X-RateLimit-Remaining"]) == (str(limit), str(left))


async def test_a_long_body_counts_once_in_the_window(service: Service) -> None:
    spender = await Spender.make(service, *ALL_SCOPES)
    url = f"{service.base_url}/api/v1/data/notes/n1"
    headers = {"Authorization": f"Bearer {spender.token}", "Content-Type": "application/json"}
    for body, left in ((b"1", 59), (b'"' + b"a" * LONG_BODY + b'"', 58), (b"1", 57)):
        answer = await send(url, "PUT", body=body, headers=headers)
        assert (answer.code // 100, answer.headers["X-RateLimit-Remaining"]) == (2, str(left))
    for text, left in (("a", 19), ("a " * LONG_BODY, 18), ("a", 17)):
        answer = await spender.ask(question(text))
        assert (answer.code, answer.headers["X-RateLimit-Remaining"]) == (200, str(left))


async def test_an_admitted_long_body_is_processed_even_if_the_window_fills_meanwhile(service: Service) -> None:
    spender = await Spender.make(service, *ALL_SCOPES)
    headers = {"Authorization": f"Bearer {spender.token}", "Content-Type": "application/json"}
    url = f"{service.base_url}/api/v1/data/notes/n1"
    for _ in range(DATA_WRITE.limit - 1):
        await send(url, "DELETE", headers=headers)
    long = b'"' + b"a" * LONG_BODY + b'"'
    assert [(await send(url, "PUT", body=long, headers=headers)).code for _ in range(2)] == [201, 429]


async def test_a_valid_short_body_takes_one_round_trip(service: Service) -> None:
    spender = await Spender.make(service, *ALL_SCOPES)
    headers = {"Authorization": f"Bearer {spender.token}", "Content-Type": "application/json"}
    url = f"{service.base_url}/api/v1/data/notes/n1"
    scripts, ran = service.store.documents._scripts, []
    run = scripts.run

    async def counted(*args: Any, **more: Any) -> Any:
        ran.append(args[0])
        return await run(*args, **more)

    scripts.run = counted  # type: ignore[method-assign]  # counts, and passes on
    await send(url, "PUT", body=b"1", headers=headers)
    await spender.ask(question())
    scripts.run = run  # type: ignore[method-assign]  # its own again
    assert [name for name in ran if name != "settle_hold"] == ["write_document", "place_hold"]
