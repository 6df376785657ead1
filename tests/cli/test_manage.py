"""The operator's command line on an embedded store, with a server and alone: apps, people, tokens."""

from __future__ import annotations

import asyncio
import contextlib
import json
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from cli.commands.keys import RELOAD_SECONDS
from store import keys
from store.accounts.signin.sessions import SecondStepNeeded
from store.accounts.signin.totp import STEP, code_at
from store.crypto.keyring import KeyFile
from store.engine.embedded import running_socket
from store.refused import Suspended
from store.results import Visitor
from store.wiring import Store
from tests.support.http.driver import send
from tests.support.processes.operator_commands import NEW_APP, PASSWORD, URI, Home, child, clean_environment, everything
from tests.support.processes.processes import Server
from tests.support.processes.store_owners import ROOT


def test_without_a_server_a_command_starts_and_stops_the_store(data_dir: Path) -> None:
    scopes = ("--scopes", "data:read profile")
    made = child(data_dir, "app", "create", *NEW_APP, *scopes, "--json", fresh=True).json
    assert running_socket(data_dir) is None
    assert not (data_dir / "store.json").exists()
    before = time.monotonic()
    shown = child(data_dir, "--json", "app", "show", made["client_id"]).json
    usual = time.monotonic() - before
    assert {**made, "people": 0, "days": []} == {**shown, "client_secret": made["client_secret"]}
    # Nothing waits for a server that does not run, and the ids of keys go on from the file's.
    before = time.monotonic()
    assert child(data_dir, "keys", "rotate", "--json").json == {"id": 2, "front": True}
    assert time.monotonic() - before < 2 * usual + RELOAD_SECONDS
    assert [key.id for key in KeyFile(data_dir / "keys").ring.keys] == [2, 1]


@contextlib.contextmanager
def server(data_dir: Path, *words: str) -> Iterator[str]:
    """A running server; its URL."""
    with Server(*words, data_dir=data_dir) as running:
        yield running.ready().url
        assert running.stop() == 0


def userinfo(url: str, access_token: str) -> tuple[int, Any]:
    headers = {"Authorization": f"Bearer {access_token}"}
    response = asyncio.run(send(f"{url}/api/oauth/userinfo", headers=headers))
    return response.code, json.loads(response.body)


@pytest.mark.trap(35)
@pytest.mark.spec("2.2")
def test_next_to_a_server_changes_take_effect_at_once(data_dir: Path, tmp_path: Path) -> None:
    seeded = tmp_path / "seed.json"
    web = {"client_id": "web", "client_secret": "s" * 32, "name": "Web", "redirect_uris": [URI], "scopes": "profile"}
    ada = {"email": "ada@example.com", "name": "Ada", "password": PASSWORD}
    seeded.write_text(json.dumps({"apps": [web], "users": [ada]}))
    mint = ("token", "mint", "--user", "ada@example.com", "--client-id", "web", "--scopes", "profile", "--json")
    with server(data_dir, "--seed", str(seeded), "--password-memory", "8192") as url:
        first = child(data_dir, *mint).json
        assert set(first) == {"access_token", "token_type", "expires_in", "refresh_token", "scope"}
        assert (first["token_type"], first["expires_in"], first["scope"]) == ("Bearer", 3600, "profile")
        assert userinfo(url, first["access_token"])[1]["email"] == "ada@example.com"

        # A new key stays behind the others until the server has it; then what either key sealed opens there.
        rotation = subprocess.Popen(
            [sys.executable, str(ROOT / "manage.py"), "--data-dir", str(data_dir), "keys", "rotate", "--json"],
            stdout=subprocess.PIPE,
            env=clean_environment(),
        )
        rings = set()
        while rotation.poll() is None:
            rings.add(tuple(key.id for key in KeyFile(data_dir / "keys").ring.keys))
            time.sleep(0.02)
        rings.add(tuple(key.id for key in KeyFile(data_dir / "keys").ring.keys))
        assert json.loads(rotation.communicate()[0]) == {"id": 2, "front": True}
        assert rings == {(1,), (1, 2), (2, 1)}
        second = child(data_dir, *mint).json
        assert userinfo(url, second["access_token"])[0] == 200
        assert userinfo(url, first["access_token"])[0] == 200

        disabled = child(data_dir, "user", "disable", "ada@example.com", "--json").json
        assert disabled["status"] == "disabled"
        status, body = userinfo(url, second["access_token"])
        assert (status, body["error"]) == (401, "invalid_token")


