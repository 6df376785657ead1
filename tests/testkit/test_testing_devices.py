"""The test kit enters the codes of devices for people."""

from __future__ import annotations

from typing import Any

import httpx
import pytest

from latchkey.testing import App, Latchkey, LatchkeyError
from store.oauth.device_requests import GRANT_TYPE
from tests.testkit.test_testing_tokens import latchkey, server

__all__ = ["latchkey", "server"]  # fixtures


def post(latchkey: Latchkey, path: str, **fields: str) -> Any:
    """The answer to a device."""
    return httpx.post(f"{latchkey.url}/api/oauth/{path}", data=fields).json()


def begun(latchkey: Latchkey, app: App) -> Any:
    return post(latchkey, "device_authorization", client_id=app.client_id, scope=app.scope)


def poll(latchkey: Latchkey, app: App, codes: Any) -> Any:
    return post(latchkey, "token", client_id=app.client_id, grant_type=GRANT_TYPE, device_code=codes["device_code"])


def test_a_device_gets_tokens_of_the_person_who_enters_its_code(latchkey: Latchkey) -> None:
    ada = latchkey.person("Ada", credits=5_000_000)
    app = latchkey.app("A TV", public=True, scopes="openid data:read credits:spend")
    codes = begun(latchkey, app)
    assert poll(latchkey, app, codes)["error"] == "authorization_pending"
    latchkey.enters(codes["user_code"].lower(), person=ada, scopes="openid data:read")
    tokens = poll(latchkey, app, codes)
    assert tokens["scope"] == "openid data:read"
    assert tokens["id_token"]


def test_a_person_denies_a_device(latchkey: Latchkey) -> None:
    app = latchkey.app("A TV", public=True)
    codes = begun(latchkey, app)
    latchkey.enters(codes["user_code"], denies=True)
    assert poll(latchkey, app, codes)["error"] == "access_denied"


def test_a_wrong_code_and_an_app_without_the_grant_are_refused(latchkey: Latchkey) -> None:
    with pytest.raises(LatchkeyError, match="isn’t right"):
        latchkey.enters("BCDF-GHJK")
    app = latchkey.app("No TV", public=True, device_grant=False)
    assert begun(latchkey, app)["error"] == "unauthorized_client"
