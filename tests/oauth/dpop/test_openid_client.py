"""openid-client, unmodified, signs in and calls with bound tokens, whether the server demands nonces or not."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace
from typing import Any

import pytest

from handlers.core.application import Latchkey
from tests.oauth.clients.driving import NODE
from tests.support.http.driver import CALLBACK, Service
from tests.support.processes.npm import packages


async def line(process: asyncio.subprocess.Process) -> Any:
    """The next answer of the program."""
    assert process.stdout
    text = await process.stdout.readline()
    if not text:
        assert process.stderr
        pytest.fail((await process.stderr.read()).decode())
    return json.loads(text)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("nonces", ["optional", "required"])
@pytest.mark.parametrize(
    ("algorithm", "pushes"),
    [pytest.param("ES256", False, id="ES256"), pytest.param("PS256", True, id="PS256, pushed"), ("Ed25519", False)],
)
async def test_openid_client_uses_bound_tokens(
    service: Service, server: Latchkey, algorithm: str, nonces: str, pushes: bool
) -> None:
    packages(NODE)
    server.site = replace(server.site, dpop_nonce_required=nonces == "required")
    await service.add_app("spa", public=True, dpop_required=True)
    facts = {"issuer": service.base_url, "clientId": "spa", "redirectUri": CALLBACK}
    program = await asyncio.create_subprocess_exec(
        shutil.which("node") or "node",
        str(NODE / "dpop.mjs"),
        json.dumps({**facts, "algorithm": algorithm, "pushes": pushes}),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert program.stdin
    try:
        url = (await line(program))["url"]
        redirect = await (await service.signed_in()).consent(url.removeprefix(service.base_url))
        program.stdin.write(redirect.headers["Location"].encode() + b"\n")
        assert await line(program) == {
            "types": ["dpop", "dpop"],  # the library writes it in lower case
            "sub": service.ada,
            "statuses": [201, 200, 401],
            "items": 1,
            "stolen": "invalid_dpop_proof",
        }
        assert await program.wait() == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
