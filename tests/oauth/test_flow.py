"""The main job end to end, over HTTP on a real socket."""

from __future__ import annotations

import pytest

from tests.support.http.driver import EMAIL, NAME, Service, json_of
from tests.support.processes.engines import FakeClock


@pytest.mark.gen_test
@pytest.mark.spec("4.3")
async def test_a_person_signs_in_consents_and_the_app_reads_who_they_are(service: Service) -> None:
    tokens = await service.tokens()
    assert tokens["token_type"] == "Bearer"
    assert tokens["expires_in"] == 3600
    assert tokens["scope"] == "profile data:read data:write"
    answer = await service.web.userinfo(tokens["access_token"])
    person = json_of(answer)
    assert person.pop("picture").startswith(f"{service.base_url}/picture/")
    assert person == {"sub": service.ada, "email": EMAIL, "email_verified": True, "name": NAME}


@pytest.mark.gen_test
@pytest.mark.spec("3.1")
async def test_an_access_token_expires_after_an_hour(clock: FakeClock, service: Service) -> None:
    tokens = await service.tokens()
    clock.advance(3599)
    assert (await service.web.userinfo(tokens["access_token"])).code == 200
    clock.advance(2)
    answer = await service.web.userinfo(tokens["access_token"])
    assert (answer.code, json_of(answer)["error"]) == (401, "invalid_token")
