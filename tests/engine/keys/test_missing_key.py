"""A server without a secret key that sealed something: 503, and an error that names the key."""

from __future__ import annotations

import logging

import pytest
from tornado.httpclient import HTTPResponse

from store.crypto.keyring import KeyRing
from tests.support.browser.second_factors import CONFIRM, SECURITY, Person
from tests.support.http.driver import PASSWORD, Service

pytestmark = pytest.mark.gen_test(timeout=60)


def check_refused(answer: HTTPResponse, caplog: pytest.LogCaptureFixture) -> None:
    """Checks the answer, and the log of the request."""
    assert (answer.code, answer.headers["Retry-After"]) == (503, "30")
    line = [one for one in caplog.records if one.levelno >= logging.ERROR][-1]
    assert line.exc_info is None
    assert "an authenticator app was sealed with secret key 1, which is not configured" in line.getMessage()
    caplog.clear()


async def test_codes_are_not_checked_without_the_key_of_their_secret(
    service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    service.store.keys.replace(KeyRing.parse(KeyRing.generate(2)))
    browser = await ada.half()
    check_refused(await browser.submit(await browser.get("/signin/second"), "/signin/second", code="123456"), caplog)
    # A recovery code needs no secret.
    answer = await browser.submit(await browser.get("/signin/second"), "/signin/second", code=ada.codes.pop())
    assert answer.headers["Location"] == "/account"
    ada.browser = browser
    page = await browser.get(SECURITY)
    check_refused(await browser.submit(page, CONFIRM, password=PASSWORD, code="123456"), caplog)
    assert (await ada.reauth(ada.codes.pop())).headers["Location"] == f"{SECURITY}?confirmed"
