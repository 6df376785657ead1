"""openid-client, unmodified, works with an app of the profile `fapi2` from discovery alone."""

from __future__ import annotations

import asyncio
import json
import shutil
from dataclasses import replace

import pytest

from handlers.core.application import Latchkey
from store.apps.client_keys import registered_keys
from tests.oauth.clients.driving import NODE
from tests.oauth.dpop.test_openid_client import line
from tests.support.http.api_shop import ORDERS as API
from tests.support.http.api_shop import Shop, at
from tests.support.http.driver import CALLBACK, Service
from tests.support.http.fapi_app import SCOPES, SETTINGS
from tests.support.processes.npm import packages


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("nonces", ["optional", "required"])
@pytest.mark.parametrize("algorithm", ["ES256", "PS256", "Ed25519"])
async def test_openid_client_works_with_the_profile(
    service: Service, server: Latchkey, algorithm: str, nonces: str
) -> None:
    packages(NODE)
    server.site = replace(server.site, dpop_nonce_required=nonces == "required")
    await Shop.open(service)
    facts = {"issuer": service.base_url, "clientId": "bank", "redirectUri": CALLBACK, "algorithm": algorithm}
    program = await asyncio.create_subprocess_exec(
        shutil.which("node") or "node",
        str(NODE / "fapi2.mjs"),
        json.dumps(facts),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    assert program.stdin
    try:
        jwks = registered_keys(json.dumps(await line(program)).encode())
        fields = {**SETTINGS, "scopes": SCOPES, "api_scopes": at(API, "read"), "private_key_jwt": True, "jwks": jwks}
        await service.add_app("bank", profile="fapi2", **fields)
        program.stdin.write(b"registered\n")
        url = (await line(program))["url"]
        assert "request_uri=" in url
        redirect = await (await service.signed_in()).consent(url.removeprefix(service.base_url))
        program.stdin.write(redirect.headers["Location"].encode() + b"\n")
        assert await line(program) == {
            "types": ["dpop", "dpop", "dpop"],  # the library writes it in lower case
            "sub": service.ada,
            "written": 201,
            "active": [True, False],
            "bound": True,
        }
        assert await program.wait() == 0
    finally:
        if program.returncode is None:
            program.kill()
            await program.wait()
