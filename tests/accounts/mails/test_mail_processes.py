"""Mail of a real server: nobody waits for it except shutdown."""

from __future__ import annotations

import asyncio
import time

import pytest

from runtime import demo
from tests.support.browser.mailbox import Mailbox, until
from tests.support.http.driver import Browser
from tests.support.processes.processes import QUICK, Server

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.slow]


async def forget(server: Server) -> float:
    """Seconds that a request for a password reset takes."""
    browser = Browser(server.url)
    page = await browser.get("/forgot")
    begun = time.monotonic()
    answer = await browser.submit(page, "/forgot", email=demo.EMAIL)
    assert answer.code == 200
    return time.monotonic() - begun


async def test_a_mail_waiting_for_a_retry_is_sent_at_shutdown() -> None:
    box = await Mailbox.open()
    box.answers = ["451 try later"]
    environment = {"LATCHKEY_SMTP_URL": box.url}
    with Server("--demo", "--redis-url", "memory", *QUICK, environment=environment) as server:
        await asyncio.to_thread(server.ready)
        await forget(server)
        await until(lambda: box.attempts == 1)
        await asyncio.to_thread(server.stop)
        mail = await box.mail()
        assert (mail["To"], mail["From"].addresses[0].addr_spec) == (demo.EMAIL, "noreply@localhost")
        assert "lk_pr_" not in server.log
        assert not (server.data_dir / "mail").exists()
    await box.close()


async def test_a_hanging_mail_server_delays_neither_people_nor_shutdown() -> None:
    box = await Mailbox.open()
    box.hang = asyncio.Event()
    environment = {"LATCHKEY_SMTP_URL": box.url}
    options = ("--demo", "--redis-url", "memory", "--drain-timeout", "0.5", *QUICK)
    with Server(*options, environment=environment) as server:
        await asyncio.to_thread(server.ready)
        assert await forget(server) < 5
        await until(lambda: box.attempts == 1)
        begun = time.monotonic()
        await asyncio.to_thread(server.stop)
        assert time.monotonic() - begun < 8
        assert "1 mails were not sent before the end" in server.log
    await box.close()
