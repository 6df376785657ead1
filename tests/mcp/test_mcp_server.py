"""The server with its MCP server on: several processes, and without the SDK."""

from __future__ import annotations

from pathlib import Path

import httpx2
import pytest

from tests.support.http.mcp_app import message
from tests.support.processes.processes import Server, refused


def asked(base_url: str) -> tuple[int, str]:
    """The status and the challenge of a message without a token."""
    answer = httpx2.post(f"{base_url}/mcp", json=message("tools/list"))
    return answer.status_code, answer.headers.get("WWW-Authenticate", "")


@pytest.mark.slow
def test_workers_serve_it_and_a_server_without_the_setting_does_not() -> None:
    with Server("--mcp", "on", "--mcp-scopes", "profile data:read", "--workers", "2") as server:
        server.ready()
        status, challenge = asked(server.here)
        assert status == 401
        assert 'scope="profile data:read", resource_metadata="' in challenge
        found = httpx2.get(f"{server.here}/.well-known/oauth-protected-resource/mcp")
        assert found.json()["scopes_supported"] == ["profile", "data:read"]
    with Server() as server:
        assert asked(server.ready().here) == (404, "")


def test_a_server_without_the_sdk_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "mcp.py").write_text('raise ModuleNotFoundError("No module named mcp", name="mcp")')
    status, log = refused("--mcp", "on", "--workers", "2", environment={"PYTHONPATH": str(tmp_path)}, fresh=True)
    assert (status, log) == (1, "latchkey: --mcp on needs the SDK: pip install 'latchkey[mcp]'\n")
