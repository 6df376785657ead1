"""A played person at the browser: requests for APIs, pushed requests, and requests that demand a sign-in."""

from __future__ import annotations

import httpx
import pytest

from latchkey.testing import Api, Latchkey, LatchkeyError
from tests.testkit.test_testing_tokens import (
    ORDERS,
    claims_of,
    exchanged,
    latchkey,
    orders,
    request_of,
    server,
)

__all__ = ["latchkey", "orders", "server"]  # fixtures


def test_a_played_person_allows_scopes_of_an_api(latchkey: Latchkey, orders: Api) -> None:
    app, ada = latchkey.app(scopes="openid data:read orders:read orders:write"), latchkey.person()
    wanted = request_of(latchkey, app, "openid orders:read orders:write", resource=ORDERS)
    back = latchkey.consents(wanted, person=ada)
    tokens = exchanged(latchkey, app, back.code)
    assert (tokens["scope"], tokens["expires_in"]) == ("orders:read orders:write", 600)
    # Without `resource` too: the scopes are those of one API.
    narrower = latchkey.consents(request_of(latchkey, app, "orders:read orders:write"), scopes="orders:write")
    assert exchanged(latchkey, app, narrower.code)["scope"] == "orders:write"
    assert latchkey.consents(request_of(latchkey, app, "data:read orders:read")).error == "invalid_target"
    latchkey.consents(person=ada, scopes=["orders:read"])
    location = httpx.get(wanted).headers["Location"]
    assert exchanged(latchkey, app, httpx.URL(location).params["code"])["scope"] == "orders:read"
    with pytest.raises(LatchkeyError, match="There is no scope orders:reed"):
        latchkey.consents(person=ada, scopes="orders:reed")


def test_a_played_person_answers_a_pushed_request_once(latchkey: Latchkey, orders: Api) -> None:
    app = latchkey.app(scopes="openid orders:read", require_pushed=True)
    assert latchkey.consents(request_of(latchkey, app, "orders:read")).error == "invalid_request"
    query = dict(httpx.URL(request_of(latchkey, app, "openid orders:read", resource=ORDERS)).params)
    form = {**query, "client_secret": app.client_secret or ""}
    latchkey.consents()
    for _ in range(2):  # the second time consent is remembered
        pushed = httpx.post(f"{latchkey.url}/api/oauth/par", data=form).raise_for_status().json()
        short = httpx.QueryParams({"client_id": app.client_id, "request_uri": pushed["request_uri"]})
        wanted = f"{latchkey.url}/oauth/authorize?{short}"
        with httpx.Client() as browser:
            location = browser.get(wanted).headers["Location"]
            assert exchanged(latchkey, app, httpx.URL(location).params["code"])["scope"] == "orders:read"
            assert browser.get(wanted).status_code == 400


@pytest.mark.parametrize("answer", ["consents", "denies"])
def test_an_answer_that_the_browser_posts_is_read_too(latchkey: Latchkey, answer: str) -> None:
    app, ada = latchkey.app(scopes="openid"), latchkey.person()
    state = '<a> & "b" =\u00fc'
    wanted = request_of(latchkey, app, "openid", response_mode="form_post", state=state)
    back = getattr(latchkey, answer)(wanted, person=ada)
    assert (back.url, back.state, back.iss) == (app.redirect_uri, state, latchkey.url)
    assert back.form == back.query
    if answer == "denies":
        assert back.error == "access_denied"
    else:
        assert "id_token" in exchanged(latchkey, app, back.code)
    in_address = getattr(latchkey, answer)(request_of(latchkey, app, "openid"), person=ada)
    assert in_address.form is None


def test_a_played_person_signs_in_as_recently_as_the_request_demands(latchkey: Latchkey) -> None:
    app, ada = latchkey.app(scopes="openid"), latchkey.person()

    sids = set()

    def signed_in(**more: str) -> int:
        back = latchkey.consents(request_of(latchkey, app, "openid", **more), person=ada)
        claims = claims_of(latchkey, exchanged(latchkey, app, back.code)["id_token"], "JWT")
        sids.add(claims["sid"])
        return int(claims["auth_time"])

    first = signed_in()
    latchkey.travel(hours=1)
    assert signed_in() == first
    silent = request_of(latchkey, app, "openid", max_age="600", prompt="none")
    assert latchkey.consents(silent, person=ada).error == "login_required"
    assert signed_in(max_age="600") - first >= 3600
    latchkey.travel(minutes=5)
    assert signed_in(max_age="600") - first < 3900
    assert signed_in(prompt="login") - first >= 3900
    assert len(sids) == 1, "it is one browser"
    latchkey.signs_out(ada)
    assert signed_in() - first >= 3900
    assert len(sids) == 2
    latchkey.signs_out(ada)
    with pytest.raises(LatchkeyError, match="not signed in by a test"):
        latchkey.signs_out(ada)
