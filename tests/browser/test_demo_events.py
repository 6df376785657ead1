"""Webhooks that the demo app receives, and the open pages that look again for them."""

from __future__ import annotations

import http.client
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from standardwebhooks.webhooks import Webhook

from dev.lab.engines import wait_until
from tests.support.browser.demo_fixtures import SIGNING, browser, demo, stub
from tests.support.browser.demo_site import PROGRAM, Browser, Demo, Stub, running

__all__ = ["browser", "demo", "stub"]  # fixtures


def test_an_open_page_learns_of_the_end_of_access(browser: Browser, stub: Stub) -> None:
    assert browser.ask("/events")[0] == 204
    browser.connect(stub)
    stub.answers["userinfo"] = (401, {"error": "invalid_token"})
    status, headers, events = browser.ask("/events")
    assert (status, headers["Content-Type"]) == (200, "text/event-stream")
    assert events.startswith("event: ended\ndata: ")
    assert "no longer connected" in events
    page = browser.ask("/")[2]
    assert "no longer connected" in page, "whether anybody reads an open page is not known"
    assert "Sign in with Latchkey" in page
    assert "connected" not in browser.ask("/")[2]


def post(
    demo: Demo, event: str, *, sub: str = "user-1", ago: float = 0, late: float = 0, by: str = SIGNING, stamp: str = ""
) -> int:
    """Posts an event to the app and returns the status. The event happened `ago` seconds ago, is signed with the secret
    `by`, and took `late` seconds to arrive or has another `stamp`."""
    now = datetime.now(UTC)
    event_body = {"type": event, "timestamp": (now - timedelta(seconds=ago)).isoformat(), "data": {"sub": sub}}
    name, sent, body = f"event-{ago}-{event}", now - timedelta(seconds=late), json.dumps(event_body)
    signature = Webhook(by).sign(name, sent, body) if by else "v1,"
    headers = {
        "webhook-id": name,
        "webhook-timestamp": stamp or str(int(sent.timestamp())),
        "webhook-signature": signature,
    }
    connection = http.client.HTTPConnection(urlsplit(demo.url).netloc, timeout=10)
    connection.request("POST", "/webhooks", body, {**headers, "Content-Type": "application/json"})
    status = connection.getresponse().status
    connection.close()
    return status


@pytest.mark.parametrize("event", ["grant.revoked", "tokens.revoked", "user.deleted"])
@pytest.mark.parametrize("shared", [True, False], ids=["known", "whose profile is not shared"])
def test_a_webhook_makes_an_open_page_check_at_once(stub: Stub, tmp_path: Path, event: str, shared: bool) -> None:
    stub.answers.clear()
    if not shared:
        stub.answers["userinfo"] = (403, {"error": "insufficient_scope"})
    with running(stub.issuer, tmp_path / "log", signing=SIGNING) as demo, ThreadPoolExecutor(1) as pool:
        browser = Browser(demo)
        browser.connect(stub)
        stub.calls.clear()
        page = pool.submit(browser.ask, "/events")
        wait_until(lambda: bool(stub.named("userinfo")))  # and not again for ten seconds
        assert post(demo, event) == 204
        wait_until(lambda: len(stub.named("userinfo")) == 2)
        assert not page.done(), "it is connected as before"
        stub.answers["userinfo"] = (401, {"error": "invalid_token"})
        assert post(demo, event) == 204, "the same once more is no news"
        assert post(demo, event, ago=-1) == 204
        assert "Latchkey has ended" in page.result(5)[2]
        assert len(stub.named("userinfo")) == 3
        assert "no longer connected" in browser.ask("/")[2]
        assert "connected" not in browser.ask("/")[2]


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        pytest.param({"event": "ping"}, 204, id="a test"),
        pytest.param({"event": "data.deleted"}, 204, id="documents that are gone"),
        pytest.param({"event": "of a later release"}, 204, id="what it does not know"),
        pytest.param({"event": "grant.revoked", "sub": "user-2"}, 204, id="somebody else"),
        pytest.param({"event": "grant.revoked", "late": 400}, 400, id="what somebody kept to send it again"),
        pytest.param({"event": "grant.revoked", "by": "whsec_" + "A" * 44}, 400, id="another secret"),
        pytest.param({"event": "grant.revoked", "by": ""}, 400, id="nobody"),
        pytest.param({"event": "grant.revoked", "by": "", "stamp": "9" * 400}, 400, id="an endless time"),
        pytest.param({"event": "grant.revoked", "by": "", "stamp": "9" * 5000}, 400, id="a time without any end"),
        pytest.param({"event": "grant.revoked", "by": "", "stamp": "\u00b2"}, 400, id="a time that is no number"),
    ],
)
def test_ignored_webhooks_make_no_page_check(stub: Stub, tmp_path: Path, fields: dict[str, Any], status: int) -> None:
    stub.answers.clear()
    with running(stub.issuer, tmp_path / "log", signing=SIGNING) as demo, ThreadPoolExecutor(1) as pool:
        browser = Browser(demo)
        browser.connect(stub)
        stub.calls.clear()
        page = pool.submit(browser.ask, "/events")
        wait_until(lambda: bool(stub.named("userinfo")))
        assert post(demo, **fields) == status
        stub.answers["userinfo"] = (401, {"error": "invalid_token"})
        assert post(demo, "grant.revoked", ago=-1) == 204
        assert "Latchkey has ended" in page.result(5)[2]
        assert len(stub.named("userinfo")) == 2
        assert "Traceback" not in demo.log.read_text()


@pytest.mark.parametrize("secret", ["whsec_", "whsec_bm90IGxvbmc=", "no secret", "whsec_" + "?" * 44])
def test_an_invalid_signing_secret_is_refused_on_start(secret: str) -> None:
    command = [sys.executable, str(PROGRAM), "--latchkey", "http://127.0.0.1:1", "--client-id", "a", "--port", "0"]
    environment = {**os.environ, "DEMO_WEBHOOK_SECRET": secret}
    done = subprocess.run(command, capture_output=True, text=True, timeout=20, check=False, env=environment)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == "DEMO_WEBHOOK_SECRET: this is no signing secret of a webhook\n"


def test_without_a_secret_webhooks_are_refused(stub: Stub, tmp_path: Path) -> None:
    with running(stub.issuer, tmp_path / "log") as demo:
        assert post(demo, "grant.revoked") == 404
