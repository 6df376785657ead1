"""Rate limits over HTTP: headers, 429, and who shares a window. SPEC 2.5, 7, 8.1, 8.2."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable

import pytest
from tornado.httpclient import HTTPResponse

from store.crypto.seal import Token, TokenKind, new_id
from tests.support.http.driver import EMAIL, Service, answer_of, fields_of, json_of, send
from tests.support.processes.engines import FakeClock

LIMIT = 100
WINDOW = 60
FIGURES = ("X-RateLimit-Limit", "X-RateLimit-Remaining", "X-RateLimit-Reset")


@pytest.fixture
def clock(clock: FakeClock) -> FakeClock:
    """A clock that moves only on request: no result depends on a test's speed."""
    clock.stop()
    return clock


def remaining(response: HTTPResponse) -> int:
    """The remaining requests according to a successful response."""
    assert response.code == 200, (response.code, response.body)
    return int(response.headers["X-RateLimit-Remaining"])


def assert_rate_limited(response: HTTPResponse, clock: FakeClock) -> int:
    """The 429 of SPEC 2.5, 7 and 8.2; returns its Retry-After in seconds."""
    assert response.code == 429
    body = json_of(response)
    assert set(body) == {"error", "error_description", "retryAfter"}
    assert body["error"] == "rate_limited"
    assert isinstance(body["error_description"], str)
    assert type(body["retryAfter"]) is int
    assert body["retryAfter"] >= 1
    assert response.headers["Retry-After"] == str(body["retryAfter"])
    assert response.headers["Content-Type"] == "application/json"
    assert response.headers["Cache-Control"] == "no-store"
    assert response.headers["X-RateLimit-Limit"] == str(LIMIT)
    assert response.headers["X-RateLimit-Remaining"] == "0"
    assert clock.time() * 1000 < int(response.headers["X-RateLimit-Reset"]) <= (clock.time() + WINDOW + 3) * 1000
    return int(response.headers["Retry-After"])


async def fill(call: Callable[[], Awaitable[HTTPResponse]]) -> int:
    """Calls until the first 429; returns the number of calls before."""
    for count in range(3 * LIMIT):
        if (await call()).code == 429:
            return count
    raise AssertionError("no 429 came")


@pytest.mark.gen_test(timeout=20)
@pytest.mark.spec("2.5")
@pytest.mark.spec("7")
@pytest.mark.spec("8.1")
@pytest.mark.spec("8.2")
@pytest.mark.trap(26)
async def test_burst_counts_down_and_the_101st_is_429(service: Service, clock: FakeClock) -> None:
    access = (await service.tokens())["access_token"]
    clock.advance(2 * WINDOW)  # what the flow took has left the window
    for left in range(LIMIT - 1, -1, -1):
        response = await service.web.userinfo(access)
        assert remaining(response) == left
        assert response.headers["X-RateLimit-Limit"] == str(LIMIT)
        assert "Retry-After" not in response.headers
        ahead = int(response.headers["X-RateLimit-Reset"]) - clock.time() * 1000
        # The window is empty again when the last step has taken what was counted: 5 requests in 3 seconds.
        assert math.isclose(ahead, 3000 * math.ceil((LIMIT - left) / 5), abs_tol=2)
    refused = await service.web.userinfo(access)
    retry = assert_rate_limited(refused, clock)
    assert refused.headers["Access-Control-Allow-Origin"] == "*"  # what was set before survives send_error
    assert "X-RateLimit-Reset" in refused.headers["Access-Control-Expose-Headers"]
    # SPEC 8.2: a client that waits as told is let in.
    clock.advance(retry)
    assert (await service.web.userinfo(access)).code == 200


@pytest.mark.gen_test(timeout=30)
@pytest.mark.spec("8.1")
async def test_a_sustained_rate_passes_and_a_second_burst_is_cut(service: Service, clock: FakeClock) -> None:
    access = (await service.tokens())["access_token"]
    clock.advance(2 * WINDOW)
    for _ in range(LIMIT + 40):
        assert (await service.web.userinfo(access)).code == 200
        clock.advance(WINDOW / LIMIT)
    clock.advance(2 * WINDOW)
    for _ in range(LIMIT):
        assert (await service.web.userinfo(access)).code == 200
    clock.advance(WINDOW / 2)
    admitted = await fill(lambda: service.web.userinfo(access))
    assert 0 < admitted < LIMIT
    assert math.isclose(admitted, LIMIT / 2, abs_tol=10)


