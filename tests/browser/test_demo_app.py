"""The demo app as its own process, against a small authorization server on a real socket."""

from __future__ import annotations

import base64
import html
import http.client
import json
import re
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, quote_plus, urlencode, urlsplit

import pytest

from tests.support.browser.demo_fixtures import SECRET, browser, demo, stub, with_data
from tests.support.browser.demo_site import ADA, PROGRAM, Browser, Demo, Stub, running

__all__ = ["browser", "demo", "stub"]  # fixtures


def test_a_signed_out_visitor_is_offered_sign_in(browser: Browser) -> None:
    status, headers, page = browser.ask("/")
    assert status == 200
    assert "Sign in with Latchkey" in page
    assert headers["Set-Cookie"] is None


def test_a_signed_in_person_is_greeted_by_name(browser: Browser, stub: Stub) -> None:
    page = browser.connect(stub)
    for words in ("Hello, Ada Lovelace", "ada@example.org", "user-1", "profile data:read", "expires at"):
        assert words in page
    form, authorization = stub.named("token")[0]
    assert form["redirect_uri"] == browser.redirect_uri
    assert "client_secret" not in form
    # RFC 6749 2.3.1: Basic credentials are form-encoded.
    pair = f"{quote_plus('app:1')}:{quote_plus(SECRET)}"
    assert authorization == "Basic " + base64.b64encode(pair.encode()).decode()


def test_the_apps_own_cookie_changes_at_sign_in(browser: Browser, stub: Stub) -> None:
    cookie = browser.ask("/login")[1]["Set-Cookie"]
    assert cookie.startswith("demo_app_session=")
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    before = browser.cookie
    browser.connect(stub)
    assert browser.cookie != before


@pytest.mark.spec("5.3")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param({"state": "invented"}, id="a wrong state"),
        pytest.param({"state": ""}, id="no state"),
        pytest.param({"iss": "https://evil.example"}, id="another issuer"),
        pytest.param({"iss": ""}, id="no issuer though the server promises one"),
    ],
)
def test_an_invalid_answer_is_refused_before_its_code_is_used(
    browser: Browser, stub: Stub, change: dict[str, str]
) -> None:
    status, _, page = browser.ask("/callback?" + urlencode({**browser.begin(stub), **change}))
    assert status == 400
    assert "does not match" in page
    assert stub.named("token") == []


@pytest.mark.spec("5.3")
def test_an_answer_is_valid_once_in_the_browser_that_asked(browser: Browser, stub: Stub, demo: Demo) -> None:
    address = "/callback?" + urlencode(browser.begin(stub))
    assert Browser(demo).ask(address)[0] == 400
    assert browser.ask(address)[0] == 303
    assert browser.ask(address)[0] == 400
    assert len(stub.named("token")) == 1


def test_an_error_in_the_answer_is_shown_and_escaped(browser: Browser, stub: Stub) -> None:
    answer = browser.begin(stub)
    state = answer["state"]
    hostile = {"error": "access_denied", "error_description": "<script>alert(1)</script>"}
    status, headers, page = browser.ask("/callback?" + urlencode({**hostile, "state": state, "iss": stub.issuer}))
    assert status == 400
    assert "access_denied" in page
    assert "<script" not in page
    assert html.escape("<script>") in page
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert browser.ask("/callback?" + urlencode(answer))[0] == 400, "its state was used up"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param((400, {"error": "invalid_grant", "error_description": "too late"}), "too late", id="the reason"),
        pytest.param((429, {"error": "rate_limited", "retryAfter": 7}), "again in 7 seconds", id="when to try again"),
        pytest.param((200, {"token_type": "mac"}), "does not understand", id="that the tokens are of another type"),
    ],
)
def test_a_failed_exchange_shows_a_message(
    browser: Browser, stub: Stub, answer: tuple[int, dict[str, Any]], words: str
) -> None:
    stub.answers["token"] = answer
    status, _, page = browser.ask("/callback?" + urlencode(browser.begin(stub)))
    assert status == 502
    assert words in page
    assert "Sign in with Latchkey" in browser.ask("/")[2]


def test_a_hostile_name_is_escaped(browser: Browser, stub: Stub) -> None:
    stub.answers["userinfo"] = (200, {**ADA, "name": "<img src=x onerror=alert(1)>"})
    page = browser.connect(stub)
    assert "<img" not in page
    assert "&lt;img src=x onerror=alert(1)&gt;" in page


def test_a_missing_profile_scope_is_no_error(browser: Browser, stub: Stub) -> None:
    stub.answers["userinfo"] = (403, {"error": "insufficient_scope"})
    assert "not shared" in browser.connect(stub)


