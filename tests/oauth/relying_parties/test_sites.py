"""Programs that others wrote sign a person in, told nothing but the issuer, an id and a secret."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from urllib.parse import urljoin

import pytest
import requests

from tests.oauth.clients.driving import SECRET, seed_in
from tests.oauth.relying_parties.sites import SITES, ApacheSite, Client, Site
from tests.support.http.driver import EMAIL, NAME, PASSWORD, form_fields
from tests.support.processes.processes import QUICK, Server

CLIENT = "wiki"
DECLINING = "declining@example.com"


@dataclass
class Visit:
    """A person's browser: one jar of cookies for all sites, follows redirects."""

    session: requests.Session = field(default_factory=requests.Session)

    def get(self, url: str) -> requests.Response:
        """A page."""
        return self.session.get(url, headers={"Accept": "text/html"}, timeout=20)

    def submit(self, page: requests.Response, action: str, **values: str) -> requests.Response:
        """Sends the form of a page that has this action."""
        form = {**form_fields(page.text, action), **values}
        target = urljoin(page.url, action)
        return self.session.post(target, form, headers={"Accept": "text/html"}, timeout=20)

    def enter(self, site: str, email: str = EMAIL, decision: str = "allow") -> requests.Response:
        """Goes to the private page of a site by way of Latchkey's pages, as far as they come up."""
        page = self.get(f"{site}/private")
        if "/auth/signin/latchkey" in page.text:  # Auth.js asks on a page of its own
            page = self.submit(page, f"{site}/auth/signin/latchkey")
        if "/signin?" in page.url:
            page = self.submit(page, "/signin", email=email, password=PASSWORD)
        if "/oauth/authorize?" in page.url:
            page = self.submit(page, "/api/oauth/authorize", decision=decision)
        return page


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with an app for all sites: the port of a loopback address counts for nothing."""
    callbacks = sorted({f"http://127.0.0.1{site.callback}" for site in SITES})
    app = {"client_id": CLIENT, "client_secret": SECRET, "name": "Wiki", "scopes": "openid profile"}
    seed = seed_in(tmp_path_factory.mktemp("sites"), EMAIL, DECLINING, apps=[{**app, "redirect_uris": callbacks}])
    with Server("--redis-url", "memory", "--seed", seed, *QUICK) as server:
        yield server.ready()


@pytest.mark.parametrize("site", [pytest.param(site, id=site.name) for site in SITES])
def test_a_program_signs_a_person_in_from_discovery_alone(site: Site, server: Server) -> None:
    with site.run(Client(server.url, CLIENT, SECRET)) as address:
        visit = Visit()
        page = visit.enter(address)
        assert page.status_code == 200, page.text
        assert page.url.startswith(f"{address}/private")
        if isinstance(site, ApacheSite):
            assert page.headers["X-Name"] == NAME
        else:
            assert page.json()["name"] == NAME
            assert len(page.json()["sub"]) == 32
        assert visit.get(f"{address}/private").status_code == 200, "the site has a session of its own"
        visit.session.cookies.clear()
        assert "/signin" in visit.get(f"{address}/private").url


def test_the_site_in_flask_answers_a_person_who_declines(server: Server) -> None:
    with SITES[0].run(Client(server.url, CLIENT, SECRET)) as address:
        page = Visit().enter(address, DECLINING, "deny")
        assert (page.status_code, page.json()) == (403, {"error": "access_denied"})
        # Anybody can write an address: its words are no HTML.
        page = Visit().get(f"{address}/callback?error=<script>&state=x&iss={server.url}")
        assert (page.status_code, page.headers["Content-Type"]) == (403, "application/json")
        for other in ("", "&iss=https://other.example"):
            page = Visit().get(f"{address}/callback?code=x&state=x{other}")
            assert (page.status_code, page.json()) == (400, {"error": "another issuer"})