def test_an_app_record_has_the_apis_fields(home: Home) -> None:
    made = home.app("web", "--homepage", "https://web.example", "--pkce-required", "--hosted-storage", "--no-iss")
    secret = made.pop("client_secret")
    assert re.fullmatch(r"lk_cs_[A-Za-z0-9_-]{43}", secret)
    assert re.fullmatch(r"20\d\d-\d\d-\d\dT\d\d:\d\d:\d\d\.\d\d\dZ", made["createdAt"])
    assert made == {
        "client_id": "web",
        "name": "Web",
        "homepage": "https://web.example",
        "logo": "",
        "redirect_uris": [URI],
        "scopes": ["profile", "data:read"],
        "public": False,
        "pkceRequired": True,
        "hostedStorage": True,
        "issInResponse": False,
        "origin": "",
        "refreshRetrySeconds": 0,
        "refreshLifetimeDays": 0,
        "idTokenAlg": "RS256",
        "dpopRequired": False,
        "postLogoutRedirectUris": [],
        "backchannelLogoutUri": "",
        "subjectType": "public",
        "sectorIdentifierUri": "",
        "authMethod": "client_secret",
        "jwks": None,
        "jwksUri": "",
        "requirePushed": False,
        "deviceGrant": True,
        "allowedGroups": [],
        "firstParty": False,
        "secondStep": False,
        "ownerSecondStep": False,
        "callsPerMinute": 0,
        "introspectionsPerMinute": 0,
        "spendPerDay": 0,
        "profile": "none",
        "webhookUrl": "",
        "webhookEvents": ["all"],
        "verified": False,
        "verifiedDomain": "",
        "verifiedDomainUntil": 0,
        "status": "active",
        "suspendedReason": "",
        "owner": "",
        "createdAt": made["createdAt"],
    }
    assert home.json("app", "show", "web") == {**made, "people": 0, "days": []}
    assert home.json("app", "list") == {"apps": [made]}

    async def matches(store: Store) -> bool:
        app = await store.apps.find("web")
        return app is not None and app.secret_matches(secret)

    assert home.with_store(matches)


def test_a_public_app_has_no_secret_and_several_redirect_uris(home: Home) -> None:
    made = home.app("native", "--public", "--redirect-uri", "com.example.app:/cb", "--refresh-retry-seconds", "5")
    assert "client_secret" not in made
    assert (made["public"], made["refreshRetrySeconds"]) == (True, 5)
    assert made["redirect_uris"] == [URI, "com.example.app:/cb"]


def test_a_generated_client_id_is_safe_on_a_command_line(home: Home) -> None:
    made = home.json("app", "create", *NEW_APP, "--scopes", "profile")
    assert re.fullmatch(r"[0-9A-Za-z]{15}", made["client_id"])


def test_an_update_changes_only_the_given_fields(home: Home) -> None:
    made = home.app("web", "--pkce-required")
    del made["client_secret"]
    changed = home.json("app", "update", "web", "--name", "Other", "--no-pkce-required", "--disable")
    assert changed == {**made, "name": "Other", "pkceRequired": False, "status": "disabled"}
    changed = home.json(
        "app", "update", "web", "--enable", "--scopes", "apps:read", "--redirect-uri", "http://127.0.0.1/a", "--no-iss"
    )
    assert (changed["status"], changed["scopes"], changed["issInResponse"]) == ("active", ["apps:read"], False)
    assert changed["redirect_uris"] == ["http://127.0.0.1/a"]


def live_secrets(home: Home, *secrets: str) -> list[bool]:
    async def matches(store: Store) -> list[bool]:
        app = await store.apps.find("web")
        assert app is not None
        return [app.secret_matches(secret) for secret in secrets]

    return home.with_store(matches)


@pytest.mark.trap(35)
def test_secrets_rotate_with_one_kept_or_with_none(home: Home) -> None:
    first = home.app("web")["client_secret"]
    answer = home.json("app", "rotate-secret", "web")
    assert set(answer) == {"client_id", "client_secret"}
    second = answer["client_secret"]
    assert live_secrets(home, first, second) == [True, True]
    third = home.json("app", "rotate-secret", "web")["client_secret"]
    assert live_secrets(home, first, second, third) == [False, True, True]
    fourth = home.json("app", "rotate-secret", "web", "--drop-old")["client_secret"]
    assert live_secrets(home, second, third, fourth) == [False, False, True]


def test_an_app_that_becomes_public_loses_its_secrets_for_good(home: Home) -> None:
    first = home.app("web")["client_secret"]
    assert home.json("app", "update", "web", "--public")["public"] is True
    assert live_secrets(home, first) == [False]
    assert home.error("app", "rotate-secret", "web") == (1, "invalid_request", "A public app has no secret.")
    said = home.words("app", "update", "web", "--no-public")
    assert "no secret yet" in said.out
    assert live_secrets(home, first) == [False]


