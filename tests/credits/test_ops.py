"""The operations port: callers, the API for payment back ends, and that a payment is booked once."""

from __future__ import annotations

import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tornado.httpclient import HTTPResponse
from tornado.httpserver import HTTPServer
from tornado.netutil import bind_sockets

from handlers.core.application import Latchkey
from handlers.core.errors import CATALOGUE
from handlers.core.site import Site
from handlers.ops.credits import make_ops_application
from handlers.ops.operations import Operations
from handlers.ops.security_context import tell_security
from handlers.routes import ROUTES, make_application
from store.crypto.keyring import Keys
from store.wiring import Store
from tests.runtime.test_logging import LOGGERS, assert_none_of
from tests.support.http.driver import EMAIL, Service, json_of, send, send_raw
from tests.support.lists.offenders import each
from tests.support.processes.engines import Engine
from tests.support.store.lost_answers import losing

KEY, OTHER = "operator-key_0123456789-abcdefgh", "B" * 43
JSON = {"Content-Type": "application/json"}

pytestmark = pytest.mark.gen_test


@asynccontextmanager
async def served(app: Latchkey) -> AsyncIterator[str]:
    """The base URL of an application on its own port."""
    server = HTTPServer(app)
    [listening] = bind_sockets(0, "127.0.0.1")
    server.add_sockets([listening])
    yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    server.stop()
    await server.close_all_connections()


@pytest.fixture
def app(site: Site) -> Operations:
    """The application of the operations port, with two keys, as while one is replaced."""
    return make_ops_application(site, (KEY, OTHER))


@pytest.fixture
def ops(service: Service) -> Ops:
    """Ada, and a client of the port."""
    return Ops(service.base_url, service.store, service.ada)


class Ops:
    """A payment back end."""

    def __init__(self, url: str, store: Store, ada: str) -> None:
        self.url, self.store, self.ada = f"{url}/ops/credits", store, ada

    async def ask(self, body: object, *, key: str | None = "payment-1", **headers: str) -> HTTPResponse:
        """Sends a body (text unchanged, anything else as JSON) with an idempotency key in the header."""
        named = {"Idempotency-Key": key} if key is not None else {}
        sent = {"Authorization": f"Bearer {KEY}", **JSON, **named}
        sent |= {name.replace("_", "-"): value for name, value in headers.items()}
        return await send(self.url, "POST", body=body if isinstance(body, str) else json.dumps(body), headers=sent)

    async def form(self, **fields: str) -> HTTPResponse:
        """The same as a form."""
        return await send(self.url, "POST", form=fields, headers={"Authorization": f"Bearer {KEY}"})

    async def paid(self) -> list[int]:
        """The balance and the amounts of its entries, newest first."""
        account = await self.store.credits.show(self.ada)
        return [account.paid, *(entry.amount for entry in account.entries)]


def answer(response: HTTPResponse, status: int, code: str) -> str:
    """The description of an error."""
    body = json_of(response)
    assert (response.code, body["error"]) == (status, code), body
    assert CATALOGUE[code].status == status or code == "invalid_request"
    return str(body["error_description"])


async def test_a_payment_is_credited_once_however_often_it_is_sent(ops: Ops) -> None:
    payment: dict[str, Any] = {"user": EMAIL, "amount": 5_000_000, "reason": "Payment 17"}
    first = await ops.ask(payment)
    assert first.code == 200
    assert json_of(first) == {
        "sub": ops.ada,
        "amount": 5_000_000,
        "paid": 5_000_000,
        "held": 0,
        "spendable": 5_000_000,
        "currency": "USD",
        "scale": 6,
        "replayed": False,
    }
    assert first.headers["Cache-Control"] == "no-store"
    for again in (payment, {**payment, "user": ops.ada}, {**payment, "user": EMAIL.upper()}):
        assert json_of(await ops.ask(again)) == {**json_of(first), "replayed": True}
    form = await ops.form(**{**payment, "amount": "5000000", "key": "payment-1"})
    assert json_of(form) == {**json_of(first), "replayed": True}
    assert await ops.paid() == [5_000_000, 5_000_000]
    [entry] = (await ops.store.credits.show(ops.ada)).entries
    assert (entry.kind, entry.reason) == ("grant", "Payment 17")
    for other in ({**payment, "amount": 5_000_001}, {**payment, "reason": "Payment 18"}):
        answer(await ops.ask(other), 422, "idempotency_mismatch")
    assert json_of(await ops.ask(payment, key="payment-2"))["paid"] == 10_000_000


