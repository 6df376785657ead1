"""One session, and one account at another site, on the operator's command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from store.wiring import Store
from tests.support.processes.operator_commands import Home
from tests.support.store.world import VISITOR

ADA = "ada@example.com"
HERE, GONE = "https://idp.example.org", "https://gone.example.org"
PROVIDERS = f"""
[[provider]]
name = "here"
type = "oidc"
issuer = "{HERE}"
client_id = "latchkey"
secret_env = "IDP_SECRET"
"""


def moved_in(home: Home, tmp_path: Path, *issuers: str) -> list[str]:
    """Ada without a password, with an account at each issuer; the ids of these."""
    line = {
        "email": ADA,
        "email_verified": True,
        "name": "Ada",
        "links": [{"issuer": one, "subject": "ada"} for one in issuers],
    }
    file = tmp_path / "people.jsonl"
    file.write_text(json.dumps(line))
    assert home.json("import", str(file))["created"] == 1
    found = {one["issuer"]: one["id"] for one in home.json("user", "identities", ADA)["identities"]}
    return [found[one] for one in issuers]


def signed_in(home: Home, times: int) -> None:
    """Signs Ada in."""

    async def use(store: Store) -> None:
        known = await store.people.credentials(ADA)
        assert known
        for _ in range(times):
            await store.sessions.start(known, VISITOR)

    home.with_store(use)


def test_one_session_ends_and_the_other_stays(home: Home) -> None:
    sub = home.user(ADA)["sub"]
    signed_in(home, 2)
    first, second = home.json("user", "sessions", ADA)["sessions"]
    assert home.json("user", "end-session", sub, first["id"]) == {"sub": sub, "id": first["id"], "ended": True}
    assert [one["id"] for one in home.json("user", "sessions", ADA)["sessions"]] == [second["id"]]
    for wrong in (first["id"], "x" * 22, "../../x", "-" + "a" * 21):
        _, code, said = home.error("user", "end-session", ADA, wrong)
        assert (code, "`latchkey user sessions` lists them" in said) == ("not_found", True)
    logged = [one["event"] for one in home.json("audit")["events"]]
    assert logged.count("session_ended_by_operator") == 1


def test_an_account_elsewhere_is_unlinked_but_never_the_last_way_in(home: Home, tmp_path: Path) -> None:
    here, gone = moved_in(home, tmp_path, HERE, GONE)
    config = tmp_path / "providers.toml"
    config.write_text(PROVIDERS)
    flag = ("--identity-config", str(config))
    # The other issuer signs nobody in: no provider is configured for it.
    _, code, said = home.error("user", "unlink", ADA, here, *flag)
    assert (code, "only this way" in said) == ("invalid_request", True), said
    assert home.error("user", "unlink", ADA, gone)[1] == "invalid_request"
    assert home.json("user", "unlink", ADA, gone, *flag)["ended"] is True
    assert home.error("user", "unlink", ADA, gone, *flag)[1] == "not_found"
    home.json("user", "set-password", ADA, LATCHKEY_PASSWORD_MEMORY="8192")
    assert home.json("user", "unlink", ADA, here)["ended"] is True
    assert home.json("user", "identities", ADA)["identities"] == []
    logged = [one["event"] for one in home.json("audit")["events"]]
    assert logged.count("identity_unlinked_by_operator") == 2


@pytest.fixture(autouse=True)
def _secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IDP_SECRET", "a client secret")