def test_text_output_shows_a_secret_once_and_lists_as_tables(home: Home) -> None:
    assert home.words("app", "list").out == "no apps\n"
    said = home.words("app", "create", "--client-id", "web", *NEW_APP, "--scopes", "profile data:read")
    assert re.search(r"^redirect_uris +https://web\.example/cb\nscopes +profile data:read\n", said.out, re.MULTILINE)
    secret = re.search(r"client_secret +(lk_cs_\S+)\n\nThe client_secret is shown this once", said.out)
    assert secret
    assert said.err == ""
    assert secret[1] not in home.words("app", "show", "web").out
    assert home.words("app", "list").out == (
        "client_id  name  status  scopes\nweb        Web   active  profile data:read\n"
    )
    said = home.words("user", "create", "--email", "ada@example.com", "--name", "Ada")
    assert re.search(r"\npassword +\S{24}\n\nThe password is shown this once", said.out)
    assert re.fullmatch(
        r"email +sub +status +name\nada@example\.com  [0-9a-f]{32}  active  Ada\n", home.words("user", "list").out
    )


def test_user_agents_cannot_send_terminal_escapes(home: Home) -> None:
    sub = home.user("ada@example.com")["sub"]
    entry = "1790000000000 signed_in  192.0.2.1 \x1b]0;owned\x07"
    with home.client() as client:
        client.set(keys.person(sub)["audit"], entry + "\n")
    said = home.words("user", "show", "ada@example.com").out
    assert "192.0.2.1  ?]0;owned?" in said
    assert not re.search(r"[\x00-\x09\x0b-\x1f]", said)


def test_the_life_of_a_person_by_commands(home: Home) -> None:
    made = home.user("Ada@Example.com")
    password = made.pop("password")
    assert made == {
        "sub": made["sub"],
        "email": "ada@example.com",
        "email_verified": True,
        "name": "Ada",
        "status": "active",
        "groups": [],
        "createdAt": made["createdAt"],
    }

    async def can_sign_in(store: Store) -> bool:
        with suppress(Suspended):
            return await store.people.verify("ada@example.com", password) is not None
        return False

    assert home.with_store(can_sign_in)
    home.app("web")
    home.json("token", "mint", "--user", "ada@example.com", "--client-id", "web", "--scopes", "profile")
    shown = home.json("user", "show", "ADA@example.com")
    assert shown["apps"] == ["web"]
    assert [entry["event"] for entry in shown["activity"]] == ["token_minted", "created_by_operator"]
    assert shown["activity"][0]["client_id"] == "web"
    assert home.json("user", "disable", "ada@example.com") == {**made, "status": "disabled"}
    assert not home.with_store(can_sign_in)
    assert home.json("user", "enable", "ada@example.com") == made
    why = {"reason": "Unpaid since May", "note": "Ticket 4711", "until": "2100-01-31T00:00:00.000Z"}
    said = ("--reason", why["reason"], "--note", why["note"], "--until", "2100-01-31")
    assert home.json("user", "suspend", "ada@example.com", *said) == {**made, "status": "disabled", **why}
    assert home.json("user", "show", "ada@example.com")["reason"] == why["reason"]
    assert home.json("user", "suspend", "ada@example.com", "--reason", "Spam")["until"] is None
    assert home.json("user", "resume", "ada@example.com") == made
    for until in ("2020-01-31", "soon"):
        assert "--until" in home.error("user", "suspend", "ada@example.com", "--reason", "Spam", "--until", until)[2]
    assert home.json("user", "delete", "ada@example.com", "--wait", "7", "--yes")["deletionAt"]
    assert home.json("user", "cancel-deletion", "ada@example.com") == made
    assert home.with_store(can_sign_in)
    assert home.json("user", "list") == {"users": [made]}
    deleted = home.json("user", "delete", "ada@example.com", "--yes")
    assert deleted == {"sub": made["sub"], "deleted": True}
    assert home.error("user", "show", "ada@example.com")[:2] == (1, "not_found")
    assert home.json("user", "list") == {"users": []}


def test_an_invitation_is_a_link_to_the_sign_up_page(home: Home) -> None:
    answer = home.json("user", "invite", "--email", "Bob@example.com", LATCHKEY_BASE_URL="https://id.example/")
    assert set(answer) == {"email", "link"}
    link, _, invite = answer["link"].partition("?invite=")
    assert (link, answer["email"]) == ("https://id.example/signup", "bob@example.com")
    assert home.with_store(lambda store: store.people.invited(invite)) == ("bob@example.com", "")


