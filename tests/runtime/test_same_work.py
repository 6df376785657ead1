"""The work behind an answer reveals no more than the answer: the same store calls, the same length. `make timing`
measures the time."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial

import pytest
from tornado.httpclient import HTTPResponse

from handlers.core.site import Site
from outbound.mail.mailer import Mailer, Spool
from store.apps.client_secrets import secret_digest, secret_matches
from store.crypto.passwords import PasswordHasher
from store.crypto.seal import Token, TokenKind, new_id
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.http.driver import EMAIL, Service
from tests.support.processes.engines import Engine

pytestmark = pytest.mark.gen_test(timeout=30)

NOBODY = "eve" + EMAIL[3:]
OURS = ("config", "info", "client", "hello", "select", "time")
"""Commands that a test uses to inspect the store, and those of new connections."""

Ask = Callable[[], Awaitable[HTTPResponse]]


@pytest.fixture
def site(open_store: OpenStore, valkey_engine: Engine, base_url: str) -> Site:
    valkey_engine.empty()
    mail = Mailer(Spool(None), "noreply@localhost", confirms=True)
    return Site(open_store(valkey_engine.url), base_url, mail=mail, scatter=60)


async def work(engine: Engine, ask: Ask) -> tuple[int, int, dict[str, int]]:
    """The status and length of an answer, and the store commands for it, including those inside scripts. It is
    requested twice: the first time loads scripts and registrations."""
    await ask()
    with engine.client() as direct:
        direct.config_resetstat()
        answer = await ask()
        stats: dict[str, dict[str, int]] = direct.info("commandstats")
    calls = {name.removeprefix("cmdstat_"): row["calls"] for name, row in stats.items()}
    return answer.code, len(answer.body), {name: n for name, n in calls.items() if not name.startswith(OURS)}


async def test_sign_in_does_the_same_work_with_and_without_an_account(service: Service, valkey_engine: Engine) -> None:
    browser = service.browser()
    page = await browser.get("/signin")

    def sign_in(email: str) -> Ask:
        return lambda: browser.submit(page, "/signin", email=email, password="not the password")

    known = await work(valkey_engine, sign_in(EMAIL))
    assert known == await work(valkey_engine, sign_in(NOBODY))
    assert (known[0], known[2]["evalsha"]) == (400, 3), "two windows and the credentials"


async def test_device_cookies_reveal_nothing_of_other_accounts(service: Service, valkey_engine: Engine) -> None:
    ada = await service.signed_in()
    real = ada.cookies["latchkey_device"]
    answers = {}
    for email in (EMAIL, NOBODY, "bob" + EMAIL[3:]):
        for cookie in ("", real[:-1] + ("A" if real[-1] != "A" else "B"), real):
            browser = service.browser()
            page = await browser.get("/signin")
            browser.cookies["latchkey_device"] = cookie
            sign_in = partial(browser.submit, page, "/signin", email=email, password="not the password")
            answers[email, cookie] = await work(valkey_engine, sign_in)
    forged = next(cookie for _, cookie in answers if cookie not in ("", real))
    assert answers[EMAIL, forged] == answers[EMAIL, ""] == answers[NOBODY, forged]
    assert answers[NOBODY, real] == answers["bob" + EMAIL[3:], real]
    assert answers[EMAIL, real][2]["evalsha"] == 1, "one script counts and reads, and no stranger's window is taken"


async def test_an_unknown_account_costs_the_same_hash() -> None:
    hasher = PasswordHasher(9000, 2)
    made = await hasher.hash("correct horse battery")
    assert not hasher.needs_rehash(made)
    assert not hasher.needs_rehash(vars(hasher)["_dummy"].pack())
    hasher.close()


@pytest.mark.parametrize("path", ["/forgot", "/signup"])
async def test_mails_do_the_same_work_with_and_without_an_account(
    path: str, service: Service, site: Site, valkey_engine: Engine
) -> None:
    """The rest does not start with the answer: it would delay the next request, whose time would reveal it."""
    browser = service.browser()
    page = await browser.get(path)

    def send(email: str) -> Ask:
        return lambda: browser.submit(page, path, email=email)

    known = await work(valkey_engine, send(EMAIL))
    assert known == await work(valkey_engine, send(NOBODY))
    assert known[0] == 200
    assert len(site.tasks) == 4
    for task in tuple(site.tasks):
        task.cancel()


async def test_background_tasks_start_after_a_random_delay(memory_store: Store) -> None:
    site = Site(memory_store, "http://localhost:8080")
    begun = []

    async def work_of(number: int) -> None:
        begun.append(number)

    site.in_background(work_of(0))
    for number in range(1, 9):
        site.in_background(work_of(number), within=0.2)
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert begun == [0]
    while site.tasks:
        await asyncio.wait(site.tasks)
    assert sorted(begun) == list(range(9))
    assert begun != list(range(9)), "once in forty thousand times they would begin in order"
    site.in_background(work_of(9), within=60)
    await asyncio.sleep(0)
    for task in tuple(site.tasks):
        task.cancel()  # and nothing complains of a coroutine that was never awaited
        await asyncio.wait([task])
    assert len(begun) == 9


async def test_known_and_unknown_clients_do_the_same_work(service: Service, valkey_engine: Engine) -> None:
    def token(client_id: str, secret: str) -> Ask:
        fields = {"grant_type": "refresh_token", "refresh_token": "x", "client_id": client_id, "client_secret": secret}
        return lambda: service.web.token(**fields)

    secret = service.web.secret or ""
    wrong = await work(valkey_engine, token("web-app", "lk_cs_" + "x" * 43))
    assert wrong == await work(valkey_engine, token("no-such", "lk_cs_" + "x" * 43))
    assert wrong == await work(valkey_engine, token("web-app", secret[:-1] + ("x" if secret[-1] != "x" else "y")))
    assert (wrong[0], wrong[2]["evalsha"]) == (401, 1)


def test_no_secret_matches_an_unknown_app() -> None:
    assert not secret_matches("", ())
    assert not secret_matches("lk_cs_x", ())
    assert secret_matches("lk_cs_x", (secret_digest("another"), secret_digest("lk_cs_x")))


async def test_revoked_and_invented_tokens_do_the_same_work(service: Service, valkey_engine: Engine) -> None:
    revoked = (await service.tokens())["access_token"]
    assert (await service.web.revoke(revoked)).code == 200
    rowless = service.store.sealer.seal(Token(TokenKind.ACCESS, service.ada, "web-app", new_id(), 0))
    was = await work(valkey_engine, lambda: service.web.userinfo(revoked))
    assert was == await work(valkey_engine, lambda: service.web.userinfo(rowless))
    assert (was[0], was[2]["evalsha"]) == (401, 1)


async def test_revoking_dead_and_invented_tokens_does_the_same_work(service: Service, valkey_engine: Engine) -> None:
    rowless = service.store.sealer.seal(Token(TokenKind.ACCESS, service.ada, "web-app", new_id(), 0))
    dead = await work(valkey_engine, lambda: service.web.revoke(rowless))
    invented = await work(valkey_engine, lambda: service.web.revoke("lk_at_" + "A" * 80))
    assert dead[:2] == invented[:2] == (200, 2)
    assert dead[2]["evalsha"] == invented[2]["evalsha"] == 1