async def test_a_refund_takes_at_most_the_available_credits(ops: Ops) -> None:
    await ops.ask({"user": EMAIL, "amount": 500})
    assert json_of(await ops.form(user=EMAIL, amount="-499", key="refund-1"))["spendable"] == 1
    answer(await ops.ask({"user": EMAIL, "amount": -2}, key="refund-2"), 402, "insufficient_credits")
    # What was refused has used up no key.
    await ops.ask({"user": EMAIL, "amount": 1}, key="payment-2")
    assert json_of(await ops.ask({"user": EMAIL, "amount": -2}, key="refund-2"))["paid"] == 0


async def test_a_disabled_person_is_credited_too(ops: Ops) -> None:
    await ops.store.operator.set_status(EMAIL, "disabled")
    assert (await ops.ask({"user": EMAIL, "amount": 500})).code == 200


@pytest.mark.parametrize(
    ("user", "status", "code", "words"),
    [
        pytest.param("nobody@example.com", 404, "not_found", "No such person.", id="nobody"),
        pytest.param("0" * 32, 404, "not_found", "No such person.", id="nobody's user id"),
        pytest.param("nobody", 400, "invalid_request", "one @", id="no e-mail address"),
        pytest.param("", 400, "invalid_request", "user is missing", id="nothing"),
        pytest.param(17, 400, "invalid_request", "user must be a string", id="a number"),
    ],
)
async def test_an_invalid_person_is_refused(ops: Ops, user: Any, status: int, code: str, words: str) -> None:
    assert words in answer(await ops.ask({"user": user, "amount": 5}), status, code)
    assert await ops.paid() == [0]


LARGEST = 10**12


@pytest.mark.parametrize("text", ["1", str(LARGEST)])
async def test_an_amount_is_a_whole_number_in_json_and_its_digits_in_a_form(ops: Ops, text: str) -> None:
    assert (await ops.ask(f'{{"user": "{EMAIL}", "amount": {text}}}')).code == 200
    assert (await ops.form(user=EMAIL, amount=text, key="payment-2")).code == 200
    assert await ops.paid() == [2 * int(text), int(text), int(text)]


@each(
    "text",
    [
        *("0", str(LARGEST + 1), str(-LARGEST - 1), "9" * 19, "9" * 5000, "5.0", "5e0", "1e400", "0x5", "5_0", "+5"),
        *("true", "false", "null", "[5]", "{}", "NaN", "", '"five"', "\u0665", "5\x00", "5 6"),
    ],
)
async def test_any_other_amount_is_refused(ops: Ops, text: str) -> None:
    for response in (
        await ops.ask(f'{{"user": "{EMAIL}", "amount": {text}}}'),
        await ops.ask(f'{{"user": "{EMAIL}", "amount": "{text}"}}'),
        await ops.form(user=EMAIL, amount=text, key="payment-1"),
    ):
        answer(response, 400, "invalid_request")
    answer(await ops.ask({"user": EMAIL, "amount": "5"}), 400, "invalid_request")
    answer(await ops.ask({"user": EMAIL}), 400, "invalid_request")
    assert await ops.paid() == [0]


async def test_the_idempotency_key_is_in_the_header_or_the_body(ops: Ops) -> None:
    payment = {"user": EMAIL, "amount": 5}
    assert json_of(await ops.ask({**payment, "key": "a"}, key=None))["replayed"] is False
    assert json_of(await ops.ask({**payment, "key": "a"}, key="a"))["replayed"] is True
    assert json_of(await ops.ask({**payment, "key": ""}, key="a"))["replayed"] is True
    for body, header in (
        (payment, None),
        (payment, ""),
        ({**payment, "key": "b"}, "c"),
        ({**payment, "key": 7}, None),
        ({**payment, "key": "x" * 256}, None),
        ({**payment, "key": "line\nbreak"}, None),
        (payment, "caf\xe9"),
    ):
        answer(await ops.ask(body, key=header), 400, "invalid_request")
    head = f"POST /ops/credits HTTP/1.1\r\nAuthorization: Bearer {KEY}\r\nContent-Type: application/json\r\n"
    twice = head + "Idempotency-Key: b\r\nIdempotency-Key: c\r\n"
    assert (await send_raw(ops.url, twice.encode(), json.dumps(payment).encode()))[0] == 400
    assert await ops.paid() == [5, 5]


