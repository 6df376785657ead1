"""With a second step, deleting the account needs it again."""

from __future__ import annotations

from typing import Any

import pytest
from tornado.httpclient import HTTPResponse

from tests.support.browser.second_factors import Person
from tests.support.http.driver import EMAIL, PASSWORD, Service, fields_of
from tests.support.store.authenticator import Authenticator

pytestmark = pytest.mark.gen_test(timeout=60)

DELETE = "/account/delete"
OPTIONS = f"{DELETE}/options"


async def leave(ada: Person, password: str = PASSWORD, **fields: str) -> HTTPResponse:
    page = await ada.browser.get(DELETE)
    return await ada.browser.submit(page, DELETE, email=EMAIL, password=password, **fields)


async def delete_with_passkey(ada: Person, email: str = EMAIL, **lies: object) -> HTTPResponse:
    options = await ada.options(OPTIONS, page=DELETE)
    page = await ada.browser.get(DELETE)
    return await ada.browser.submit(page, DELETE, email=email, credential=ada.device.get(options, **lies))


def left(answer: HTTPResponse) -> bool:
    return (answer.code, answer.headers.get("Location")) == (303, "/account/deleted")


async def stays(ada: Person) -> bool:
    return (await ada.browser.get("/account")).code == 200


async def test_without_a_second_step_deletion_needs_only_the_password(service: Service) -> None:
    ada = await Person.arrive(service)
    page = (await ada.browser.get(DELETE)).body.decode()
    assert 'name="code"' not in page
    assert left(await leave(ada))


async def test_a_password_alone_deletes_no_account_with_an_authenticator_app(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    for fields in ({}, {"code": ""}, {"code": "000000"}, {"code": "aaaa-aaaa-aaaa-aaaa"}):
        answer = await leave(ada, **fields)
        assert answer.code == 400
        assert 'id="code-error"' in answer.body.decode()
    assert await stays(ada)
    answer = await leave(ada, "wrong horse battery", code=await ada.code())
    assert 'id="password-error"' in answer.body.decode(), "a code is not used up for a wrong password"
    assert left(await leave(ada, code=await ada.code()))
    assert (await service.browser().sign_in()).code == 400


async def test_a_code_used_for_sign_in_deletes_nothing(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    code = await ada.code()
    browser = await ada.half()
    assert (await browser.submit(await browser.get("/signin/second"), "/signin/second", code=code)).code == 303
    assert (await leave(ada, code=code)).code == 400
    assert await stays(ada)


async def test_a_recovery_code_confirms_the_deletion(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    assert left(await leave(ada, code=ada.codes[0]))


async def test_code_guesses_count_together_with_those_at_sign_in(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_app()
    del ada.browser.cookies["latchkey_device"]  # a known browser has a count of its own
    assert [(await leave(ada, code="000000")).code for _ in range(11)] == [400] * 10 + [429]
    browser = await ada.half()
    page = await browser.get("/signin/second")
    assert (await browser.submit(page, "/signin/second", code=await ada.code())).code == 429, "it is one count"
    assert (await leave(ada, code=await ada.code())).code == 429
    assert await stays(ada)


async def test_a_passkey_takes_the_place_of_password_and_code(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_passkey()
    page = (await ada.browser.get(DELETE)).body.decode()
    assert ">Recovery code</label>" in page
    assert "passkeys.js" in page
    assert (await leave(ada)).code == 400, "the password alone does not sign in either"
    answer = await delete_with_passkey(ada, "somebody@example.com")
    assert 'id="email-error"' in answer.body.decode()
    assert await stays(ada)
    assert left(await delete_with_passkey(ada))


@pytest.mark.parametrize(
    "lies",
    [
        pytest.param({"signature": b"0" * 70}, id="not signed"),
        pytest.param({"flags": 1}, id="nobody checked who holds it"),
        pytest.param({"count": 0}, id="a copy"),
        pytest.param({"credential": "AAAA"}, id="an unknown one"),
        pytest.param({"user": "AAAA"}, id="somebody else's"),
        pytest.param({"challenge": "AAAA"}, id="another challenge"),
    ],
)
async def test_an_invalid_passkey_deletes_nothing(service: Service, lies: dict[str, Any]) -> None:
    ada = await Person.arrive(service)
    ada.device.count = 7
    await ada.add_passkey()
    answer = await delete_with_passkey(ada, **lies)
    assert answer.code == 400
    assert "Error: " in answer.body.decode()
    assert await stays(ada)


async def test_a_passkey_answer_from_sign_in_deletes_nothing(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_passkey()
    half = await ada.half()
    options = await ada.options("/signin/second/options", half, "/signin/second")
    page = await ada.browser.get(DELETE)
    ada.browser.cookies["latchkey_challenge"] = half.cookies["latchkey_challenge"]
    answer = await ada.browser.submit(page, DELETE, email=EMAIL, credential=ada.device.get(options))
    assert answer.code == 400
    assert await stays(ada)


async def test_another_persons_passkey_deletes_nothing(service: Service) -> None:
    ada = await Person.arrive(service)
    await ada.add_passkey()
    ada.device = Authenticator(service.base_url)
    answer = await delete_with_passkey(ada)
    assert answer.code == 400
    assert await stays(ada)


async def test_challenges_need_a_session(service: Service) -> None:
    browser = service.browser()
    xsrf = fields_of(await browser.get("/signin"), "/signin")["_xsrf"]
    assert (await browser.send(OPTIONS, "POST", form={"_xsrf": xsrf})).code == 303
    assert (await browser.send(OPTIONS, "POST", form={})).code == 403