@pytest.mark.gen_test(timeout=20)
@pytest.mark.spec("8.1")
async def test_a_persons_window_is_shared_by_all_apps_and_endpoints(service: Service, clock: FakeClock) -> None:
    browser = await service.signed_in()
    web = await service.tokens(browser=browser)
    native = await service.tokens(service.native, browser)
    bob_id = await service.add_person("bob@example.com")
    bob_browser = await service.signed_in("bob@example.com")
    bob = await service.tokens(browser=bob_browser)
    codes = [await service.code(browser=browser) for _ in range(2)]
    page = await browser.get(service.web.authorize_url(prompt="consent"))

    left = remaining(await service.web.userinfo(web["access_token"]))

    async def takes(count: int) -> None:
        nonlocal left
        seen = remaining(await service.native.userinfo(native["access_token"]))
        assert left - seen == count + 1
        left = seen

    await takes(0)
    await service.web.exchange(codes[0])
    await takes(1)
    web = json_of(await service.web.refresh(web["refresh_token"]))
    await takes(1)
    # A code sent by its own app with another redirect_uri is the user's: the user is known.
    mismatch = await service.web.exchange(codes[1], redirect_uri="https://app.example/other")
    assert mismatch.code == 400
    assert [mismatch.headers[name] for name in FIGURES[:2]] == ["100", str(left - 1)]
    await takes(1)
    decision = await browser.submit(page, "/api/oauth/authorize", decision="deny")
    assert all(name in decision.headers for name in FIGURES)
    await takes(1)
    extra = await service.tokens(service.native, browser, prompt="consent")
    await takes(2)
    await service.web.revoke(extra["access_token"])  # it ended a live token
    await takes(1)
    for _ in range(3):
        await service.web.revoke(extra["access_token"])  # it ended nothing
        await service.web.revoke("invented")
    await takes(0)
    # Bob is not affected.
    left_of_bob = remaining(await service.web.userinfo(bob["access_token"]))
    await fill(lambda: service.web.userinfo(web["access_token"]))
    assert remaining(await service.web.userinfo(bob["access_token"])) == left_of_bob - 1
    assert json_of(await service.web.userinfo(bob["access_token"]))["sub"] == bob_id


@pytest.mark.gen_test(timeout=20)
@pytest.mark.spec("8.1")
async def test_a_full_window_refuses_every_endpoint_and_burns_nothing(service: Service, clock: FakeClock) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    code = await service.code(browser=browser)
    page = await browser.get(service.web.authorize_url(prompt="consent"))
    form = fields_of(page, "/api/oauth/authorize")
    await fill(lambda: service.web.userinfo(tokens["access_token"]))
    for response in (
        await service.web.userinfo(tokens["access_token"]),
        await service.web.exchange(code),
        await service.web.refresh(tokens["refresh_token"]),
    ):
        retry = assert_rate_limited(response, clock)
    as_page = await browser.send("/api/oauth/authorize", "POST", form={**form, "decision": "allow"})
    assert as_page.code == 429
    assert as_page.headers["Retry-After"]
    assert b"Too many requests" in as_page.body
    assert "Location" not in as_page.headers
    # A revocation is never refused by it.
    other = await service.web.revoke(tokens["access_token"])
    assert other.code == 200
    # A remembered authorization is no call to /api/oauth/*; the browser is not stuck.
    assert (await browser.get(service.web.authorize_url())).code == 303
    clock.advance(retry + 3)
    assert (await service.web.exchange(code)).code == 200
    assert (await service.web.refresh(tokens["refresh_token"])).code == 200
    assert (await browser.send("/api/oauth/authorize", "POST", form={**form, "decision": "allow"})).code == 303


