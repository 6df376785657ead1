"""Where an app signs people out: `postLogoutRedirectUris`, `backchannelLogoutUri`, at every door of registration."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgpack
import pytest

from handlers.core.site import Site
from store.apps.registration import Registration
from store.errors import StartupError
from store.seed.seeding import seed
from store.wiring import Store
from tests.support.browser.own_apps import URI, client_id_of, facts, register, site
from tests.support.http.driver import CALLBACK, Service, fields_of, text_of
from tests.support.processes.operator_commands import Home

__all__ = ["facts", "site"]  # fixtures

BYE, URL = "https://app.example/bye", "https://app.example/out"
BYES = (BYE, "https://app.example/gone")
NEW = ("--name", "Web", "--redirect-uri", CALLBACK, "--scopes", "openid")
BACK, OUT = "--post-logout-redirect-uri", "--backchannel-logout-uri"


def an_app(**fields: Any) -> Registration:
    return Registration("an-app", "An App", (CALLBACK,), ("openid",), **fields)


def test_the_fields_survive_the_store_and_an_earlier_release_has_none() -> None:
    app = an_app(post_logout_redirect_uris=BYES, backchannel_logout_uri=URL)
    assert Registration.unpack(app.pack()) == app
    assert app.record()["postLogoutRedirectUris"] == [*BYES]
    assert app.record()["backchannelLogoutUri"] == URL
    row = msgpack.unpackb(app.pack())
    del row["postLogoutRedirectUris"], row["backchannelLogoutUri"]
    assert Registration.unpack(msgpack.packb(row)) == an_app()


@pytest.mark.openid("backchannel 2.2 uri")
@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"post_logout_redirect_uris": ("javascript:alert(1)",)}, id="a script"),
        pytest.param({"post_logout_redirect_uris": ("http://app.example/bye",)}, id="an address that others can read"),
        pytest.param({"post_logout_redirect_uris": (BYE + "?state=mine",)}, id="a state of its own"),
        pytest.param({"post_logout_redirect_uris": (BYE + "#top",)}, id="a fragment"),
        pytest.param({"post_logout_redirect_uris": (BYE,) * 21}, id="too many addresses"),
        pytest.param({"backchannel_logout_uri": "http://app.example/out"}, id="tokens that others can read"),
        pytest.param({"backchannel_logout_uri": URL + "#top"}, id="a fragment of a URL to post to"),
        pytest.param({"backchannel_logout_uri": "https://ada@app.example/out"}, id="a user name"),
    ],
)
def test_forbidden_addresses_never_register(fields: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        an_app(**fields).check_redirect_uris()


def test_a_change_checks_only_new_addresses_and_all_if_the_kind_of_app_changes() -> None:
    native = an_app(public=True, post_logout_redirect_uris=("com.example.app:/bye",))
    native.check_redirect_uris()
    with pytest.raises(ValueError, match="public apps"):
        an_app(post_logout_redirect_uris=native.post_logout_redirect_uris).check_redirect_uris(native)


def test_the_operator_sets_and_removes_the_addresses(home: Home) -> None:
    made = home.json("app", "create", "--client-id", "web", *NEW, BACK, BYES[0], BACK, BYES[1], OUT, URL)
    assert (made["postLogoutRedirectUris"], made["backchannelLogoutUri"]) == ([*BYES], URL)
    assert home.json("app", "show", "web")["postLogoutRedirectUris"] == [*BYES]
    assert home.json("app", "update", "web", BACK, BYE)["postLogoutRedirectUris"] == [BYE]
    gone = home.json("app", "update", "web", BACK, "", OUT, "")
    assert (gone["postLogoutRedirectUris"], gone["backchannelLogoutUri"]) == ([], "")


def test_the_operators_mistakes_change_nothing(home: Home) -> None:
    home.json("app", "create", "--client-id", "web", *NEW)
    elsewhere = ("--base-url", "https://id.example.org")
    for words, said in (
        ((BACK, "ftp://app.example/"), "redirect URI 'ftp://app.example/'"),
        ((BACK, "https://id.example.org/signout"), "this server itself"),
        ((OUT, "http://app.example/out"), "A back-channel logout URL must start with https"),
        ((OUT, "http://localhost:9000/out"), "to itself"),
    ):
        for action in (("update", "web"), ("create", *NEW)):
            status, code, message = home.error(*elsewhere, "app", *action, *words)
            assert (status, code) == (1, "invalid_request")
            assert said in message
    assert home.json("app", "show", "web")["backchannelLogoutUri"] == ""
    # Without a base URL the server is a developer's own.
    assert home.json("app", "update", "web", OUT, "http://localhost:9000/out")["backchannelLogoutUri"]


async def planted(store: Store, folder: Path, **app: Any) -> None:
    file = folder / "seed.json"
    fields = {"client_id": "web", "name": "Web", "redirect_uris": [CALLBACK], "scopes": "openid", **app}
    file.write_text(json.dumps({"apps": [fields]}))
    await seed(store, file)


@pytest.mark.gen_test
async def test_the_seed_file_sets_them_and_the_algorithm(memory_store: Store, tmp_path: Path) -> None:
    for name, value, said in (
        ("postLogoutRedirectUris", ["ftp://x"], r"postLogoutRedirectUris\[0\]"),
        ("postLogoutRedirectUris", BYE, "must be a list"),
        ("backchannelLogoutUri", "http://app.example/out", "back-channel logout URL must start with https"),
        ("idTokenAlg", "none", "idTokenAlg is one of"),
    ):
        with pytest.raises(StartupError, match=said):
            await planted(memory_store, tmp_path, **{name: value})
    given = {"postLogoutRedirectUris": [*BYES], "backchannelLogoutUri": URL, "idTokenAlg": "ES256"}
    await planted(memory_store, tmp_path, **given)
    app = await memory_store.apps.find("web")
    assert app
    assert (app.post_logout_redirect_uris, app.backchannel_logout_uri, app.id_token_alg) == (BYES, URL, "ES256")


@pytest.mark.gen_test
async def test_an_owner_sets_them_in_the_form(service: Service) -> None:
    browser = await service.confirmed()
    typed = {"post_logout_redirect_uris": "\r\n".join((*BYES, BYE)), "backchannel_logout_uri": f" {URL} "}
    client_id = client_id_of(await register(browser, **typed))
    where = f"/developer/apps/{client_id}"

    async def kept() -> tuple[tuple[str, ...], str]:
        app, _ = await service.store.apps.fresh(client_id)
        assert app is not None
        return app.post_logout_redirect_uris, app.backchannel_logout_uri

    assert await kept() == (BYES, URL)
    shown = await browser.get(f"{where}/settings")
    assert "\n".join(BYES) in shown.body.decode()
    form = {**fields_of(shown, where), "name": "Mine", "redirect_uris": URI}
    wrong = {"post_logout_redirect_uris": f"{BYE}\nnonsense", "backchannel_logout_uri": "http://app.example/out"}
    refused = await browser.send(where, "POST", form={**form, **wrong})
    assert refused.code == 400
    assert "Line 2: " in text_of(refused)
    assert "A back-channel logout URL must start with https" in text_of(refused)
    assert await kept() == (BYES, URL)
    assert (await browser.send(where, "POST", form=form)).code == 303
    assert await kept() == ((), "")


@pytest.mark.gen_test
@pytest.mark.parametrize("facts", [{}, {"here_alone": True}])
async def test_only_a_developers_own_server_posts_to_itself(service: Service, site: Site) -> None:
    browser = await service.confirmed()
    page = await register(browser, backchannel_logout_uri="http://localhost:9000/out")
    assert page.code == (200 if site.on_loopback else 400)
    assert ("can't post to itself" in text_of(page)) is not site.on_loopback
