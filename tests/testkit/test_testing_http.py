"""What tests of apps in any language do with a server over HTTP."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import pytest

from testkit.routes import TESTING_ROUTES
from tests.support.http.driver import CALLBACK, VERIFIER, Browser, challenge
from tests.support.processes.processes import ROOT, Server
from tests.testkit.conftest import ADA, MEMORY

DOCUMENT = (ROOT / "docs" / "testing.md").read_text("utf-8")


def post(http: httpx.Client, call: str, **fields: Any) -> Any:
    answer = http.post(f"/testing/{call}", json=fields)
    assert answer.status_code == 200, answer.text
    return answer.json()


def app_in(http: httpx.Client, **fields: Any) -> Any:
    return post(http, "apps", **{"redirect_uris": [CALLBACK], "scopes": "profile data:read data:write", **fields})


def request_of(app_id: str, /, **changes: str) -> str:
    query = {
        "client_id": app_id,
        "redirect_uri": CALLBACK,
        "response_type": "code",
        "scope": "profile data:read",
        "state": "a-state",
        "code_challenge": challenge(),
        "code_challenge_method": "S256",
        **changes,
    }
    return "/oauth/authorize?" + urlencode({name: value for name, value in query.items() if value})


def sent_on(answer: httpx.Response) -> dict[str, str]:
    """The parameters that go back to the app."""
    assert answer.status_code == 303, answer.text
    assert answer.headers["Location"].startswith(CALLBACK)
    return dict(httpx.URL(answer.headers["Location"]).params)


def exchange(http: httpx.Client, app: Any, code: str) -> httpx.Response:
    fields = {"grant_type": "authorization_code", "code": code, "redirect_uri": CALLBACK, "code_verifier": VERIFIER}
    fields |= {"client_id": app["client_id"], "client_secret": app["client_secret"]}
    return http.post("/api/oauth/token", data=fields)


def test_a_request_that_the_person_cannot_meet_gets_its_error(http: httpx.Client) -> None:
    app = app_in(http, scopes="openid")["client_id"]
    for more, error in (
        ({"acr_values": "phr"}, "unmet_authentication_requirements"),
        ({"claims": '{"id_token":{"sub":{"value":"somebody"}}}'}, "login_required"),
        ({"id_token_hint": "x.y.z"}, "invalid_request"),
    ):
        assert sent_on(http.get(request_of(app, scope="openid", **more)))["error"] == error
    assert "code" in sent_on(http.get(request_of(app, scope="openid", acr_values="phr 1")))


def test_auto_consent_signs_in_and_allows(http: httpx.Client, server: Server) -> None:
    app = app_in(http)
    back = sent_on(http.get(request_of(app["client_id"])))
    assert (back["state"], back["iss"]) == ("a-state", server.url)
    tokens = exchange(http, app, back["code"]).json()
    assert tokens["scope"] == "profile data:read"
    person = http.get("/api/oauth/userinfo", headers={"Authorization": f"Bearer {tokens['access_token']}"}).json()
    assert (person["email"], person["email_verified"]) == (ADA, True)


WRONG = {
    "an unknown app": {"client_id": "nobody"},
    "no app": {"client_id": ""},
    "a redirect URI that is not registered": {"redirect_uri": "https://evil.example/callback"},
    "no response type": {"response_type": ""},
    "another response type": {"response_type": "token"},
    "no state": {"state": ""},
    "no scope": {"scope": ""},
    "an unknown scope": {"scope": "everything"},
    "a scope that is not registered": {"scope": "apps:read"},
    "no challenge": {"code_challenge": "", "code_challenge_method": ""},
    "a plain challenge": {"code_challenge_method": "plain"},
    "a short challenge": {"code_challenge": "short"},
    "an unknown prompt": {"prompt": "now"},
    "prompts that exclude each other": {"prompt": "none login"},
}


@pytest.mark.parametrize("changes", [pytest.param(changes, id=name) for name, changes in WRONG.items()])
def test_invalid_requests_get_the_products_errors(http: httpx.Client, changes: dict[str, str]) -> None:
    app = app_in(http, pkceRequired=True)
    played = http.get(request_of(app["client_id"], **changes))
    product = http.get(request_of(app["client_id"], **changes), headers={"Latchkey-Consents": '{"answer": "ask"}'})
    assert (played.status_code, played.text) == (product.status_code, product.text)
    assert played.headers.get("Location") == product.headers.get("Location")
    assert played.status_code == 400 or sent_on(played)["error"]


def test_prompts_work_as_in_the_product(http: httpx.Client) -> None:
    app = app_in(http)
    silent = request_of(app["client_id"], prompt="none")
    assert sent_on(http.get(silent))["error"] == "consent_required"
    assert sent_on(http.get(request_of(app["client_id"], prompt="login consent")))["code"]
    assert sent_on(http.get(silent))["code"]
    wider = request_of(app["client_id"], prompt="none", scope="profile data:write")
    assert sent_on(http.get(wider))["error"] == "consent_required"
    answer = http.get(silent, headers={"Latchkey-Consents": '{"answer": "ask"}'})
    assert sent_on(answer)["error"] == "login_required"


def test_several_people_can_be_played_and_can_deny(http: httpx.Client) -> None:
    app = app_in(http)

    def one_request(**answer: Any) -> dict[str, str]:
        return sent_on(http.get(request_of(app["client_id"]), headers={"Latchkey-Consents": json.dumps(answer)}))

    def who(back: dict[str, str]) -> str:
        token = exchange(http, app, back["code"]).json()["access_token"]
        return str(http.get("/api/oauth/userinfo", headers={"Authorization": f"Bearer {token}"}).json()["email"])

    assert who(one_request(email="bob@example.com")) == "bob@example.com"
    assert one_request(email="bob@example.com", answer="deny")["error"] == "access_denied"
    assert who(sent_on(http.get(request_of(app["client_id"])))) == ADA
    assert post(http, "consents", email="eve@example.com") == {"email": "eve@example.com", "answer": "allow"}
    assert who(sent_on(http.get(request_of(app["client_id"])))) == "eve@example.com"
    assert post(http, "consents", answer="deny") == {"email": "eve@example.com", "answer": "deny"}
    assert sent_on(http.get(request_of(app["client_id"])))["error"] == "access_denied"
    bad = http.get(request_of(app["client_id"]), headers={"Latchkey-Consents": "[]"})
    assert sent_on(bad)["error"] == "invalid_request"
    post(http, "reset")
    app = app_in(http)
    assert who(sent_on(http.get(request_of(app["client_id"])))) == ADA


def test_concurrent_requests_create_a_new_person_once(server: Server, http: httpx.Client) -> None:
    app = app_in(http)

    async def sixteen() -> list[httpx.Response]:
        async with httpx.AsyncClient(base_url=server.url) as client:
            return await asyncio.gather(*(client.get(request_of(app["client_id"])) for _ in range(16)))

    assert all(sent_on(answer)["code"] for answer in asyncio.run(sixteen()))


def test_a_month_passes(http: httpx.Client) -> None:
    app = app_in(http)
    first = post(http, "tokens", email=ADA, client_id=app["client_id"])
    assert first["scope"] == "profile data:read data:write"
    bearer = {"Authorization": f"Bearer {first['access_token']}"}
    assert http.put("/api/v1/data/notes/n1", headers=bearer, json={"text": "Hello"}).status_code == 201
    until = post(http, "disconnect", email=ADA, client_id=app["client_id"])["dataUntil"]
    now = post(http, "travel", weeks=4, days=1)["now"]
    assert now[:19] < until[:19]

    def read() -> int:
        token = post(http, "tokens", email=ADA, client_id=app["client_id"])["access_token"]
        return http.get("/api/v1/data/notes/n1", headers={"Authorization": f"Bearer {token}"}).status_code

    # Re-authorization in time keeps the notes, and the days count from the start.
    assert read() == 200
    post(http, "disconnect", email=ADA, client_id=app["client_id"])
    now = post(http, "travel", days=30, minutes=1)["now"]
    assert read() == 404
    # A sign-in of two weeks ago is over for the one who is played too, which an app does not notice.
    back = sent_on(http.get(request_of(app["client_id"])))
    created = exchange(http, app, back["code"])
    assert created.status_code == 200
    usage = http.put(
        "/api/v1/data/notes/n2",
        headers={
            "Authorization": f"Bearer {post(http, 'tokens', email=ADA, client_id=app['client_id'])['access_token']}"
        },
        json=1,
    )
    assert usage.json()["createdAt"][:16] == now[:16]


def test_a_browser_is_signed_out_after_an_idle_fortnight(server: Server, http: httpx.Client) -> None:
    person = post(http, "people", name="Bob")

    async def signs_in() -> Browser:
        browser = Browser(server.url)
        await browser.sign_in(person["email"], person["password"])
        assert b"Bob" in (await browser.get("/account")).body
        return browser

    async def opens(browser: Browser, path: str) -> Any:
        return await browser.get(path)

    browser = asyncio.run(signs_in())
    post(http, "travel", days=13)
    page = asyncio.run(opens(browser, "/account/security"))
    assert b"13 days ago" in page.body
    post(http, "travel", days=15)
    assert asyncio.run(opens(browser, "/account")).headers["Location"].startswith("/signin")


def test_invalid_travel_requests_are_refused(http: httpx.Client) -> None:
    for wrong in ({}, {"days": 0}, {"days": -1}, {"days": "1"}, {"days": True}, {"years": 1}, {"days": 4000}):
        answer = http.post("/testing/travel", json=wrong)
        assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), wrong
    assert http.post("/testing/travel", content="{", headers={"Content-Type": "application/json"}).status_code == 400


def test_travel_is_limited_to_valid_dates(http: httpx.Client) -> None:
    app, year = app_in(http), 0
    while year < 8990:
        year = int(post(http, "travel", days=3660)["now"][:4])
    refused = http.post("/testing/travel", json={"days": 3660})
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request")
    assert "8999" in refused.json()["error_description"]
    # Until then everything works, and there is a way back.
    bearer = {"Authorization": f"Bearer {post(http, 'tokens', email=ADA, client_id=app['client_id'])['access_token']}"}
    answer = http.get("/api/oauth/userinfo", headers=bearer)
    assert (answer.status_code, answer.headers["Date"][12:14]) == (200, "89")
    post(http, "reset")
    assert post(http, "travel", days=3660)["now"].startswith("20")


@pytest.mark.parametrize(
    "call", ["tokens", "disconnect", "credits", "limits", "consents", "people", "people/groups", "people/delete"]
)
def test_an_invalid_address_is_refused(http: httpx.Client, call: str) -> None:
    client_id = app_in(http)["client_id"]
    fields = {"email": "nobody", "client_id": client_id, "amount": 1, "group": "oauth"}
    answer = http.post(f"/testing/{call}", json=fields)
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request"), answer.text
    assert http.get("/testing/credits", params={"email": "nobody"}).status_code == 400


def test_credits_can_be_granted_and_read(http: httpx.Client) -> None:
    person = post(http, "people", email="bob@example.com", credits=5)
    assert post(http, "credits", email="bob@example.com", amount=2)["paid"] == 7
    shown = http.get("/testing/credits?email=bob@example.com").json()
    figures = {"paid": 7, "held": 0, "spendable": 7, "currency": "USD", "scale": 6}
    assert shown == {"sub": person["sub"], **figures}
    short = http.post("/testing/credits", json={"email": "bob@example.com", "amount": -8})
    assert (short.status_code, short.json()["error"]) == (402, "insufficient_credits")


def test_a_played_person_has_the_groups_that_a_test_gives(http: httpx.Client) -> None:
    person = post(http, "people", email="bob@example.com", groups=["staff", "admins"])
    assert person["groups"] == ["admins", "staff"]
    app = app_in(http, scopes="openid groups", subjectType="pairwise")
    tokens = post(http, "tokens", email=person["email"], client_id=app["client_id"])
    bearer = {"Authorization": f"Bearer {tokens['access_token']}"}
    seen = http.get("/api/oauth/userinfo", headers=bearer).json()
    assert seen["groups"] == ["admins", "staff"]
    assert seen["sub"].startswith("pw_")
    changed = post(http, "people/groups", email=person["email"], groups=["staff", "editors"])
    assert changed == {"sub": person["sub"], "groups": ["editors", "staff"]}
    assert http.get("/api/oauth/userinfo", headers=bearer).json()["groups"] == ["editors", "staff"]
    refused = http.post("/testing/people/groups", json={"email": person["email"], "groups": ["x" * 101]})
    assert (refused.status_code, refused.json()["error"]) == (400, "invalid_request")


def test_a_reset_restores_the_seed(tmp_path: Path) -> None:
    seed = tmp_path / "seed.json"
    app = {"client_id": "web", "name": "Web", "redirect_uris": [CALLBACK], "scopes": "profile", "public": True}
    seed.write_text(json.dumps({"apps": [app]}))
    with Server(*MEMORY, f"--seed={seed}") as server, httpx.Client(base_url=server.ready().url) as http:
        answer = {"Latchkey-Consents": json.dumps({"email": ADA})}
        for _ in range(2):
            assert sent_on(http.get(request_of("web", scope="profile"), headers=answer))["code"]
            # Nobody is played unless one says so.
            assert http.get(request_of("web", scope="profile")).headers["Location"].startswith("/signin?")
            post(http, "reset")


def block(language: str) -> str:
    (found,) = re.findall(rf"^```{language}\n(.*?)^```$", DOCUMENT, re.MULTILINE | re.DOTALL)
    return str(found)


def test_the_documented_commands_work_as_pasted(http: httpx.Client, server: Server) -> None:
    if shutil.which("curl") is None:
        pytest.skip("no curl on this machine")
    script = block("sh").replace("http://localhost:8080", server.url)
    assert script != block("sh")
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", script], text=True, capture_output=True, timeout=30, check=True
    )
    app, tokens, travelled, consents, denied, reset = done.stdout.splitlines()
    assert json.loads(app)["client_secret"] == "a-secret-of-at-least-32-characters"
    assert json.loads(tokens)["scope"] == "profile"
    assert list(json.loads(travelled)) == ["now"]
    assert json.loads(consents) == {"email": ADA, "answer": "deny"}
    assert dict(httpx.URL(denied).params)["error"] == "access_denied"
    assert json.loads(reset) == {}


def test_the_javascript_example_works_unchanged(tmp_path: Path) -> None:
    node = shutil.which("node")
    if node is None:
        pytest.skip("no Node on this machine")
    command = tmp_path / "latchkey"
    command.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m latchkey "$@"\n')
    command.chmod(0o755)
    file = tmp_path / "notes.test.mjs"
    file.write_text(block("js").replace("/tmp/latchkey", str(tmp_path / "data")))
    environment = {name: value for name, value in os.environ.items() if not name.startswith("LATCHKEY_")}
    environment["PATH"] = f"{tmp_path}:{environment['PATH']}"
    ran = [node, "--test", "--test-reporter=tap", str(file)]
    done = subprocess.run(ran, cwd=ROOT, env=environment, text=True, capture_output=True, timeout=60, check=False)
    assert "# pass 3" in done.stdout, done.stdout + done.stderr
    assert "# fail 0" in done.stdout, done.stdout


def test_the_table_of_calls_matches_the_routes() -> None:
    documented = set(re.findall(r"^\| `(?:POST|GET) (/testing/[a-z/]+)", DOCUMENT, re.MULTILINE))
    assert documented == {path for path, _ in TESTING_ROUTES}


def test_an_unknown_call_is_not_found(http: httpx.Client) -> None:
    assert http.post("/testing/nothing", json={}).status_code == 404
