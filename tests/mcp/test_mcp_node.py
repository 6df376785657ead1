"""The official TypeScript SDK, unmodified, does what the Python one does."""

from __future__ import annotations

import asyncio
import json
import shutil
from asyncio.subprocess import PIPE
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from handlers.core.site import Site
from store.wiring import Store
from tests.support.http.driver import NAME, App, Browser, Service, answer_of
from tests.support.http.mcp_app import mcp_site
from tests.support.processes.npm import packages

pytestmark = [pytest.mark.gen_test(timeout=60), pytest.mark.slow]
NODE = Path(__file__).parent / "node"


@pytest.fixture
def site(memory_store: Store, base_url: str) -> Site:
    return mcp_site(memory_store, base_url)


async def run(
    service: Service, app: App | None, browser: Browser, job: dict[str, Any]
) -> tuple[dict[str, Any], list[str]]:
    """What the assistant found, and the authorization requests that the person allowed."""
    packages(NODE)
    process = await asyncio.create_subprocess_exec(
        str(shutil.which("node")), "assistant.mjs", cwd=NODE, stdin=PIPE, stdout=PIPE
    )
    assert process.stdin is not None
    assert process.stdout is not None
    job = {"url": f"{service.base_url}/mcp", "redirectUri": "http://localhost:8123/callback", **job}
    if app is not None:
        known = {"client_id": app.client_id, "client_secret": app.secret, "issuer": app.base_url}
        job |= {"client": known, "redirectUri": app.redirect_uri}
    process.stdin.write(json.dumps(job).encode() + b"\n")
    asked: list[str] = []
    try:
        while True:
            said = json.loads(await asyncio.wait_for(process.stdout.readline(), 30))
            if "go" not in said:
                return said, asked
            parts = urlsplit(said["go"])
            asked.append(parts.query)
            answer = answer_of(await browser.consent(f"{parts.path}?{parts.query}"))
            process.stdin.write(json.dumps(answer).encode() + b"\n")
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_the_typescript_sdk_gets_tools_scopes_and_new_tokens(service: Service) -> None:
    note = {"collection": "notes", "id": "a"}
    calls = [
        {"name": "who_am_i", "arguments": {}},
        {"name": "save_document", "arguments": {**note, "content": {"x": 1}}},
        {"forget": True},
        {"name": "who_am_i", "arguments": {}},
        {"name": "get_document", "arguments": note},
    ]
    found, asked = await run(service, service.web, await service.signed_in(), {"calls": calls})
    assert "failed" not in found, found["failed"]
    who, saved, again, read = found["answers"]
    assert who["value"]["name"] == again["value"]["name"] == NAME
    assert saved["value"]["created"] is True
    assert read["value"]["content"] == {"x": 1}
    # A challenge names what the token has, too, or this SDK would lose it.
    assert found["scope"] == "profile data:read data:write"
    assert len(asked) == 3
    assert all(f"resource={service.base_url}/mcp".replace(":", "%3A").replace("/", "%2F") in one for one in asked)
    assert all("code_challenge_method=S256" in one for one in asked)


async def test_the_typescript_sdk_registers_itself(service: Service, site: Site) -> None:
    object.__setattr__(site, "dynamic_registration", "open")
    job = {"calls": [{"name": "who_am_i", "arguments": {}}]}
    found, asked = await run(service, None, await service.signed_in(), job)
    assert "failed" not in found, found["failed"]
    assert found["answers"][0]["value"]["name"] == NAME
    assert found["tools"] == ["who_am_i"]
    assert len(asked) == 1
