"""The JSON examples of docs/http.md are valid answers, and userinfo's has the members of a real one."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from handlers.openapi.document import document
from handlers.routes import ROUTES
from tests.support.http.driver import Service, json_of, send

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "docs" / "http.md").read_text("utf-8")
EXAMPLES: list[dict[str, Any]] = [json.loads(body) for body in re.findall(r"^```json\n(.*?)^```$", TEXT, re.M | re.S)]
SCHEMAS = (
    *("Error", "Tokens", "Userinfo", "PushedResponse", "DeviceResponse", "Introspection", "ClientMetadata"),
    *("WrittenDocument", "DocumentPage", "DocumentUsage", "Balance", "Usage", "ConnectedApps"),
    *("AIRequest", "AIReply", "AIModels", "SdkModel", "SdkError", ""),
)
"""The schema of each example, in the order of the page."""
CUT = "…"
"""Stands in an example for the rest of a value."""
USERINFO = EXAMPLES[SCHEMAS.index("Userinfo")]


def test_every_example_is_valid() -> None:
    components = json.loads(json.dumps(document(ROUTES, "http://localhost:8080")))["components"]
    found = []
    for name, example in zip(SCHEMAS, EXAMPLES, strict=True):
        if not name:  # the operations port has no schema
            continue
        whole = {"$ref": f"#/components/schemas/{name}", "components": components}
        for error in Draft202012Validator(whole, validate_formats=True).iter_errors(example):
            if CUT not in str(error.instance):
                found.append(f"{name}: {error.message}")
    assert found == []


@pytest.mark.gen_test
async def test_the_example_of_userinfo_has_the_members_of_a_real_answer(service: Service) -> None:
    app = await service.add_app("the-app", scopes=("profile",))
    tokens = await service.tokens(app, await service.confirmed(), scope="profile")
    headers = {"Authorization": f"Bearer {tokens['access_token']}"}
    answer = json_of(await send(f"{service.base_url}/api/oauth/userinfo", headers=headers))
    assert {name: type(value) for name, value in answer.items()} == {
        name: type(value) for name, value in USERINFO.items()
    }
    assert len(answer["sub"]) == len(USERINFO["sub"])
    assert re.match(r"http://[^/]+/picture/lk_pc_", answer["picture"])
    assert re.match(r"http://[^/]+/picture/lk_pc_", USERINFO["picture"])
    assert answer["email_verified"] == USERINFO["email_verified"]
