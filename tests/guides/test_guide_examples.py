"""The blocks of docs/clients.md that make a client from an app's values fit the examples below them."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from handlers.guides.guide_text import DOCS
from tests.oauth.clients.table import HERE

TEXT = (DOCS / "clients.md").read_text("utf-8")
BLOCKS = re.findall(r"^```(python|js)\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)
MAKING = [(language, code) for language, code in BLOCKS if "CLIENT_SECRET" in code]


@pytest.mark.parametrize(
    "module", ["authlib_requests", "authlib_httpx", "requests_oauthlib_session", "httpx_oauth_client"]
)
def test_the_python_block_makes_each_client(module: str) -> None:
    ((_, code),) = (block for block in MAKING if block[0] == "python")
    (statement,) = ast.parse(code).body
    assert isinstance(statement, ast.Assign)
    call = statement.value
    assert isinstance(call, ast.Call)
    client = importlib.import_module(f"tests.oauth.clients.{module}").Latchkey
    bound = inspect.signature(client).bind(*call.args, **{str(one.arg): one.value for one in call.keywords})
    assert {"issuer", "redirect_uri", "scope"} <= set(bound.arguments)


@pytest.mark.parametrize("name", ["openid-client", "simple-oauth2", "passport-oauth2", "auth-core"])
def test_each_javascript_block_names_what_its_example_reads(name: str, tmp_path: Path) -> None:
    example = (HERE / "node" / f"{name}.mjs").read_text("utf-8")
    section = TEXT[: TEXT.index(f"<!-- from tests/oauth/clients/node/{name}.mjs -->")]
    code = re.findall(r"^```js\n(.*?)^```$", section, re.MULTILINE | re.DOTALL)[-1]
    assert "CLIENT_SECRET" in code
    for called in re.findall(r"(?:Latchkey\.)?(\w+)\(", code):
        assert re.search(rf"\b{called}\(", example), called
    for named in re.findall(r"^  (\w+):", code, re.MULTILINE):
        assert re.search(rf"\b{named}\b", example), named
    if (node := shutil.which("node")) is None:
        pytest.skip("no node on this machine")
    (tmp_path / "block.mjs").write_text(code)
    assert subprocess.run([node, "--check", "block.mjs"], cwd=tmp_path, timeout=30).returncode == 0
