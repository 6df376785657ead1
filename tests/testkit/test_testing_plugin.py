"""The pytest plugin, in test runs as an app's developer starts them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

pytest_plugins = "pytester"

ROOT = Path(__file__).resolve().parent.parent.parent
PLUGINS = ("-p", "latchkey.testing.plugin")
APP = """
import base64, hashlib
from urllib.parse import urlencode

import httpx
import pytest

VERIFIER = "v" * 43
http = httpx.Client()


def request_of(latchkey, app, **more):
    digest = hashlib.sha256(VERIFIER.encode()).digest()
    query = {
        "response_type": "code", "client_id": app.client_id, "redirect_uri": app.redirect_uri, "scope": app.scope,
        "state": "a-state", "code_challenge": base64.urlsafe_b64encode(digest).decode().rstrip("="),
        "code_challenge_method": "S256", **more,
    }
    return f"{latchkey.url}/oauth/authorize?{urlencode(query)}"


def ask(latchkey, app, **fields):
    fields = {"client_id": app.client_id, "client_secret": app.client_secret, **fields}
    return http.post(f"{latchkey.url}/api/oauth/token", data={k: v for k, v in fields.items() if v is not None})


def exchange(latchkey, app, code):
    return ask(latchkey, app, grant_type="authorization_code", code=code, redirect_uri=app.redirect_uri,
               code_verifier=VERIFIER)


def userinfo(latchkey, token):
    return http.get(f"{latchkey.url}/api/oauth/userinfo", headers=token.headers)
"""


@pytest.fixture
def suite(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch) -> pytest.Pytester:
    """A folder of tests, as one where Latchkey was installed: its package is on the path, its application is not."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    package = pytester.mkdir("installed")
    (package / "latchkey").symlink_to(ROOT / "latchkey")
    monkeypatch.setenv("PYTHONPATH", str(package))
    return pytester