def test_concurrent_refreshes_send_a_token_once(browser: Browser, stub: Stub) -> None:
    page = browser.connect(stub)
    with ThreadPoolExecutor(2) as pool:
        assert [status for status, _ in pool.map(lambda _: browser.press(page, "/refresh"), range(2))] == [303, 303]
    sent = [form["refresh_token"] for form, _ in stub.named("token") if form["grant_type"] == "refresh_token"]
    assert len(sent) == len(set(sent)) == 2
    assert "2 times" in browser.ask("/")[2]


def test_a_refused_refresh_ends_the_connection(browser: Browser, stub: Stub) -> None:
    page = browser.connect(stub)
    stub.answers["token"] = (400, {"error": "invalid_grant"})
    status, answer = browser.press(page, "/refresh")
    assert status == 502
    assert "invalid_grant" in answer
    assert "Sign in with Latchkey" in browser.ask("/")[2]


def test_access_ended_by_the_person_is_noticed(browser: Browser, stub: Stub) -> None:
    browser.connect(stub)
    stub.answers["userinfo"] = (401, {"error": "invalid_token"})
    status, _, page = browser.ask("/")
    assert status == 200
    assert "no longer connected" in page
    assert "Sign in with Latchkey" in page
    assert "connected" not in browser.ask("/")[2]


def test_disconnecting_revokes_both_tokens(browser: Browser, stub: Stub) -> None:
    page = browser.connect(stub)
    stub.answers["revocation"] = (503, {"error": "temporarily_unavailable"})
    assert browser.press(page, "/disconnect")[0] == 502
    assert "Hello, Ada Lovelace" in browser.ask("/")[2], "a revocation that was not confirmed must not look done"
    del stub.answers["revocation"]
    stub.calls.clear()
    assert browser.press(page, "/disconnect")[0] == 303
    revoked = {form["token"] for form, _ in stub.named("revocation")}
    assert revoked == {stub.refresh_token, f"at-secret-{stub.issued}"}
    assert "Sign in with Latchkey" in browser.ask("/")[2]


def test_credits_are_shown_only_with_their_scope(browser: Browser, stub: Stub) -> None:
    page = browser.connect(stub)
    assert "Ask a model" not in page
    assert "Credits" not in page
    tokens = {"access_token": f"at-secret-{stub.issued}", "refresh_token": stub.refresh_token, "token_type": "Bearer"}
    stub.answers["token"] = (200, {**tokens, "expires_in": 3600, "scope": "profile credits:read credits:spend"})
    page = browser.connect(stub)
    assert "Ask a model" in page
    assert "Hello, Ada Lovelace" in page
    assert "answered 404" in page, "a balance that cannot be had takes nothing else away"
    form = re.search(r'action="/ask".*?value="([^"]+)"', page, re.DOTALL)
    assert form
    assert browser.ask("/ask", {"form_token": form[1], "question": "  "})[0] == 303
    assert 'class="answer"' not in browser.ask("/")[2], "nothing was asked"
    assert browser.ask("/ask", {"form_token": form[1], "question": "Who?"})[0] == 303
    assert browser.ask("/")[2].count("answered 404") == 2


def test_the_minute_is_for_an_app_that_may_ask_for_it(stub: Stub, tmp_path: Path, browser: Browser) -> None:
    assert "Latchkey in a minute" not in browser.connect(stub)
    stub.answers.clear()
    with running(stub.issuer, tmp_path / "log", "--scopes", "profile credits:spend data:write") as demo:
        visitor = Browser(demo)
        assert "Connect with a limit" in visitor.ask("/")[2]
        asked = parse_qs(urlsplit(visitor.ask("/login?limit=yes")[1]["Location"]).query)
        assert json.loads(asked["authorization_details"][0]) == [{"type": "credits", "limit": 50000, "period": "total"}]
        page = visitor.connect(stub)
        assert "Connect with a limit" in page
        assert "/minute/spend" not in page, "without a limit there is nothing to reach"
        token = re.search(r'name="form_token" value="([^"]+)"', page)
        assert token
        stub.calls.clear()
        assert visitor.ask("/minute/spend", {"form_token": token[1]})[0] == 400
        assert stub.calls == []


def test_hostile_notes_are_escaped(browser: Browser, stub: Stub) -> None:
    hostile = [{"text": "</textarea><script>alert(1)</script>"}, "no object", {"text": 7}, None]
    items = [{"id": f"n{number}", "etag": '"1"', "data": data} for number, data in enumerate(hostile)]
    page = with_data(stub, browser, *items)
    assert "alert(1)</script>" not in page
    assert html.escape("</textarea><script>alert(1)</script>") in page
    assert page.count('class="note"') == len(hostile)


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"id": "../../../oauth/token", "etag": '"1"', "text": "x"}, id="another address"),
        pytest.param({"id": "n1?x=", "etag": '"1"', "text": "x"}, id="a query"),
        pytest.param({"id": "n1", "etag": "*", "text": "x"}, id="no version"),
        pytest.param({"id": "n1", "etag": '"1"', "text": "  "}, id="nothing to say"),
    ],
)
def test_a_note_is_unchanged_after_a_bad_form(browser: Browser, stub: Stub, fields: dict[str, str]) -> None:
    page = with_data(stub, browser)
    token = re.search(r'name="form_token" value="([^"]+)"', page)
    assert token
    stub.calls.clear()
    assert browser.ask("/notes/edit", {**fields, "form_token": token[1]})[0] == 400
    assert stub.calls == []