@each(
    ("body", "kind", "status"),
    [
        pytest.param("{", "application/json", 400, id="broken JSON"),
        pytest.param("[]", "application/json", 400, id="no object"),
        pytest.param('{"user": "a", "user": "b", "amount": 5}', "application/json", 400, id="a name twice"),
        pytest.param("user=a&user=b&amount=5", "application/x-www-form-urlencoded", 400, id="a field twice"),
        pytest.param("user=%ff", "application/x-www-form-urlencoded", 400, id="no UTF-8"),
        pytest.param("user=a", "text/plain", 415, id="another type"),
        pytest.param('{"reason": "' + "x" * 70_000 + '"}', "application/json", 413, id="too large"),
        pytest.param(
            json.dumps({"user": EMAIL, "amount": 5, "reason": "a\nb"}), "application/json", 400, id="two lines"
        ),
    ],
)
async def test_an_invalid_body_is_refused(ops: Ops, body: str, kind: str, status: int) -> None:
    answer(await ops.ask(body, Content_Type=kind), status, "invalid_request")
    assert await ops.paid() == [0]


@each(
    ("header", "named"),
    [
        pytest.param(None, False, id="nothing"),
        pytest.param("Bearer", True, id="no key"),
        pytest.param(f"Bearer {KEY[:-1]}", True, id="a part of the key"),
        pytest.param(f"Bearer {KEY}x", True, id="more than the key"),
        pytest.param(f"Bearer {KEY.upper()}", True, id="the key in another case"),
        pytest.param(f"Bearer {KEY},{OTHER}", True, id="all the keys"),
        pytest.param("Bearer caf\xe9", True, id="no ASCII"),
        pytest.param(f"Basic {KEY}", False, id="another scheme"),
        pytest.param(KEY, False, id="no scheme"),
    ],
)
async def test_without_a_key_nothing_is_checked(ops: Ops, header: str | None, named: bool) -> None:
    given = {"Authorization": header} if header is not None else {}
    for body, kind in (('{"user": 5', "application/json"), ("x" * 70_000, "text/plain")):
        response = await send(ops.url, "POST", body=body, headers={"Content-Type": kind, **given})
        assert "operator key" in answer(response, 401, "invalid_token")
        challenge = 'Bearer realm="latchkey"' + (', error="invalid_token"' if named else "")
        assert response.headers["WWW-Authenticate"] == challenge
    assert (await send(ops.url, headers=given)).code == 401


async def test_wrong_operator_keys_are_in_the_security_log(service: Service, app: Latchkey, ops: Ops) -> None:
    events: list[str] = []
    tell_security(app)  # which the application of the main port has done before, in a server
    service.store.security.tell = lambda event: events.append(f"{event.event} {event.address} {event.count}")
    for guess in ("one", "two", "three"):
        await ops.ask({"user": EMAIL, "amount": 5}, Authorization=f"Bearer {guess}")
    service.store.security.settle()
    assert events == ["operator_key_refused 127.0.0.1 1", "operator_key_refused 127.0.0.1 2"]


async def test_every_operator_key_works_and_no_token_does(service: Service, ops: Ops) -> None:
    for number, key in enumerate((KEY, OTHER)):
        body = {"user": EMAIL, "amount": 5}
        assert (await ops.ask(body, key=str(number), Authorization=f"bearer {key}")).code == 200
    app = await service.store.apps.find("web-app")
    assert app is not None
    tokens = await service.store.tokens.mint(service.ada, app, ("credits:spend",))
    for token in (tokens.access_token, service.web.secret):
        answer(await ops.ask({"user": EMAIL, "amount": 5}, Authorization=f"Bearer {token}"), 401, "invalid_token")
    head = f"POST /ops/credits HTTP/1.1\r\nAuthorization: Bearer {KEY}\r\nAuthorization: Bearer {OTHER}\r\n"
    assert (await send_raw(ops.url, head.encode()))[0] == 401


