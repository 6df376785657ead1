"""Events of payments at two server processes at once: each is booked once."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator

import psutil
import pytest
from tornado.httpclient import HTTPResponse
from tornado.ioloop import IOLoop

from tests.support.http import stripe_double
from tests.support.http.driver import send
from tests.support.http.stripe_double import KEY, SECRET, StripeDouble, signed
from tests.support.processes.processes import Pair, Server, at_once, driven, pair
from tests.support.store.credit_spender import DOLLAR, recount


@pytest.fixture(scope="module")
def stripe() -> Iterator[StripeDouble]:
    yield from stripe_double.standing()


@pytest.fixture(scope="module")
def two(stripe: StripeDouble, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Pair]:
    """Two servers on one store that sell credits; their secrets come from a file."""
    config = tmp_path_factory.mktemp("payments") / "latchkey.toml"
    config.write_text(f'stripe_key = "{KEY}"\nstripe_webhook_secret = ["whsec_{"o" * 32}", "{SECRET}"]\n')
    there = ("--stripe-api", stripe.url, "--stripe-page", stripe.url, "--base-url", "http://localhost:8080")
    with pair("--config", str(config), *there) as running:
        yield running
        for server in running.servers:
            assert KEY not in server.log + server.out
            assert SECRET not in server.log + server.out


def listening(server: Server) -> int:
    """The port of a server that prints another one, that of its base URL."""
    found = psutil.Process(server.process.pid).net_connections("tcp4")
    return int(next(one.laddr.port for one in found if one.status == psutil.CONN_LISTEN))


def test_each_event_sent_to_two_processes_at_once_is_booked_once(
    two: Pair, stripe: StripeDouble, io_loop: IOLoop
) -> None:
    with driven(io_loop, two) as service:
        named = {"latchkey_user": service.ada, "latchkey_site": "http://localhost:8080"}
        form = {f"metadata[{name}]": value for name, value in named.items()}
        form |= {f"payment_intent_data[metadata][{name}]": value for name, value in named.items()}
        form |= {"line_items[0][price_data][unit_amount]": "2000", "line_items[0][price_data][currency]": "usd"}
        form |= {"line_items[0][quantity]": "1", "mode": "payment", "client_reference_id": service.ada}
        session = str(stripe.create({**form, "success_url": "", "cancel_url": ""})["id"])
        events = [
            stripe.pay(session),
            stripe.refund(session, 300),
            stripe.refund(session, 400),
            stripe.dispute(session, "funds_withdrawn", 500),
            stripe.dispute(session, "funds_reinstated", 500),
            stripe.dispute(session, "funds_withdrawn", 100, "dp_2"),
        ]
        urls = [f"http://127.0.0.1:{listening(server)}/api/payments/stripe" for server in two.servers]

        async def tell(number: int, event: bytes) -> HTTPResponse:
            headers = {"Content-Type": "application/json", "Stripe-Signature": signed(event)}
            return await send(urls[number % 2], "POST", body=event, headers=headers, described=False)

        async def tell_all() -> None:
            sent = events * 12
            random.Random(7).shuffle(sent)
            answers = await asyncio.wait_for(at_once(tell(n, event) for n, event in enumerate(sent)), 60)
            assert {one.code for one in answers} == {200}

        io_loop.run_sync(tell_all, timeout=90)
        counted = io_loop.run_sync(lambda: recount(service.store, service.ada))
        assert counted.paid == 12 * DOLLAR, "20 bought, 7 refunded, and 1 of the disputed ones is not back"
        entries = io_loop.run_sync(lambda: service.store.credits.show(service.ada)).entries
        assert [entry.kind for entry in entries].count("purchase") == 1
