"""Programs as their authors publish them sign people in with the code of a device."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from tests.oauth.clients.driving import NODE
from tests.oauth.clients.table import ROOT
from tests.oauth.device.devices import a_tv, decide, type_code
from tests.oauth.dpop.test_openid_client import line
from tests.support.http.driver import Service
from tests.support.processes.npm import packages

pytestmark = pytest.mark.gen_test(timeout=60)


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """Programs poll after a second."""
    monkeypatch.setattr("store.oauth.device_requests.INTERVAL", 1)


@asynccontextmanager
async def running(*words: str) -> AsyncIterator[asyncio.subprocess.Process]:
    """A program, which ends with the block."""
    environment = {**os.environ, "PYTHONUTF8": "1"}
    pipe = asyncio.subprocess.PIPE
    program = await asyncio.create_subprocess_exec(*words, stdout=pipe, stderr=pipe, env=environment)
    try:
        yield program
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()


async def test_openid_client_signs_in_on_a_device(service: Service) -> None:
    packages(NODE)
    await a_tv(service, scopes=("openid", "profile"))
    facts = json.dumps({"issuer": service.base_url, "clientId": "tv"})
    async with running(shutil.which("node") or "node", str(NODE / "device.mjs"), facts) as program:
        shown = await line(program)
        assert shown["picture"] == f"{shown['uri']}?user_code={shown['code']}"
        browser = await service.signed_in()
        await decide(browser, await type_code(browser, shown["code"]))
        assert await line(program) == {"sub": service.ada, "renewed": True}


@pytest.mark.parametrize(
    ("decision", "said"), [("allow", "Hello Ada Lovelace!"), ("deny", "access_denied: The person denied the request.")]
)
async def test_the_example_signs_in_at_the_command_line(service: Service, decision: str, said: str) -> None:
    await a_tv(service)
    script = str(ROOT / "examples" / "device_login.py")
    async with running(sys.executable, script, service.base_url, "tv") as program:
        assert program.stdout
        first = (await program.stdout.readline()).decode()
        found = re.fullmatch(rf"Open {service.base_url}/device and enter (\S+)\n", first)
        assert found, first
        browser = await service.signed_in()
        await decide(browser, await type_code(browser, found[1]), decision)
        out, error = await program.communicate()
        assert (out if decision == "allow" else error).decode().splitlines()[-1] == said