@pytest.mark.trap(24)
def test_the_store_never_holds_a_secret(home: Home) -> None:
    app, user = home.app("web"), home.user("ada@example.com")
    tokens = home.json("token", "mint", "--user", "ada@example.com", "--client-id", "web", "--scopes", "profile")
    invite = home.json("user", "invite", "--email", "b@example.com", "--base-url", "https://id.example")["link"]
    rotated = home.json("app", "rotate-secret", "web")["client_secret"]
    with home.client() as client:
        dump = everything(client)
    assert b"ada@example.com" in dump
    assert user["sub"].encode() in dump
    assert app["client_id"].encode() in dump
    ring = KeyFile(home.data_dir / "keys").ring
    secrets = [app["client_secret"], rotated, user["password"], invite.partition("=")[2]]
    secrets += [tokens["access_token"], tokens["refresh_token"]]
    for secret in secrets:
        # Nor without the prefix that says what it is.
        for part in {secret, re.sub(r"^lk_.._", "", secret)}:
            assert part.encode() not in dump
    assert all(key.material not in dump and key.render().encode() not in dump for key in ring.keys)


def test_the_operator_sets_a_forgotten_password(home: Home) -> None:
    forgotten = home.user("ada@example.com")["password"]
    new = home.json("user", "set-password", "ada@example.com")["password"]

    async def who_gets_in(store: Store) -> list[bool]:
        return [await store.people.verify("ada@example.com", word) is not None for word in (forgotten, new)]

    assert home.with_store(who_gets_in) == [False, True]
    assert home.json("user", "show", "ada@example.com")["activity"][0]["event"] == "password_set_by_operator"


def test_show_has_the_statistics_of_an_app(home: Home) -> None:
    home.app("web")

    async def count(store: Store) -> None:
        store.app_stats.called("web", limited=True)
        store.app_stats.connected("web")
        await store.app_stats.flush()

    home.with_store(count)
    shown = home.json("app", "show", "web")
    assert shown["people"] == 1
    (day,) = shown["days"]
    assert {**day, "day": ""} == {
        "day": "", "calls": 1, "limited": 1, "spent": 0, "connected": 1, "disconnected": 0
    }  # fmt: skip
    assert day["day"] in home.words("app", "show", "web").out


def test_the_operator_removes_lost_factors(home: Home) -> None:
    password = home.user("ada@example.com")["password"]

    async def add_app(store: Store) -> str:
        credentials = await store.people.credentials("ada@example.com")
        assert credentials is not None
        session = store.sessions.open((await store.sessions.start(credentials, Visitor())).cookie)
        assert session is not None
        session = store.sessions.open(await store.reauth.with_password(session, password, "", Visitor()))
        assert session is not None
        sealed = store.factors.new_secret(session.user)
        secret = store.factors.open_secret(session.user, sealed)
        code = code_at(secret, (await store.factors.of(session)).now // STEP)
        await store.factors.enable_totp(session, sealed, code, Visitor())
        return session.user

    async def who_gets_in(store: Store) -> bool:
        credentials = await store.people.credentials("ada@example.com")
        assert credentials is not None
        try:
            return bool(await store.sessions.start(credentials, Visitor()))
        except SecondStepNeeded:
            return False

    def shown() -> tuple[bool, int, int]:
        person = home.json("user", "show", "ada@example.com")
        return person["authenticatorApp"], person["passkeys"], person["recoveryCodesLeft"]

    assert shown() == (False, 0, 0)
    user = home.with_store(add_app)
    assert not home.with_store(who_gets_in)
    assert shown() == (True, 0, 10)
    assert re.search(r"^authenticatorApp +yes$", home.words("user", "show", user).out, re.MULTILINE)
    assert home.json("user", "reset-factors", user)["email"] == "ada@example.com"
    assert home.with_store(who_gets_in)
    assert shown() == (False, 0, 0)
    assert home.json("user", "show", user)["activity"][1]["event"] == "factors_reset_by_operator"
    assert home.error("user", "reset-factors", "nobody@example.com")[1] == "not_found"


def test_connections_and_deletions_by_the_operator_are_counted(home: Home) -> None:
    app, person = home.app("web"), home.user("ada@example.com")
    assert person
    for _ in range(2):
        home.json("token", "mint", "--user", "ada@example.com", "--client-id", "web", "--scopes", "profile")
    assert home.json("app", "show", app["client_id"])["people"] == 1
    home.json("user", "delete", "ada@example.com", "--yes")
    shown = home.json("app", "show", app["client_id"])
    assert (shown["people"], shown["days"][-1]["connected"], shown["days"][-1]["disconnected"]) == (0, 1, 1)
