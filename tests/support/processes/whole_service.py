"""The server and the operator's commands as separate processes on a store of any kind."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

from store.crypto.keyring import KeyRing
from tests.support.http.driver import json_of, send
from tests.support.processes.operator_commands import child
from tests.support.processes.processes import QUICK, refused, shared

SECRET = "s3cret-of_the-web-app-0123456789"
SEED = {
    "apps": [
        {
            "client_id": "web",
            "client_secret": SECRET,
            "name": "Web",
            "redirect_uris": ["https://web.example/cb"],
            "scopes": "profile data:read data:write credits:read",
            "hostedStorage": True,
        }
    ],
    "users": [{"email": "ada@example.com", "name": "Ada", "password": "correct horse battery", "credits": 5_000_000}],
}


async def check_server_and_commands(url: str, tmp_path: Path) -> None:
    """Two workers, a seed file, the operator's commands and an app's calls; only the URL names the store."""
    ring = KeyRing.generate(1)
    seed = tmp_path / "seed.json"
    seed.write_text(json.dumps(SEED))

    def operate(*words: str) -> Any:
        return child(tmp_path, "--json", *words, LATCHKEY_REDIS_URL=url, LATCHKEY_SECRET_KEYS=ring).json

    status, log = refused("--redis-url", url, *QUICK)
    assert (status, "secret_keys must be set" in log) == (2, True)
    with shared(ring, "--redis-url", url, "--workers", "2", "--seed", str(seed), *QUICK) as server:
        server.ready()
        email = "grace@example.com"
        operate("user", "create", "--email", email, "--name", "Grace")
        assert {user["email"] for user in operate("user", "list")["users"]} == {"ada@example.com", email}
        tokens = operate("token", "mint", "--user", email, "--client-id", "web", "--scopes", "profile data:write")
        app = {"Authorization": f"Bearer {tokens['access_token']}", "Content-Type": "application/json"}
        assert json_of(await send(f"{server.here}/api/oauth/userinfo", headers=app))["email"] == email
        assert (await send(f"{server.here}/api/v1/data/notes/n1", "PUT", body="{}", headers=app)).code == 201
        form = {"grant_type": "refresh_token", "refresh_token": tokens["refresh_token"], "client_id": "web"}
        answer = await send(f"{server.here}/api/oauth/token", "POST", form={**form, "client_secret": SECRET})
        assert answer.code == 200
        assert operate("keys", "reencrypt")["documents"] == 1
        checked = operate("fsck", "--deep")
        assert (checked["clean"], checked["findings"], checked["people"], checked["documents"]) == (True, [], 2, 1)
        assert (await send(f"{server.here}/readyz")).code == 200
        operate("app", "update", "web", "--disable")
        # Both workers refuse it: at once by the announcement, or five seconds later.
        async with asyncio.timeout(10):
            while {(await send(f"{server.here}/api/oauth/userinfo", headers=app)).code for _ in range(10)} != {401}:
                await asyncio.sleep(0.05)
        assert server.stop() == 0
