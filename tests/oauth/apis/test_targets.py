"""Which resource a request is for: what it names, or what its scopes mean. RFC 8707 2."""

from __future__ import annotations

from dataclasses import replace

import pytest

from handlers.core.params import Params
from handlers.oauth.requests import check_scope
from store.apps.api_record import ApiRegistration
from store.apps.registration import Registration
from store.oauth.resources import OWN, api_of, meant_api, ordered_at, plain_names, target_of, targets_of
from store.refused import Refused
from tests.support.http.api_shop import BILLS, BOTH, ORDERS, READ, at
from tests.support.http.api_shop import OWN as OWN_SCOPES
from tests.support.lists.offenders import each

BASE = "https://id.example"
APP = Registration("shop", "A Shop", ("https://app.example/cb",), OWN_SCOPES, api_scopes=BOTH)
NOBODY = "https://nobody.example"


def wanted(scope: str, *resources: str, app: Registration = APP) -> tuple[str, str]:
    """The stored scopes and the API of a request."""
    found = check_scope(app, Params({"scope": scope, "resource": list(resources)}), BASE)
    return " ".join(found.scopes), found.api


@pytest.mark.rfc("8707 2 several")
@pytest.mark.rfc("9068 3 ambiguous")
@each(
    ("scope", "resources", "stored", "api"),
    [
        ("profile data:read", (), "profile data:read", None),
        ("profile", (BASE,), "profile", None),
        ("profile", (BASE + "/",), "profile", None),
        ("write", (), f"{ORDERS.client_id}/write", ORDERS),
        ("write read", (), f"{ORDERS.client_id}/read {ORDERS.client_id}/write", ORDERS),
        ("admin openid profile", (), f"openid profile {BILLS.client_id}/admin", BILLS),
        ("offline_access write", (), f"{ORDERS.client_id}/write", ORDERS),
        ("read", (BILLS.identifier,), f"{BILLS.client_id}/read", BILLS),
        ("read", (ORDERS.identifier + "/",), f"{ORDERS.client_id}/read", ORDERS),
        ("read data:read", (BILLS.identifier,), f"data:read {BILLS.client_id}/read", BILLS),
        ("read", (BILLS.identifier, BASE), f"{BILLS.client_id}/read", BILLS),
        ("read credits:read", (BASE, BILLS.identifier, BASE), f"credits:read {BILLS.client_id}/read", BILLS),
    ],
    ids=str,
)
def test_a_request_is_for_one_api_at_most(
    scope: str, resources: tuple[str, ...], stored: str, api: ApiRegistration | None
) -> None:
    assert wanted(scope, *resources) == (stored, "" if api is None else api.client_id)


@pytest.mark.rfc("8707 2 absolute")
@pytest.mark.rfc("8707 2 fragment")
@pytest.mark.rfc("8707 2 invalid_target")
@each(
    ("scope", "resources", "code"),
    [
        pytest.param("read", (), "invalid_target", id="two APIs have it"),
        pytest.param("write admin", (), "invalid_target", id="scopes of two APIs"),
        pytest.param("write data:read", (), "invalid_target", id="ours and an API's"),
        pytest.param("write", (ORDERS.identifier, BILLS.identifier), "invalid_target", id="two APIs named"),
        pytest.param("profile", (ORDERS.identifier,), "invalid_target", id="no scope at the API"),
        pytest.param("write", (NOBODY,), "invalid_target", id="unknown"),
        pytest.param("profile", (NOBODY,), "invalid_target", id="unknown, for a scope of ours"),
        pytest.param("write", ("orders",), "invalid_target", id="no URI"),
        pytest.param("write", (ORDERS.identifier + "#x",), "invalid_target", id="a fragment"),
        pytest.param("write", (BASE + "//",), "invalid_target", id="two slashes"),
        pytest.param("write", (ORDERS.identifier + "/tenant",), "invalid_target", id="a path below an API"),
        pytest.param("write", (BASE,), "invalid_scope", id="an API's scope at ours"),
        pytest.param("write", (BILLS.identifier,), "invalid_scope", id="another API's scope"),
        pytest.param("read nothing", (), "invalid_scope", id="an unknown name"),
        pytest.param("credits:spend write", (ORDERS.identifier,), "invalid_scope", id="ours, not registered"),
        pytest.param(at(ORDERS, "write")[0], (), "invalid_scope", id="the form in the store"),
        pytest.param("write  read", (), "invalid_scope", id="two spaces"),
    ],
)
def test_a_wrong_combination_is_refused(scope: str, resources: tuple[str, ...], code: str) -> None:
    with pytest.raises(Refused) as refused:
        wanted(scope, *resources)
    assert refused.value.code == code


def test_an_api_that_the_app_did_not_register_for_is_no_target() -> None:
    app = replace(APP, api_scopes=at(ORDERS, "read"))
    with pytest.raises(Refused, match="invalid_target"):
        wanted("read", BILLS.identifier, app=app)
    assert wanted("read", app=app) == (at(ORDERS, "read")[0], ORDERS.client_id), "only one API has it for this app"


@pytest.mark.spec("2.4")
def test_hosted_storage_needs_no_data_scope_in_a_request_to_an_api() -> None:
    app = replace(APP, hosted_storage=True)
    assert wanted("write", app=app)[1] == ORDERS.client_id
    with pytest.raises(Refused, match="invalid_scope"):
        wanted("profile", app=app)
    with pytest.raises(Refused, match="invalid_scope"):
        wanted("profile", BASE, app=app)


def test_the_target_of_a_token_request_is_one() -> None:
    assert target_of([], BASE) == ""
    assert target_of([BASE], BASE) == target_of([BASE + "/"], BASE) == target_of([BASE, BASE + "/"], BASE) == OWN
    assert target_of([ORDERS.identifier], BASE) == ORDERS.client_id
    assert targets_of([ORDERS.identifier, BASE], BASE) == {ORDERS.client_id, OWN}
    for several in ([BASE, ORDERS.identifier], [BILLS.identifier, ORDERS.identifier]):
        with pytest.raises(Refused, match="invalid_target"):
            target_of(several, BASE)


def test_of_two_apis_that_had_one_identifier_the_later_is_meant() -> None:
    later = replace(ORDERS, earlier=10)
    earlier = (*BOTH, *at(replace(ORDERS, earlier=9), "read"))
    for scopes in ((*earlier, *at(later, "read")), (*at(later, "read"), *earlier)):
        app = replace(APP, api_scopes=scopes)
        assert wanted("read", ORDERS.identifier, app=app) == (at(later, "read")[0], later.client_id)
        with pytest.raises(Refused, match="invalid_scope"):
            wanted("write", ORDERS.identifier, app=app)
        assert api_of(app, target_of([ORDERS.identifier], BASE)) == later.client_id
        assert api_of(app, target_of([BILLS.identifier], BASE)) == BILLS.client_id
    app = replace(APP, api_scopes=(*at(ORDERS, "read"), *at(later, "read")))
    assert meant_api(app, ["read"]) == later.client_id
    assert [api_of(APP, target) for target in ("", OWN, "api_unknown")] == ["", OWN, "api_unknown"]


def test_scopes_are_in_the_order_of_their_api() -> None:
    stored = ("profile", *at(ORDERS, "write", "read"))
    assert ordered_at(ORDERS, stored) == ("profile", *at(ORDERS, "read", "write"))
    with pytest.raises(Refused, match="invalid_scope"):
        ordered_at(replace(ORDERS, scopes=(READ,)), stored)
    assert plain_names([*stored, *at(BILLS, "read")]) == ("profile", "write", "read")
