"""Client libraries under rate limits, a store outage, a withheld scope, and a reused token."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from urllib.request import urlopen

import pytest
from authlib.integrations.base_client import OAuthError
from authlib.integrations.requests_client import OAuth2Session
from authlib.oauth2.rfc8414 import AuthorizationServerMetadata

from dev.lab.engines import wait_until
from store import keys
from store.crypto.keyring import KeyRing
from store.lifetimes import OAUTH
from tests.oauth.clients.driving import APPS, EAGER, NATIVE, SCOPE, Client, Clients, Failed, Person, seed_in
from tests.oauth.clients.table import LIBRARIES, NONE
from tests.support.http.driver import EMAIL as ADA
from tests.support.http.driver import NAME
from tests.support.http.raw_http import status_of
from tests.support.processes.engines import valkey
from tests.support.processes.processes import QUICK, Server, shared
from tests.support.store.windows import full

pytestmark = pytest.mark.slow

(AUTHLIB, *_) = LIBRARIES


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the two apps and two people."""
    seed = seed_in(tmp_path_factory.mktemp("clients"), ADA, EAGER)
    with Server("--redis-url", "memory", "--seed", seed, *QUICK) as server:
        yield server.ready()


@pytest.fixture(scope="module")
def clients(server: Server) -> Iterator[Clients]:
    """The libraries, configured for the server."""
    made = Clients(server.url)
    yield made
    made.close()


def test_every_library_reports_rate_limits(tmp_path: Path) -> None:
    with valkey() as engine, engine.client() as store, ExitStack() as stack:
        options = ("--redis-url", engine.url, "--seed", seed_in(tmp_path, EAGER), *QUICK)
        server = stack.enter_context(shared(KeyRing.generate(1), *options)).ready()
        clients = stack.enter_context(closing(Clients(server.url)))
        eager = Person(server.url, EAGER)
        for library in LIBRARIES:
            client = stack.enter_context(clients.of(library, NONE))
            callback = eager.decides(client.begin())
            (window,) = store.scan_iter(keys.limit("*", OAUTH.name))
            store.set(window, full(OAUTH.limit))
            with pytest.raises(Failed) as refused:
                client.finish(callback)
            assert refused.value.code == "rate_limited", library.name
            store.delete(window)


def test_an_authlib_session_with_a_scope_requests_all_of_it_again(clients: Clients, server: Server) -> None:
    with clients.of(AUTHLIB, NONE) as client:
        client.finish(Person(server.url, ADA).decides(client.begin(), untick=("data:read",)))
        token = {"access_token": "old", "refresh_token": client.refresh_token(), "token_type": "Bearer"}
        session = OAuth2Session(NATIVE, scope=SCOPE, token=token, token_endpoint=f"{server.url}/api/oauth/token")
        with pytest.raises(OAuthError) as refused:
            session.refresh_token()
        assert refused.value.error == "invalid_scope"
        client.refresh()  # a check that failed has used nothing up


@pytest.mark.spec("4.3")
def test_authlib_validates_the_metadata(server: Server) -> None:
    with urlopen(f"{server.url}/.well-known/oauth-authorization-server") as answer:  # noqa: S310  # our own server
        found = answer.read().decode()
    # What it checks first is https, which a server on localhost has not.
    AuthorizationServerMetadata(json.loads(found.replace("http://", "https://"))).validate()


UNREAD = {"@auth/core": "keeps the session"}
"""What an app learns from a 503 instead of the code."""


def test_every_librarys_error_for_a_store_outage(tmp_path: Path) -> None:
    ring = KeyRing.generate(1)
    with valkey(append_only=True) as engine, ExitStack() as stack:
        options = ("--redis-url", engine.url, "--redis-timeout", "1", "--seed", seed_in(tmp_path, EAGER), *QUICK)
        server = stack.enter_context(shared(ring, *options)).ready()
        clients = stack.enter_context(closing(Clients(server.url)))
        eager = Person(server.url, EAGER)
        signed_in = {one.name: stack.enter_context(clients.of(one, NONE)) for one in LIBRARIES}
        for client in signed_in.values():
            client.finish(eager.decides(client.begin()))
        engine.stop()
        learnt = {name: _learnt(client) for name, client in signed_in.items()}
        assert learnt == {one.name: UNREAD.get(one.name, "temporarily_unavailable") for one in LIBRARIES}
        engine.start()
        wait_until(lambda: status_of(server.port, "/readyz") == 200)
        for client in signed_in.values():
            client.refresh()  # nothing was used up


def _learnt(client: Client) -> str | None:
    before = client.refresh_token()
    try:
        client.refresh()
    except Failed as refused:
        return refused.code
    assert client.refresh_token() == before
    return "keeps the session"


@pytest.mark.spec("3.1")
@pytest.mark.parametrize("seconds", [0, 60])
def test_every_librarys_outcome_of_two_concurrent_refreshes(seconds: int, tmp_path: Path) -> None:
    """Two processes of an app that cannot lock each other out, by an app's `refreshRetrySeconds`."""
    apps = [{**app, "refreshRetrySeconds": seconds} for app in APPS]
    seed = seed_in(tmp_path, EAGER, apps=apps)
    with ExitStack() as stack:
        server = stack.enter_context(Server("--redis-url", "memory", "--seed", seed, *QUICK)).ready()
        clients = stack.enter_context(closing(Clients(server.url)))
        with clients.of(AUTHLIB, NONE) as client:
            client.finish(Person(server.url, EAGER).decides(client.begin()))
            token = {"access_token": "old", "refresh_token": client.refresh_token(), "token_type": "Bearer"}
            other = OAuth2Session(NATIVE, token=token, token_endpoint=f"{server.url}/api/oauth/token")
            client.refresh()
            if seconds:
                assert other.refresh_token()["refresh_token"] == client.refresh_token()
                assert client.userinfo()["name"] == NAME
                return
            with pytest.raises(OAuthError) as refused:
                other.refresh_token()
            assert refused.value.error == "invalid_grant"
            with pytest.raises(Failed) as dead:
                client.userinfo()
            assert dead.value.code == "invalid_token"
