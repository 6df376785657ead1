"""The demo app, the server that it signs people in at, and a browser, for a module of tests."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from typing import Any

import pytest

from tests.support.browser.demo_site import Browser, Demo, Stub, running, serving

SECRET = "s%3A+cret:/with every trap"


SIGNING = "whsec_" + base64.b64encode(b"what signs webhooks of the demo app").decode()


@pytest.fixture(scope="module")
def stub() -> Iterator[Stub]:
    with serving() as stub:
        yield stub


@pytest.fixture(scope="module")
def demo(stub: Stub, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    with running(stub.issuer, tmp_path_factory.mktemp("demo") / "log", secret=SECRET, signing=SIGNING) as demo:
        yield demo


@pytest.fixture
def browser(demo: Demo, stub: Stub) -> Browser:
    stub.answers.clear()
    stub.calls.clear()
    return Browser(demo)


def with_data(stub: Stub, browser: Browser, *items: dict[str, Any]) -> str:
    """Signs in where the app may keep notes, and these are there; the page."""
    tokens = {"access_token": f"at-secret-{stub.issued}", "refresh_token": stub.refresh_token, "token_type": "Bearer"}
    stub.answers["token"] = (200, {**tokens, "expires_in": 3600, "scope": "profile data:read data:write"})
    stub.answers["notes"] = (200, {"items": list(items), "nextCursor": None})
    return browser.connect(stub)