def test_an_apps_suite(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_app=APP
        + """
import sys
from datetime import datetime, timezone


def test_a_code_is_exchanged_once(latchkey):
    app, ada = latchkey.app(scopes=["profile", "apps:read"]), latchkey.person(email="ada@example.com")
    back = latchkey.consents(request_of(latchkey, app))
    assert (back.state, back.iss, back.error) == ("a-state", latchkey.url, None)
    tokens = exchange(latchkey, app, back.code).json()
    assert (tokens["scope"], tokens["expires_in"]) == ("profile apps:read", 3600)
    assert exchange(latchkey, app, back.code).json()["error"] == "invalid_grant"
    minted = latchkey.token(ada, app, "profile")
    assert (minted.scope, minted.token_type, minted.expires_in) == ("profile", "Bearer", 3600)
    assert userinfo(latchkey, minted).json()["sub"] == ada.sub


def test_the_next_test_finds_nothing_of_it(latchkey):
    with pytest.raises(Exception, match="not_found: No such person"):
        latchkey.deletes_account(type("Gone", (), {"email": "ada@example.com"}))
    assert latchkey.person(email="ada@example.com").email == "ada@example.com"
    # Nobody is played at the beginning: the browser is sent to sign in.
    answer = http.get(request_of(latchkey, latchkey.app()))
    assert answer.headers["Location"].startswith("/signin?")


def test_a_code_lives_a_minute_and_an_access_token_an_hour(latchkey):
    app = latchkey.app()
    back = latchkey.consents(request_of(latchkey, app))
    latchkey.travel(seconds=61)
    assert exchange(latchkey, app, back.code).status_code == 400
    token = latchkey.token(app=app)
    latchkey.travel(minutes=59)
    assert userinfo(latchkey, token).status_code == 200
    now = latchkey.travel(minutes=1)
    answer = userinfo(latchkey, token)
    assert answer.status_code == 401
    told = datetime.strptime(answer.headers["Date"], "%a, %d %b %Y %H:%M:%S GMT").replace(tzinfo=timezone.utc)
    assert abs((told - now).total_seconds()) < 5


def test_time_is_the_real_one_again(latchkey):
    told = datetime.strptime(userinfo(latchkey, latchkey.token()).headers["Date"], "%a, %d %b %Y %H:%M:%S GMT")
    assert abs((told.replace(tzinfo=timezone.utc) - datetime.now(timezone.utc)).total_seconds()) < 5


def test_a_used_refresh_token_ends_all(latchkey):
    app = latchkey.app()
    first = latchkey.token(app=app)
    second = ask(latchkey, app, grant_type="refresh_token", refresh_token=first.refresh_token).json()
    again = ask(latchkey, app, grant_type="refresh_token", refresh_token=first.refresh_token)
    assert again.json()["error"] == "invalid_grant"
    assert userinfo(latchkey, first).status_code == 401
    left = ask(latchkey, app, grant_type="refresh_token", refresh_token=second["refresh_token"])
    assert left.json()["error"] == "invalid_grant"


def test_a_public_app_has_no_secret_and_uses_pkce(latchkey):
    app = latchkey.app(public=True, redirect_uris=["com.example.notes:/cb"])
    assert app.client_secret is None
    assert latchkey.consents(request_of(latchkey, app, code_challenge="")).error == "invalid_request"
    assert exchange(latchkey, app, latchkey.consents(request_of(latchkey, app)).code).status_code == 200


@pytest.mark.parametrize("group", ["oauth", "data-read"])
def test_a_limit_is_met_and_passes(latchkey, group):
    app, ada = latchkey.app(scopes="profile data:read data:write"), latchkey.person()
    token = latchkey.token(ada, app)
    path = "/api/oauth/userinfo" if group == "oauth" else "/api/v1/data/_meta/usage"
    call = lambda: http.get(latchkey.url + path, headers=token.headers)
    assert int(call().headers["X-RateLimit-Remaining"]) > 90
    wait = latchkey.exhausts(group, ada, app)
    refused = call()
    assert (refused.status_code, refused.headers["Retry-After"]) == (429, str(wait))
    assert refused.json()["retryAfter"] == wait
    latchkey.travel(seconds=wait)
    assert call().status_code == 200


def test_a_refusal_comes_after_a_consent_too(latchkey):
    app, ada, bob = latchkey.app(), latchkey.person("Ada"), latchkey.person("Bob")
    assert latchkey.consents(request_of(latchkey, app), person=ada).code
    back = latchkey.denies(request_of(latchkey, app), person=ada)
    assert (back.error, back.state) == ("access_denied", "a-state")
    # What one request was answered changes nothing for the next.
    assert http.get(request_of(latchkey, app)).headers["Location"].startswith("/signin?")
    latchkey.denies(person=bob)
    assert "error=access_denied" in http.get(request_of(latchkey, app)).headers["Location"]
    latchkey.shows_pages()
    assert http.get(request_of(latchkey, app)).headers["Location"].startswith("/signin?")


def test_a_person_may_allow_a_part(latchkey):
    app = latchkey.app(scopes="profile credits:spend data:read")
    latchkey.consents(request_of(latchkey, app))
    back = latchkey.consents(request_of(latchkey, app), scopes="profile", spend_limit=7)
    assert exchange(latchkey, app, back.code).json()["scope"] == "profile"


def test_an_app_may_spend_what_the_person_lets_it(latchkey):
    app, ada = latchkey.app(scopes="credits:read credits:spend"), latchkey.person(credits=5_000_000)
    back = latchkey.consents(request_of(latchkey, app), spend_limit=1_000_000)
    tokens = exchange(latchkey, app, back.code).json()
    headers = {"Authorization": "Bearer " + tokens["access_token"]}
    question = {"model": "latchkey-echo", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}
    reply = http.post(f"{latchkey.url}/api/v1/ai/messages", headers=headers, json=question).json()
    charged = reply["credits"]["charged"]
    assert charged > 0
    assert latchkey.balance(ada).spendable == latchkey.balance(ada).paid == 5_000_000 - charged
    told = http.get(f"{latchkey.url}/api/v1/credits/balance", headers=headers).json()
    assert (told["appLimit"]["limit"], told["appLimit"]["used"]) == (1_000_000, charged)
    assert latchkey.credit(ada, -1_000_000).paid == 4_000_000 - charged


def test_an_app_sees_groups_and_calls_people_by_a_name_of_its_own(latchkey):
    app = latchkey.app(scopes="openid groups", subject_type="pairwise")
    ada = latchkey.person(groups=["staff", "admins"])
    token = latchkey.token(ada, app)
    seen = userinfo(latchkey, token).json()
    assert (seen["groups"], ada.groups, seen["sub"] != ada.sub) == (["admins", "staff"], ("admins", "staff"), True)
    assert latchkey.groups(ada, ["staff"]).groups == latchkey.groups(None, ["staff"]).groups == ("staff",)
    assert userinfo(latchkey, token).json()["groups"] == ["staff"]


def test_disconnected_is_disconnected(latchkey):
    app, ada = latchkey.app(), latchkey.person()
    token = latchkey.token(ada, app)
    latchkey.pauses(ada, app)
    assert userinfo(latchkey, token).json()["error"] == "app_paused"
    latchkey.pauses(ada, app, paused=False)
    assert userinfo(latchkey, token).status_code == 200
    until = latchkey.revoke(ada, app)
    assert abs((until - datetime.now(timezone.utc)).days - 30) <= 1
    assert userinfo(latchkey, token).status_code == 401
    token = latchkey.token(ada, app)
    latchkey.deletes_account(ada)
    assert userinfo(latchkey, token).status_code == 401


def test_the_store_is_away_for_a_while(latchkey):
    token = latchkey.token()
    with latchkey.unavailable():
        answer = userinfo(latchkey, token)
        assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
        assert int(answer.headers["Retry-After"]) >= 1
    assert userinfo(latchkey, token).status_code == 200
    latchkey.unavailable().__enter__()  # a test that leaves it so


def test_and_is_back_for_the_next_one(latchkey):
    assert userinfo(latchkey, latchkey.token()).status_code == 200


def test_what_is_wrong_is_told(latchkey):
    from latchkey.testing import LatchkeyError

    with pytest.raises(LatchkeyError, match="400 invalid_request") as told:
        latchkey.consents(request_of(latchkey, latchkey.app(), redirect_uri="https://evil.example/"))
    assert (told.value.status, told.value.error) == (400, "invalid_request")
    with pytest.raises(LatchkeyError, match="no scope"):
        latchkey.app(scopes="everything")
    with pytest.raises(LatchkeyError, match="account with this e-mail address"):
        latchkey.person(email=latchkey.person().email)
    with pytest.raises(LatchkeyError, match="forward"):
        latchkey.travel(days=-1)
    with pytest.raises(LatchkeyError, match="group is one of"):
        latchkey.exhausts("nothing")
    with pytest.raises(ValueError, match="no address at"):
        latchkey.consents("https://id.example.org/oauth/authorize?client_id=x")


async def calls_from_a_loop(latchkey):
    async with httpx.AsyncClient() as client:
        latchkey.consents()
        answer = await client.get(request_of(latchkey, latchkey.app()))
        return answer.headers["Location"]


def test_an_async_test(latchkey):
    import asyncio

    assert "code=lk_ac_" in asyncio.run(calls_from_a_loop(latchkey))


def test_nothing_of_the_service_is_loaded_here():
    assert {name.partition(".")[0] for name in sys.modules} & {"tornado", "fakeredis", "redis", "handlers"} == set()
"""
    )
    suite.runpytest_subprocess(*PLUGINS, "-W", "error").assert_outcomes(passed=18)


