"""What a request leaves for garbage collection, which is rare: nothing that grows with the request."""

from __future__ import annotations

import gc
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from redis.exceptions import ConnectionError as RedisConnectionError

from handlers.core.application import Latchkey
from handlers.core.site import Site
from tests.support.http.driver import Service, send_raw
from tests.support.http.http_servers import until
from tests.support.http.upstream import ScriptedUpstream, failing
from tests.support.store.ai_spender import NATIVE, Spender, question

pytestmark = pytest.mark.gen_test(timeout=20)

MUCH = "y" * 60_000
FORM, JSON = "application/x-www-form-urlencoded", "application/json"


@pytest.fixture
def site(ai_site: Site) -> Site:
    """The model runs on the scripted upstream."""
    return ai_site


@contextmanager
def collected() -> Iterator[list[Any]]:
    """What a collection finds after the block."""
    found: list[Any] = []
    gc.collect()
    gc.disable()
    try:
        yield found
        gc.set_debug(gc.DEBUG_SAVEALL)
        gc.collect()
        found += gc.garbage
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()


def held(garbage: Sequence[Any]) -> list[str]:
    """The parts that contain a long text."""
    return [
        type(one).__name__
        for one in garbage
        if any(isinstance(of, (str, bytes)) and len(of) >= len(MUCH) for of in gc.get_referents(one))
    ]


async def away(*args: Any) -> None:
    """The store is away."""
    raise RedisConnectionError("away")


@pytest.mark.parametrize(
    ("path", "kind", "body", "status"),
    [
        pytest.param("/api/oauth/token", FORM, f"grant_type=refresh_token&refresh_token={MUCH}", 400, id="token"),
        pytest.param(
            "/api/oauth/token",
            FORM,
            f"grant_type=refresh_token&refresh_token={MUCH}&client_id=unknown&client_secret=x",
            401,
            id="unknown app",
        ),
        pytest.param("/signin", FORM, f"email={MUCH}", 403, id="page"),
        pytest.param(NATIVE, JSON, json.dumps(question(MUCH, stream=True)), 529, id="stream that fails"),
        pytest.param(NATIVE, JSON, json.dumps(question(MUCH)), 503, id="store that is away"),
    ],
)
async def test_a_refused_request_leaves_no_body_behind(
    service: Service,
    site: Site,
    app: Latchkey,
    upstream: ScriptedUpstream,
    monkeypatch: pytest.MonkeyPatch,
    path: str,
    kind: str,
    body: str,
    status: int,
) -> None:
    spender = await Spender.make(service)
    upstream.plan = failing(529, "overloaded_error")
    if status == 503:
        monkeypatch.setattr(site.store.client, "evalsha", away)
    if status == 400:
        body += f"&client_id={service.web.client_id}&client_secret={service.web.secret}"
    bearer = f"\r\nAuthorization: Bearer {spender.token}" if path == NATIVE else ""
    head = f"POST {path} HTTP/1.1\r\nContent-Type: {kind}{bearer}".encode()

    async def ask() -> None:
        assert (await send_raw(service.base_url, head, body.encode()))[0] == status
        await until(lambda: app.in_flight == 0 and not site.tasks)

    await ask()
    with collected() as garbage:
        await ask()
    assert held(garbage) == []