def test_an_edit_conflict_is_shown_with_the_typed_text(browser: Browser, stub: Stub) -> None:
    page = with_data(stub, browser, {"id": "n1", "etag": '"1"', "data": {"text": "one"}})
    token = re.search(r'name="form_token" value="([^"]+)"', page)
    assert token
    stub.answers["notes"] = (412, {"error": "precondition_failed"})
    sent = {"id": "n1", "etag": '"1"', "text": "<b>two</b>", "form_token": token[1]}
    status, _, page = browser.ask("/notes/edit", sent)
    assert status == 409
    assert "&lt;b&gt;two&lt;/b&gt;" in page


def test_a_model_stops_when_its_reader_leaves(browser: Browser, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stub, "has_model", True)
    token = re.search(r'name="form_token" value="([^"]+)"', browser.connect(stub))
    assert token
    reader = http.client.HTTPConnection(browser.host, timeout=10)
    form = urlencode({"form_token": token[1], "question": "And then?"})
    headers = {"Cookie": browser.cookie, "Content-Type": "application/x-www-form-urlencoded"}
    reader.request("POST", "/ask/stream", form, headers)
    response = reader.getresponse()
    assert json.loads(response.readline()) == {"text": "and "}
    assert not stub.hung_up.is_set()
    response.close()
    reader.close()
    assert stub.hung_up.wait(10)


@pytest.mark.parametrize(
    "action",
    [
        *("/refresh", "/disconnect", "/ask", "/ask/stream", "/notes", "/notes/edit", "/notes/delete"),
        *("/minute/note", "/minute/helper", "/minute/spend"),
    ],
)
def test_another_sites_form_is_refused(browser: Browser, stub: Stub, action: str) -> None:
    browser.connect(stub)
    stub.calls.clear()
    assert browser.ask(action, {"form_token": "guessed"})[0] == 403
    assert stub.calls == []


def test_no_secret_reaches_a_page_or_the_log(browser: Browser, stub: Stub, demo: Demo) -> None:
    page = browser.connect(stub)
    browser.press(page, "/refresh")
    browser.ask("/callback?code=code-secret&state=%ff")
    browser.press(browser.ask("/")[2], "/disconnect")
    verifier = stub.named("token")[0][0]["code_verifier"]
    log = demo.log.read_text()
    assert "303 GET /callback" in log
    for secret in ("at-secret", "rt-secret", "code-secret", verifier, SECRET, "Traceback"):
        assert secret not in log
        assert secret not in browser.shown


def test_a_public_client_sends_its_id_and_no_secret(stub: Stub, tmp_path: Path) -> None:
    stub.answers.clear()
    stub.calls.clear()
    with running(stub.issuer, tmp_path / "log") as demo:
        assert "Hello, Ada Lovelace" in Browser(demo).connect(stub)
    form, authorization = stub.named("token")[0]
    assert (form["client_id"], "client_secret" in form, authorization) == ("app:1", False, "")


@pytest.mark.parametrize(
    ("suffix", "words"),
    [
        pytest.param(None, "cannot be reached", id="unreachable"),
        pytest.param("/other", "under another address", id="not who it should be"),
    ],
)
def test_an_unusable_server_is_reported(stub: Stub, tmp_path: Path, suffix: str | None, words: str) -> None:
    issuer = "http://127.0.0.1:1" if suffix is None else stub.issuer + suffix
    with running(issuer, tmp_path / "log") as demo:
        status, _, page = Browser(demo).ask("/login")
    assert status == 502
    assert words in page


def test_the_demo_app_ends_with_its_parent_process() -> None:
    command = [sys.executable, str(PROGRAM), "--latchkey", "http://127.0.0.1:1", "--client-id", "a", "--port", "0"]
    parent = (
        "import json, subprocess, sys\n"
        "child = subprocess.Popen(json.loads(sys.argv[1]), stdout=subprocess.PIPE)\n"
        "child.stdout.readline()\n"
    )
    arguments = json.dumps([*command, "--exit-with-parent"])
    # The child inherits the parent's standard error: it is closed only when both are gone.
    done = subprocess.run([sys.executable, "-c", parent, arguments], stderr=subprocess.PIPE, timeout=10, check=False)
    assert b"Traceback" not in done.stderr
