"""The log records what happened, and no credential."""

from __future__ import annotations

import logging
import re
from urllib.parse import quote, urlencode

import pytest

from handlers.core.access_log import shown
from store import keys
from tests.support.http.driver import (
    CALLBACK,
    EMAIL,
    PASSWORD,
    Service,
    answer_of,
    challenge,
    fields_of,
    json_of,
    send,
    send_raw,
)

SECRET_STATE = "state-that-nobody-may-read"
NEW_PASSWORD = "a password nobody may read"
WRONG_PASSWORD = "a wrong one, nearly right"
SECRET_VERIFIER = "verifier-that-nobody-may-read-in-a-log-0123456789"
LOGGERS = ("", "tornado", "tornado.access", "tornado.application", "tornado.general", "redis", "asyncio", "latchkey")


@pytest.fixture
def log(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    """Every logger at its most verbose."""
    for name in LOGGERS:
        caplog.set_level(logging.DEBUG, logger=name)
    return caplog


def assert_none_of(log: pytest.LogCaptureFixture, secrets: dict[str, str]) -> None:
    """No record holds any of them, in its message, its arguments or its traceback, as they are or escaped."""
    text = log.text + "".join(repr(vars(record)) for record in log.records)
    for name, secret in secrets.items():
        assert len(secret) > 8, name
        for form in {secret, quote(secret, safe=""), repr(secret)[1:-1]}:
            assert form not in text, f"{name} stands in the log"
    found = re.findall(r"lk_(?:at|rt|ac|ss|rq|in|cf|pr|ce|cs)_[\w-]{8}", text)
    assert not found, found


async def walk_through(service: Service) -> dict[str, str]:
    """The whole flow, with errors on the way; returns everything in it that is secret."""
    secrets = {"password": PASSWORD, "new password": NEW_PASSWORD, "wrong password": WRONG_PASSWORD}
    secrets |= {"state": SECRET_STATE, "verifier": SECRET_VERIFIER, "client secret": service.web.secret or ""}
    invite = secrets["invite"] = await service.store.people.invite("grace@example.com")
    guest = service.browser()
    page = await guest.get(f"/signup?invite={invite}")
    await guest.submit(page, "/signup", name="Grace", password=PASSWORD)
    browser = service.browser()
    url = service.web.authorize_url(state=SECRET_STATE, code_challenge=challenge(SECRET_VERIFIER))
    away = await browser.get(url)
    await browser.sign_in(EMAIL, WRONG_PASSWORD)
    page = await browser.get(away.headers["Location"])
    back = await browser.submit(page, "/signin", email=EMAIL, password=PASSWORD)
    secrets["session"] = browser.cookies["latchkey_session"]
    page = await browser.get(back.headers["Location"])
    form = fields_of(page, "/api/oauth/authorize")
    secrets |= {"request": form["request_id"], "xsrf": form["_xsrf"]}
    code = secrets["code"] = answer_of(await browser.submit(page, "/api/oauth/authorize", decision="allow"))["code"]
    await service.web.exchange(code, code_verifier="x" * 43)
    await service.web.exchange(code, client_secret="a wrong secret, nearly right")
    tokens = json_of(await service.web.exchange(code, code_verifier=SECRET_VERIFIER))
    secrets |= {"access": tokens["access_token"], "refresh": tokens["refresh_token"]}
    await service.web.userinfo(tokens["access_token"])
    await service.web.userinfo(tokens["access_token"] + "x")
    rotated = json_of(await service.web.refresh(tokens["refresh_token"]))
    secrets |= {"second access": rotated["access_token"], "second refresh": rotated["refresh_token"]}
    await service.web.refresh(tokens["refresh_token"])  # a replay
    await service.web.revoke(rotated["refresh_token"])
    page = await browser.get("/account/security")
    await browser.submit(page, "/account/security", current_password=PASSWORD, new_password=NEW_PASSWORD)
    secrets["second session"] = browser.cookies["latchkey_session"]
    return secrets


@pytest.mark.gen_test
@pytest.mark.trap(24)
async def test_the_whole_flow_leaves_no_secret_in_any_log(service: Service, log: pytest.LogCaptureFixture) -> None:
    secrets = await walk_through(service)
    assert_none_of(log, secrets)
    assert EMAIL not in log.text
    assert "POST /api/oauth/token 200" in log.text  # there is a log


@pytest.mark.gen_test
@pytest.mark.trap(24)
async def test_failures_of_the_store_leave_no_secret_in_any_log(
    service: Service, log: pytest.LogCaptureFixture
) -> None:
    secrets = await walk_through(service)
    browser = await service.signed_in(EMAIL, NEW_PASSWORD)
    secrets["third session"] = browser.cookies["latchkey_session"]
    tokens = await service.tokens(browser=browser)
    code = await service.code(browser=browser)
    secrets |= {"code": code, "access": tokens["access_token"], "refresh": tokens["refresh_token"]}
    apps, security = await browser.get("/account/apps"), await browser.get("/account/security")
    page = await browser.get(service.web.authorize_url(prompt="consent", state=SECRET_STATE))
    # A row of the wrong type: every script that meets it raises in the middle of its work.
    client = service.store.client
    for key in (keys.grant(service.ada, "web-app"), keys.person(service.ada)["audit"]):
        await client.delete(key)
        await client.sadd(key, "no hash, no text")
    passwords = {"current_password": NEW_PASSWORD, "new_password": PASSWORD}
    answers = [
        await service.web.exchange(code),
        await service.web.refresh(tokens["refresh_token"]),
        await service.web.userinfo(tokens["access_token"]),
        await service.web.revoke(tokens["refresh_token"]),
        await browser.submit(page, "/api/oauth/authorize", decision="allow"),
        await browser.submit(apps, "/account/apps/web-app/revoke"),
        await browser.get(service.web.authorize_url(state=SECRET_STATE)),
        await browser.get("/account/apps"),
        await browser.get("/account/security"),
        await service.browser().sign_in(EMAIL, NEW_PASSWORD),
        await browser.submit(security, "/account/security", **passwords),
    ]
    assert [answer.code for answer in answers] == [500] * len(answers)
    for answer in answers:
        assert b"Traceback" not in answer.body
        assert b"WRONGTYPE" not in answer.body
        assert b"lua" not in answer.body
        assert "Location" not in answer.headers
    assert "Traceback" in log.text  # the operator sees where it failed
    assert_none_of(log, secrets)


@pytest.mark.gen_test
@pytest.mark.trap(24)
async def test_malformed_requests_leave_no_secret_in_any_log(service: Service, log: pytest.LogCaptureFixture) -> None:
    browser = await service.signed_in()
    access = (await service.tokens(browser=browser))["access_token"]
    session = browser.cookies["latchkey_session"]
    secrets = {"access": access, "session": session, "client secret": service.web.secret or "", "state": SECRET_STATE}
    for header in (
        f"Authorization: Bearer {access}\x01",
        f"Authorization: Bearer {access}\x00",
        f"Cookie: latchkey_session={session}\x01",
        f"Cookie: latchkey_xsrf={session}",
        f"{access}: x",
        f"{access}@: x",
        f"Bearer {access}",
        f"Host: {access}@",
        f"Content-Encoding: {access}",
        f"Transfer-Encoding: {access}",
    ):
        for path in ("/api/oauth/userinfo", "/account"):
            head = f"POST {path} HTTP/1.1\r\nContent-Type: application/x-www-form-urlencoded\r\n{header}"
            await send_raw(service.base_url, head.encode("latin-1"), b"a=b")
    query = urlencode({"state": SECRET_STATE, "code": access})
    for target in (
        f"/static/latchkey.css?{query}",
        f"/static/nothing?{query}",
        f"/static/..%2f..%2fsetup.cfg?{query}",
        f"/static/?{query}",
        f"/nowhere?{query}",
        f"/api/nowhere?{query}",
        f"/oauth/authorize?{query}&client_id=%ff",
        f"/signin?{query}&next=%00",
        f"/healthz?{query}",
        f"/account/security?{query}",
        f"/oauth/authorize?{query}" + "&a" * 3000,
    ):
        for method in ("GET", "POST", "HEAD", "NONSENSE"):
            await send_raw(service.base_url, f"{method} {target} HTTP/1.1\r\n".encode())
    for body in (b'{"token": "%s\\u0000"', b"token=%s%%00", b"token=%s&token=%s", b"--b\r\n\r\n%s--b--"):
        filled = body.replace(b"%s", access.encode())
        for kind in ("application/json", "application/x-www-form-urlencoded", "multipart/form-data; boundary=b"):
            await send_raw(
                service.base_url, f"POST /api/oauth/revoke HTTP/1.1\r\nContent-Type: {kind}".encode(), filled
            )
    assert_none_of(log, secrets)


@pytest.mark.gen_test
@pytest.mark.trap(21)
async def test_long_and_hostile_names_are_truncated_to_one_line(
    service: Service, log: pytest.LogCaptureFixture
) -> None:
    endless = "n" * 50_000
    browser = service.browser()
    await browser.sign_in(endless + "@example.com")
    page = await browser.get("/signup")
    await browser.submit(page, "/signup", email=endless, name=endless, password=PASSWORD)
    browser.agent = endless[:30_000]
    await browser.sign_in()
    for path in ("/" + endless[:20_000], f"/account/apps/{endless[:20_000]}/revoke", f"/static/{endless[:20_000]}"):
        await browser.get(path)
        await browser.send(path, "POST")
    await service.web.token(grant_type=endless)
    await service.web.token(grant_type="refresh_token", refresh_token="x", client_id=endless)
    await send_raw(service.base_url, b"GET /%0aERROR:forged\xc2\x85\xe2\x80\xa8\x1b[31m HTTP/1.1\r\n")
    await send_raw(service.base_url, b"GET /caf\xe9\xff HTTP/1.1\r\n")
    assert (await send(f"{service.base_url}/static/{endless[:20_000]}")).code == 404
    for path in ("/signin", "/api/v1/userinfo", "/static/x", "/nothing"):
        assert (await send_raw(service.base_url, f"{'M' * 5000} {path} HTTP/1.1\r\n".encode()))[0] == 405
    assert log.records
    for record in log.records:
        message = record.getMessage()
        assert len(message) < 500, message[:300]
        assert "n" * 250 not in message
        assert message.isprintable(), repr(message)


@pytest.mark.gen_test
async def test_a_request_is_found_in_the_log_by_the_id_its_response_carries(
    service: Service, log: pytest.LogCaptureFixture
) -> None:
    ids = set()
    for path in ("/", "/api/oauth/userinfo", "/nowhere", "/static/latchkey.css", "/static/nothing", "/healthz"):
        response = await send(f"{service.base_url}{path}?{CALLBACK}", headers={"X-Request-Id": "chosen-by-the-client"})
        found = response.headers["X-Request-Id"]
        assert f"GET {path} {response.code} " in log.text
        assert f"[{found}]" in log.text
        assert "chosen-by-the-client" not in found
        ids.add(found)
    assert len(ids) == 6
    assert CALLBACK not in log.text


@pytest.mark.gen_test
async def test_only_a_replay_is_logged_as_a_warning(service: Service, log: pytest.LogCaptureFixture) -> None:
    await walk_through(service)
    loud = [record.getMessage() for record in log.records if record.levelno >= logging.WARNING]
    assert [line.partition(" ")[0] for line in loud] == ["refresh_replayed"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("/api/v1/data/notes/one", "/api/v1/data/notes/one"),
        ("/api/v1/data/contacts/ada@example.com", "/api/v1/data/contacts/*@*"),
        ("/api/v1/data/ada%40example.com/one", "/api/v1/data/*@*/one"),
        ("/" + "x" * 300 + "@example.com/y", "/*@*/y"),
        ("/" + "%4" * 500_000 + "/@", "/" + ("%4" * 100)[:199]),  # a search that looked back would take hours
        ("/a\n/" + "y" * 300, "/a\\n/" + "y" * 196),
    ],
)
def test_no_logged_path_contains_an_e_mail_address(path: str, expected: str) -> None:
    assert shown(path) == expected