async def test_without_keys_nobody_gets_in(memory_store: Store) -> None:
    app = make_ops_application(Site(memory_store, "http://localhost"), ())
    async with served(app) as url:
        for key in ("", KEY):
            headers = {"Authorization": f"Bearer {key}"}
            assert (await send(f"{url}/ops/credits", "POST", headers=headers)).code == 401


async def test_browsers_and_other_methods_are_refused(ops: Ops) -> None:
    preflight = {"Origin": "https://evil.example", "Access-Control-Request-Method": "POST"}
    key = {"Authorization": f"Bearer {KEY}"}
    for method, headers, status in (("OPTIONS", preflight, 401), ("OPTIONS", key, 405), ("GET", key, 405)):
        response = await send(ops.url, method, headers=headers)
        assert response.code == status
        assert response.headers.get("Allow") == ("POST" if status == 405 else None)
        assert not [name for name in response.headers if name.startswith("Access-Control")]
    allowed = await ops.ask({"user": EMAIL, "amount": 5}, Origin="https://evil.example")
    assert not [name for name in allowed.headers if name.startswith("Access-Control")]


async def test_the_two_ports_share_nothing_but_their_health(ops: Ops, site: Site) -> None:
    ours = ops.url.removesuffix("/ops/credits")
    for route in ROUTES:
        path = route.pattern.replace("([^/]+)", "x").replace("([A-Za-z0-9_-]{1,64})", "x").replace("\\", "")
        for method in ("GET", "POST"):
            response = await send(ours + path, method, headers={"Authorization": f"Bearer {KEY}"}, described=False)
            assert response.code == 404 or path in ("/healthz", "/openapi.json"), path
            assert response.headers["Content-Type"] == "application/json"
    for path in ("/static/latchkey.css", "/ops", "/ops/credits/", "/favicon.ico"):
        assert (await send(ours + path)).code == 404
    assert json_of(await send(f"{ours}/healthz")) == {"status": "ok"}
    async with served(make_application(site)) as theirs:
        body = json.dumps({"user": EMAIL, "amount": 5, "key": "a"})
        for method in ("GET", "POST"):
            headers = {"Authorization": f"Bearer {KEY}", **JSON}
            response = await send(f"{theirs}/ops/credits", method, body=body, headers=headers)
            assert response.code == 404
    assert await ops.paid() == [0]


@pytest.mark.trap(24)
async def test_no_log_contains_an_operator_key(ops: Ops, caplog: pytest.LogCaptureFixture) -> None:
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, logger=name)
    await ops.ask({"user": EMAIL, "amount": 5}, key="an-idempotency-key")
    await ops.ask("{", Authorization=f"Bearer {KEY}x")
    await send(f"{ops.url}?key={KEY}", "POST")
    for head in (f"Authorization: Bearer {KEY}\x01", f"{KEY}: x", f"{KEY}@: x", f"Host: {KEY}@"):
        await send_raw(ops.url, f"POST /ops/credits HTTP/1.1\r\n{head}".encode("latin-1"), b"{}")
    assert "POST /ops/credits 200" in caplog.text
    assert_none_of(caplog, {"operator key": KEY, "idempotency key": "an-idempotency-key", "address": EMAIL})


@pytest.mark.gen_test(timeout=60)
async def test_a_payment_with_a_lost_answer_is_503_and_booked_once(valkey_engine: Engine, keys: Keys) -> None:
    async with losing(valkey_engine, keys) as (world, armed):
        app = make_ops_application(Site(world.store, "http://localhost"), (KEY,))
        async with served(app) as url:
            ops = Ops(url, world.store, world.user)
            armed.arm("grant_credit", 9)
            lost = await ops.ask({"user": world.email, "amount": 5})
            answer(lost, 503, "temporarily_unavailable")
            assert int(lost.headers["Retry-After"]) >= 1
            armed.times = 0
            again = json_of(await ops.ask({"user": world.email, "amount": 5}))
            assert (again["paid"], again["replayed"]) == (5, True)
            assert await ops.paid() == [5, 5]