def test_an_app_hears_of_what_happened(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        test_webhooks=APP
        + '''
import json
import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from standardwebhooks.webhooks import Webhook


@pytest.fixture
def told():
    """The address of a receiver, and what it was posted."""
    events = queue.Queue()

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self):
            events.put((self.rfile.read(int(self.headers["content-length"])), dict(self.headers.items())))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *args):
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Receiver) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/hook", events
        server.shutdown()


@pytest.mark.parametrize("again", [1, 2])
def test_it_is_told_and_when_it_is_due(latchkey, told, again):
    url, events = told
    app = latchkey.app(scopes="profile data:read data:write", hosted_storage=True, webhook_url=url)
    ada = latchkey.person()

    def heard():
        body, headers = events.get(timeout=20)
        event = Webhook(app.webhook_secret).verify(body, headers)
        assert event["data"]["sub"] == ada.sub
        return event["type"], event["data"].get("reason")

    token = latchkey.token(ada, app)
    http.put(f"{latchkey.url}/api/v1/data/notes/first", json=1, headers=token.headers).raise_for_status()
    latchkey.revoke(ada, app)
    assert heard() == ("grant.revoked", "disconnected_by_person")
    latchkey.travel(days=29)
    assert events.empty()
    latchkey.travel(days=2)
    assert heard() == ("data.deleted", "grace_over")
    latchkey.token(ada, app)
    latchkey.deletes_account(ada)
    assert heard() == ("user.deleted", None)
'''
    )
    suite.runpytest_subprocess(*PLUGINS).assert_outcomes(passed=2)


def test_a_failed_test_shows_what_the_service_logged_in_it(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        def test_first(latchkey):
            latchkey.app()

        def test_second(latchkey):
            latchkey.person()
            assert False

        def test_third(latchkey):
            pass
        """
    )
    result = suite.runpytest_subprocess(*PLUGINS)
    result.assert_outcomes(passed=2, failed=1)
    logged = result.stdout.str().partition("Latchkey's log")[2]
    assert "POST /testing/people 200" in logged
    assert "/testing/apps" not in logged


def test_a_failure_after_the_end_of_the_service_is_reported_as_any_other(suite: pytest.Pytester) -> None:
    suite.makepyfile(
        """
        import pytest

        @pytest.fixture(scope="session")
        def broken():
            yield
            raise RuntimeError("at the very end")

        def test_last(broken, latchkey):
            latchkey.person()
        """
    )
    result = suite.runpytest_subprocess(*PLUGINS)
    result.assert_outcomes(passed=1, errors=1)
    shown = result.stdout.str()
    assert "at the very end" in shown
    assert "POST /testing/people 200" in shown.partition("Latchkey's log")[2]


def test_files_that_options_name_are_looked_for_where_the_tests_are(suite: pytest.Pytester) -> None:
    suite.makeconftest(
        """
        import pytest

        @pytest.fixture(scope="session")
        def latchkey_options():
            return ["--ai-config", "models/mine.toml"]
        """
    )
    block = re.findall(r"```toml\n(.*?)```", (ROOT / "docs" / "models.md").read_text("utf-8"), re.DOTALL)[0]
    (suite.mkdir("models") / "mine.toml").write_text(block.replace("key_env", "# key_env"))
    suite.makepyfile(
        """
        import httpx
        import pytest

        @pytest.fixture
        def elsewhere(monkeypatch, tmp_path):
            monkeypatch.chdir(tmp_path)

        def test_the_model_is_there(elsewhere, latchkey):
            token = latchkey.token(scopes="credits:spend")
            answer = httpx.get(latchkey.url + "/api/v1/ai/models", headers=token.headers)
            assert "claude-sonnet" in answer.text
        """
    )
    suite.runpytest_subprocess(*PLUGINS).assert_outcomes(passed=1)