@pytest.mark.gen_test(timeout=30)
@pytest.mark.trap(36)
@pytest.mark.spec("8.1")
async def test_forged_and_stale_tokens_from_one_address_lock_no_user_out(service: Service, clock: FakeClock) -> None:
    browser = await service.signed_in()
    tokens = await service.tokens(browser=browser)
    # Authentic but stale tokens of Ada and her app: the seal opens, but nothing in the store belongs to them.
    sealer = service.store.sealer
    stale = {
        kind: sealer.seal(Token(kind, service.ada, "web-app", new_id(), 0))
        for kind in (TokenKind.CODE, TokenKind.REFRESH, TokenKind.ACCESS)
    }
    used = await service.code(browser=browser)
    dead = json_of(await service.web.exchange(used))
    await service.web.exchange(used)
    code = await service.code(browser=browser)
    left = remaining(await service.web.userinfo(tokens["access_token"]))
    attempts: list[Callable[[], Awaitable[HTTPResponse]]] = [
        lambda: service.web.exchange("lk_ac_forged"),
        lambda: service.web.exchange(stale[TokenKind.CODE]),
        lambda: service.web.exchange(used),
        lambda: service.web.refresh("lk_rt_forged"),
        lambda: service.web.refresh(stale[TokenKind.REFRESH]),
        lambda: service.web.refresh(dead["refresh_token"][:-4] + "AAAA"),
        lambda: service.web.exchange(code, client_secret="wrong"),
        lambda: service.web.exchange(code, client_id="nobody"),
    ]
    codes = [(await attempt()).code for attempt in attempts for _ in range(20)]
    # The replay above was the first request of the address.
    assert codes[: LIMIT - 1] == [400] * (LIMIT - 1)
    assert set(codes[LIMIT - 1 :]) == {429}
    for _ in range(120):  # and of resource calls, which are refused without asking any window
        for wrong in ("lk_at_forged", stale[TokenKind.ACCESS], dead["access_token"]):
            assert (await service.web.userinfo(wrong)).code == 401
    # From the same address Ada is served, from a window that none of this touched.
    assert remaining(await service.web.userinfo(tokens["access_token"])) == left - 1
    exchanged = await service.web.exchange(code)
    assert remaining(exchanged) == left - 2
    assert remaining(await service.web.refresh(tokens["refresh_token"])) == left - 3
    assert (await browser.consent(service.web.authorize_url(prompt="consent"))).code == 303


@pytest.mark.gen_test(timeout=20)
@pytest.mark.trap(36)
async def test_the_window_of_an_address_answers_429_with_its_figures(service: Service, clock: FakeClock) -> None:
    admitted = await fill(lambda: service.web.exchange("lk_ac_forged"))
    assert admitted == LIMIT
    assert_rate_limited(await service.web.refresh("lk_rt_forged"), clock)
    wrong = await service.web.exchange("lk_ac_forged", client_secret="wrong")
    assert_rate_limited(wrong, clock)
    # A malformed request gets its own error, whatever the window says.
    assert (await service.web.token(grant_type="authorization_code")).code == 400
    clock.advance(WINDOW + 3)
    assert (await service.web.refresh("lk_rt_forged")).code == 400


@pytest.mark.gen_test(timeout=20)
@pytest.mark.spec("4.5")
@pytest.mark.spec("8.2")
async def test_revocation_answers_alike_for_live_dead_and_invented_tokens(service: Service, clock: FakeClock) -> None:
    browser = await service.signed_in()
    live = await service.tokens(browser=browser)
    dead = await service.tokens(service.native, browser)
    await service.native.revoke(dead["refresh_token"])
    sealer = service.store.sealer
    clock.advance(2 * WINDOW)
    presented = {
        "live access": live["access_token"],
        "live refresh": live["refresh_token"],
        "dead access": dead["access_token"],
        "stale": sealer.seal(Token(TokenKind.REFRESH, service.ada, "web-app", new_id(), 3)),
        "of nobody": sealer.seal(Token(TokenKind.ACCESS, "f" * 32, "web-app", new_id(), 0)),
        "of another kind": await service.code(browser=browser),
        "invented": "lk_at_invented",
        "no token at all": "\u20ac <b>",
        "endless": "x" * 30_000,
    }
    for turn in range(LIMIT + 2):
        answers = {}
        for name, token in presented.items():
            response = await service.web.revoke(token)
            headers = dict(response.headers.get_all())
            for varying in ("Date", "X-Request-Id"):
                headers.pop(varying, None)
            answers[name] = (response.code, response.body, headers)
        first = answers["live access"]
        assert all(answer == first for answer in answers.values()), (turn, answers)
        assert first[0] == (200 if turn < LIMIT else 429)
        if turn < LIMIT:
            assert first[1] == b"{}"
            assert first[2]["X-Ratelimit-Remaining"] == str(LIMIT - 1 - turn)


