"""`latchkey ai check`: each model is called once at each of its servers, and a failure shows in the exit status."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from cli.commands.ai import AT_ONCE
from tests.ai.upstreams.several import file_of
from tests.support.http.upstream import KEY, VENDOR_MODEL, Plan, ScriptedUpstream, failing, message
from tests.support.store.ai_spender import MODEL, cost

pytestmark = pytest.mark.gen_test(timeout=60)

ROOT = Path(__file__).parent.parent.parent


async def check(file: Path, *words: str) -> tuple[int, str, str]:
    """Runs the command; returns the exit status and both outputs."""
    command = [sys.executable, "manage.py", "ai", "check", "--ai-config", str(file), *words]
    process = await asyncio.create_subprocess_exec(
        *command, cwd=ROOT, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
    )
    said, complained = await process.communicate()
    assert process.returncode is not None
    return process.returncode, said.decode(), complained.decode()


def config(tmp_path: Path, **servers: ScriptedUpstream | str) -> Path:
    """The file of one model at these servers, each of which may be silent for a second."""
    file = tmp_path / "models.toml"
    urls = {name: server if isinstance(server, str) else server.url for name, server in servers.items()}
    file.write_text(file_of(urls).replace("first_byte_timeout = 20", "first_byte_timeout = 1"))
    return file


async def test_each_server_is_called_once_and_shows_tokens_price_and_time(
    upstream: ScriptedUpstream, tmp_path: Path
) -> None:
    other = ScriptedUpstream()
    upstream.plan = Plan(message("ok", usage={"input_tokens": 12, "cache_read_input_tokens": 3, "output_tokens": 4}))
    file = config(tmp_path, red=upstream, green=other)
    status, said, _ = await check(file, "--json")
    red, green = (json.loads(line) for line in said.splitlines())
    assert status == 0
    kinds = {"input": 12, "output": 4, "cache_read": 3, "cache_write": 0, "cache_write_1h": 0}
    assert 0 <= red.pop("ms") < 30_000
    assert red == {
        "model": MODEL,
        "server": "red",
        "upstreamId": VENDOR_MODEL,
        "ok": True,
        "tokens": kinds,
        "cost": cost(15, 4),
        "priceVersion": "v3",
        "currency": "USD",
        "scale": 6,
    }
    assert (green["server"], green["cost"]) == ("green", cost(25, 31))
    assert (len(upstream.calls), len(other.calls)) == (1, 1)
    assert upstream.calls[0].question["max_tokens"] <= 64
    status, said, _ = await check(file)
    assert status == 0
    assert [line.split()[:3] for line in said.splitlines()[1:]] == [[MODEL, "red", "ok"], [MODEL, "green", "ok"]]
    await other.close()


async def test_a_failure_at_one_server_shows_and_ends_with_status_1(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    plans = [failing(401, "authentication_error", KEY), Plan(before="hang"), Plan(status=429, body=b"{}")]
    servers: dict[str, Any] = {"works": upstream, "away": "http://127.0.0.1:1"}
    for name, plan in zip(("refuses", "hangs", "limits"), plans, strict=True):
        servers[name] = ScriptedUpstream()
        servers[name].plan = plan
    file = config(tmp_path, **servers)
    status, said, complained = await check(file, "--json")
    found = {line["server"]: line for line in map(json.loads, said.splitlines())}
    assert list(found) == ["works", "away", "refuses", "hangs", "limits"], "in the order of the file"
    assert len(found) > AT_ONCE
    assert (status, found["works"]["ok"]) == (1, True)
    errors = {name: line.get("error") for name, line in found.items() if not line["ok"]}
    codes = {"away": "upstream_error", "refuses": "upstream_error", "hangs": "upstream_timeout", "limits": "overloaded"}
    assert errors == codes
    assert found["refuses"]["detail"] == "refuses: status 401"
    assert [len(servers[name].calls) for name in ("refuses", "hangs", "limits")] == [1, 1, 1], "no second attempt"
    assert KEY not in said + complained
    status, said, _ = await check(file)
    assert (status, said.splitlines()[-1]) == (1, "4 of 5 calls failed.")
    for name in ("refuses", "hangs", "limits"):
        await servers[name].close()


async def test_one_model_can_be_chosen_and_a_mistake_is_named(upstream: ScriptedUpstream, tmp_path: Path) -> None:
    file = config(tmp_path, red=upstream)
    file.write_text("echo = true\n" + file.read_text() + "from = 2999-01-01T00:00:00Z\n")
    status, said, _ = await check(file, "--json", "--model", MODEL)
    (line,) = map(json.loads, said.splitlines())
    assert (status, line["ok"], line["cost"], line["priceVersion"]) == (0, True, None, None), "no price applies yet"
    status, _, complained = await check(file, "--model", "another")
    assert (status, "There is no model of this name" in complained) == (1, True)
    file.write_text("upstream = 1")
    status, _, complained = await check(file)
    assert (status, "must be an array" in complained) == (1, True)
