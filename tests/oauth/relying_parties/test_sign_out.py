"""Programs that others wrote sign a person out here, and hear when a session ends here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from dev.lab.engines import wait_until
from dev.lab.ports import free_port
from tests.oauth.clients.driving import SECRET, seed_in
from tests.oauth.relying_parties.sites import SITES, Client, Site
from tests.oauth.relying_parties.test_sites import CLIENT, Visit
from tests.support.http.driver import EMAIL
from tests.support.processes.processes import QUICK, Server

BY_NAME = {site.name: site for site in SITES}


@contextmanager
def signed_in(site: Site, directory: Path, back: str, heard: str) -> Iterator[tuple[str, Server, Visit]]:
    """The address of the site, the server, and a person who is signed in to both. `back` and `heard`: the path to which
    people return after signing out, and the one of the back-channel."""
    port = free_port()
    here = f"http://127.0.0.1:{port}"
    app: dict[str, Any] = {"client_id": CLIENT, "client_secret": SECRET, "name": "Wiki", "scopes": "openid profile"}
    app |= {"redirect_uris": [f"{here}{site.callback}"], "postLogoutRedirectUris": [here + back]}
    app |= {"backchannelLogoutUri": here + heard} if heard else {}
    seed = seed_in(directory, EMAIL, apps=[app])
    with Server("--redis-url", "memory", "--seed", seed, *QUICK) as server:
        server.ready()
        with site.run(Client(server.url, CLIENT, SECRET), port) as address:
            visit = Visit()
            assert visit.enter(address).url.startswith(f"{address}/private")
            assert visit.get(f"{server.url}/account").url == f"{server.url}/account"
            yield address, server, visit


@pytest.mark.parametrize(
    ("name", "path", "back"),
    [
        ("Authlib", "/logout", "/bye"),
        ("openid-client-express", "/logout", "/bye"),
        ("openid-client-passport", "/logout", "/bye"),
        ("auth-express", "/logout", "/bye"),
        ("express-openid-connect", "/logout", ""),
        ("mod_auth_openidc", "/private/callback?logout=http%3A%2F%2F127.0.0.1%3A{port}%2Fbye", "/bye"),
    ],
)
def test_a_program_signs_a_person_out_here_too(name: str, path: str, back: str, tmp_path: Path) -> None:
    with signed_in(BY_NAME[name], tmp_path, back, "") as (address, server, visit):
        page = visit.get(address + path.format(port=address.rpartition(":")[2]))
        # The browser came back to the site by way of the end session endpoint, without a page.
        ways = [answer.url for answer in page.history]
        assert any(way.startswith(f"{server.url}/oauth/logout?") for way in ways), ways
        assert page.url.partition("?")[0].rstrip("/") == address + back
        assert "/signin" in visit.get(f"{server.url}/account").url
        assert "/signin" in visit.get(f"{address}/private").url


@pytest.mark.parametrize(
    ("name", "path"),
    [
        ("mod_auth_openidc", "/private/callback?logout=backchannel"),
        ("express-openid-connect", "/backchannel-logout"),
        ("Authlib", "/backchannel-logout"),
    ],
)
def test_a_program_hears_that_the_session_has_ended(name: str, path: str, tmp_path: Path) -> None:
    """The program checks the logout token itself: nothing signs the person out of it but that."""
    with signed_in(BY_NAME[name], tmp_path, "/bye", path) as (address, server, visit):
        page = visit.get(f"{server.url}/account")
        visit.submit(page, "/signout")
        wait_until(lambda: "/signin" in visit.get(f"{address}/private").url)