@pytest.mark.gen_test
@pytest.mark.spec("8.2")
async def test_limit_headers_are_on_every_limited_success_and_on_no_page(
    service: Service,
) -> None:
    browser = await service.signed_in()
    page = await browser.get(service.web.authorize_url())
    decided = await browser.submit(page, "/api/oauth/authorize", decision="allow")
    exchanged = await service.web.exchange(answer_of(decided)["code"])
    tokens = json_of(exchanged)
    limited = [
        decided,
        exchanged,
        await service.web.refresh(tokens["refresh_token"]),
        await service.web.userinfo(tokens["access_token"]),
        await service.web.revoke(tokens["access_token"]),
        await service.web.revoke("invented"),
    ]
    for response in limited:
        assert response.code in (200, 303)
        assert [response.headers.get_list(name)[0].isdigit() for name in FIGURES] == [True] * 3
        assert "Retry-After" not in response.headers
    for path in ("/", "/account", "/healthz", "/.well-known/oauth-authorization-server"):
        free = await send(service.base_url + path)
        assert not any(name in free.headers for name in FIGURES)


@pytest.mark.gen_test(timeout=20)
async def test_sign_in_is_limited_per_address(service: Service, clock: FakeClock) -> None:
    browser = service.browser()
    for number in range(20):
        assert (await browser.sign_in(f"nobody{number}@example.com", "wrong password")).code == 400
    refused = await browser.sign_in()
    assert refused.code == 429
    assert 1 <= int(refused.headers["Retry-After"]) <= 60
    assert b"Too many requests" in refused.body
    assert "Set-Cookie" not in refused.headers
    clock.advance(int(refused.headers["Retry-After"]))
    assert (await browser.sign_in()).code == 303


@pytest.mark.gen_test(timeout=20)
@pytest.mark.parametrize("email", [EMAIL, "nobody@example.com"])
async def test_sign_in_is_limited_per_account_existing_or_not(service: Service, clock: FakeClock, email: str) -> None:
    browser = service.browser()
    for number in range(20):
        typed = email.upper() if number % 2 else f" {email} "  # written in another way it is the same account
        assert (await browser.sign_in(typed, "wrong password")).code == 400
    clock.advance(40)  # the address may go on, the account not
    refused = await browser.sign_in(email)
    assert refused.code == 429
    await service.add_person("other@example.com")
    assert (await browser.sign_in("other@example.com")).code == 303
    clock.advance(int(refused.headers["Retry-After"]))
    assert (await browser.sign_in(email)).code == (303 if email == EMAIL else 400)


@pytest.mark.gen_test(timeout=20)
async def test_wrong_current_passwords_on_the_account_page_count(service: Service, clock: FakeClock) -> None:
    browser = await service.signed_in()
    page = await browser.get("/account/security")
    passwords = {"current_password": "wrong password", "new_password": "another horse battery"}
    codes = [(await browser.submit(page, "/account/security", **passwords)).code for _ in range(21)]
    assert codes == [400] * 20 + [429]


@pytest.mark.gen_test(timeout=20)
async def test_sign_up_is_limited_per_address(service: Service, clock: FakeClock) -> None:
    browser = service.browser()
    page = await browser.get("/signup")
    form = {"email": "no address", "name": "A", "password": "correct horse battery"}
    codes = [(await browser.submit(page, "/signup", **form)).code for _ in range(21)]
    assert codes == [400] * 20 + [429]
