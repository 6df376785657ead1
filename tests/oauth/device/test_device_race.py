"""Decisions and polls at the same moment, on two server processes: one counts. On one store and on a cluster."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from tests.oauth.device.devices import DECISION, Device, let_in, type_code
from tests.support.http.driver import App, Browser, Service, fields_of, json_of
from tests.support.processes import two_servers
from tests.support.processes.processes import Pair, at_once
from tests.support.processes.two_servers import STORES, pair_on

pytestmark = pytest.mark.slow
CROWD = 40
within_a_minute = pytest.mark.gen_test(timeout=60)
service = two_servers.service


@pytest.fixture(scope="module", params=STORES)
def two(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """The two servers of this module."""
    with pair_on(request) as made:
        yield made


async def a_tv(service: Service) -> App:
    """A public app for devices, with a name of its own."""
    return await service.add_app(f"{service.web.client_id}-tv", public=True, scopes=("profile", "data:read"))


@within_a_minute
@pytest.mark.trap(64)
async def test_one_of_many_decisions_counts(service: Service, two: Pair) -> None:
    tv, browser = await a_tv(service), await service.signed_in(two.email)
    apps = two.split(tv)
    for _ in range(3):
        device = await Device.begun(apps[0])
        page = await type_code(browser, device.user_code)
        forms = [{**fields_of(page, DECISION), "decision": decision} for decision in ("allow", "deny") * (CROWD // 2)]
        browsers = [Browser(app.base_url, dict(browser.cookies)) for app in apps]
        answers = await at_once(browsers[n // 2 % 2].send(DECISION, "POST", form=form) for n, form in enumerate(forms))
        counted = Counter(answer.code for answer in answers)
        assert counted[303] == 1, counted
        done = next(answer for answer in answers if answer.code == 303)
        expected = "" if done.headers["Location"].endswith("?connected") else "access_denied"
        assert await Device(apps[1], device.codes).hears() == expected, "at both servers"


@within_a_minute
@pytest.mark.trap(1)
async def test_one_of_many_polls_gets_tokens(service: Service, two: Pair) -> None:
    tv, browser = await a_tv(service), await service.signed_in(two.email)
    apps = two.split(tv)
    device = await Device.begun(apps[0])
    await let_in(browser, device)
    devices = [Device(app, device.codes) for app in apps]
    answers: list[Any] = await at_once(devices[n % 2].poll() for n in range(CROWD))
    assert Counter(answer.code for answer in answers) == {200: 1, 400: CROWD - 1}
    errors = Counter(json_of(answer)["error"] for answer in answers if answer.code == 400)
    assert errors == {"invalid_grant": CROWD - 1}
    tokens = json_of(next(answer for answer in answers if answer.code == 200))
    assert (await tv.userinfo(tokens["access_token"])).code == 401, "a second poll with the code is a replay"
