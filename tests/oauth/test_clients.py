"""The client libraries that apps use, unmodified, over HTTP with a server process. docs/clients.md shows their code."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import parse_qs, parse_qsl, urlencode, urlsplit

import pytest

from dev.lab.engines import wait_until
from tests.oauth.clients import document
from tests.oauth.clients.driving import SCOPE, Client, Clients, Failed, Person, email_of, seed_in
from tests.oauth.clients.table import CAPABILITIES, LIBRARIES, NONE, Library
from tests.support.http.driver import NAME
from tests.support.http.raw_http import status_of
from tests.support.processes.processes import QUICK, ROOT, Server

TESTED: set[str] = set()


def by_every_library(*capabilities: str) -> pytest.MarkDecorator:
    """The test proves these columns of the table."""
    TESTED.update(capabilities)
    return pytest.mark.parametrize("library", [pytest.param(one, id=one.name) for one in LIBRARIES])


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with the two apps, a person for each library."""
    seed = seed_in(tmp_path_factory.mktemp("clients"), *map(email_of, LIBRARIES))
    with Server("--redis-url", "memory", "--seed", seed, *QUICK) as server:
        yield server.ready()


@pytest.fixture(scope="module")
def clients(server: Server) -> Iterator[Clients]:
    """The libraries, configured for the server."""
    made = Clients(server.url)
    yield made
    made.close()


_PEOPLE: dict[str, Person] = {}


@pytest.fixture
def person(server: Server, library: Library) -> Person:
    """The person for the library, signed in once: an address may try at most 20 times a minute."""
    if library.name not in _PEOPLE:
        _PEOPLE[library.name] = Person(server.url, email_of(library))
    return _PEOPLE[library.name]


@contextmanager
def signed_in(library: Library, clients: Clients, person: Person, method: str | None = None) -> Iterator[Client]:
    """The library with the person's tokens."""
    with clients.of(library, method or library.methods[0]) as client:
        client.finish(person.decides(client.begin()))
        yield client


_MARKS = itertools.count()


def exchanges(server: Server) -> int:
    """Requests to the token endpoint so far. The log is written after the answer, one request after the other."""
    mark = f"/mark-{next(_MARKS)}"
    assert status_of(server.port, mark) == 404
    wait_until(lambda: mark in server.log)
    return server.log.count("POST /api/oauth/token ")


EVERY_WAY = [pytest.param(one, how, id=f"{one.name}-{how}") for one in LIBRARIES for how in one.methods]
TESTED |= {"discovery", "exchange", "userinfo", "refresh", "revocation"}


@pytest.mark.parametrize(("library", "method"), EVERY_WAY)
@pytest.mark.spec("5.1")
def test_from_discovery_to_revocation(library: Library, method: str, clients: Clients, person: Person) -> None:
    with signed_in(library, clients, person, method) as client:
        found = client.userinfo()
        assert (found["name"], found["email"]) == (NAME, email_of(library))
        assert len(found["sub"]) == 32
        first = client.refresh_token()
        client.refresh()
        assert client.refresh_token() != first
        assert client.userinfo() == found
        client.revoke()
        # Errors: a token that is dead.
        with pytest.raises(Failed) as refused:
            client.userinfo()
        assert refused.value.code == "invalid_token"


@by_every_library("pkce")
@pytest.mark.spec("5.2")
def test_a_client_sends_a_challenge_and_a_fresh_state(library: Library, clients: Clients, person: Person) -> None:
    with clients.of(library, NONE) as client:
        first, second = (parse_qs(urlsplit(client.begin()).query) for _ in range(2))
        assert first["code_challenge_method"] == ["S256"]
        for name in ("code_challenge", "state"):
            assert len(first[name][0]) >= 22
            assert first[name] != second[name]
        assert first["scope"] == [SCOPE]


@by_every_library("iss")
@pytest.mark.spec("5.3")
@pytest.mark.parametrize("decision", ["allow", "deny"])
@pytest.mark.parametrize("name", ["iss", "state"])
def test_a_client_refuses_an_answer_with_another_state_or_issuer(
    library: Library, name: str, decision: str, clients: Clients, server: Server, person: Person
) -> None:
    with clients.of(library, library.methods[0]) as client:
        callback = person.decides(client.begin(), decision)
        (right,) = parse_qs(urlsplit(callback).query)[name]
        before = exchanges(server)
        with pytest.raises(Failed) as refused:
            client.finish(changed(callback, name, right + "x"))
        assert exchanges(server) == before
        # Passport takes a "no" of anybody for one.
        assert refused.value.code != "access_denied" or (library.name, name) == ("passport-oauth2", "state")


@by_every_library("iss")
@pytest.mark.spec("5.3")
def test_a_client_accepts_an_answer_once(library: Library, clients: Clients, server: Server, person: Person) -> None:
    with clients.of(library, library.methods[0]) as client:
        callback = person.decides(client.begin())
        client.finish(callback)
        before = exchanges(server)
        with pytest.raises(Failed):
            client.finish(callback)
        assert exchanges(server) == before


@by_every_library("iss", "discovery")
def test_a_client_refuses_another_issuers_metadata(library: Library, server: Server, person: Person) -> None:
    """The document that 127.0.0.1 gives is that of localhost (RFC 8414 3.3)."""
    assert server.here != server.url
    before = exchanges(server)
    other = Clients(server.here)
    with pytest.raises(Failed), closing(other), other.of(library, library.methods[0]) as client:
        client.finish(person.decides(client.begin()))
    assert exchanges(server) == before


def changed(callback: str, name: str, value: str) -> str:
    """The address with another parameter value."""
    parts = urlsplit(callback)
    return parts._replace(query=urlencode({**dict(parse_qsl(parts.query)), name: value})).geturl()


@by_every_library("errors")
@pytest.mark.spec("7")
def test_a_client_reports_a_wrong_code(library: Library, clients: Clients, server: Server, person: Person) -> None:
    with clients.of(library, library.methods[0]) as client:
        callback = person.decides(client.begin())
        with pytest.raises(Failed) as refused:
            client.finish(changed(callback, "code", "lk_ac_invented"))
        assert refused.value.code == "invalid_grant"


@by_every_library("errors")
def test_a_client_reports_a_denial(library: Library, clients: Clients, person: Person) -> None:
    with clients.of(library, NONE) as client:
        with pytest.raises(Failed) as refused:
            client.finish(person.decides(client.begin(), "deny"))
        assert refused.value.code == "access_denied"


@pytest.mark.spec("5.1")
@pytest.mark.parametrize(("library", "method"), [one for one in EVERY_WAY if one.values[1] != NONE])
def test_a_client_reports_a_wrong_secret(library: Library, method: str, clients: Clients, person: Person) -> None:
    with clients.of(library, method, secret="w" * 43) as client:
        callback = person.decides(client.begin())
        with pytest.raises(Failed) as refused:
            client.finish(callback)
        assert refused.value.code == "invalid_client"


@by_every_library("automatic")
@pytest.mark.spec("3.1")
def test_a_client_refreshes_an_expired_access_token_once(
    library: Library, clients: Clients, server: Server, person: Person
) -> None:
    with signed_in(library, clients, person) as client:
        before, first = exchanges(server), client.refresh_token()
        client.expire()
        found = client.together(5)
        assert [one["sub"] for one in found] == [found[0]["sub"]] * 5
        assert exchanges(server) == before + 1
        # The new refresh token was kept: the old one would end everything.
        assert client.refresh_token() != first
        client.refresh()
        assert client.userinfo()["sub"] == found[0]["sub"]


@by_every_library("refresh")
def test_a_client_accepts_fewer_scopes(library: Library, clients: Clients, person: Person) -> None:
    with clients.of(library, NONE) as client:
        client.finish(person.decides(client.begin(), untick=("data:read",)))
        client.refresh()
        assert client.userinfo()["name"] == NAME


def test_every_column_of_the_table_is_tested() -> None:
    assert set(CAPABILITIES) == TESTED


def test_the_documents_contain_the_tested_code() -> None:
    shown = [file.read_text("utf-8") for file in document.DOCUMENTS]
    assert [document.renewed(text) for text in shown] == shown, "make docs writes these pages anew"
    for library in LIBRARIES:
        assert f"<!-- from {library.path.relative_to(ROOT)} -->" in shown[0]


@pytest.mark.parametrize("page", [pytest.param(page, id=page.stem) for page in document.DOCUMENTS])
def test_the_python_code_of_the_documents_runs_when_pasted(page: Path) -> None:
    """The lines that a page shows import all that they use."""
    names = re.findall(r"^<!-- from (tests/\S+\.py) -->", page.read_text("utf-8"), re.MULTILINE)
    assert names
    pasted: dict[str, object] = {"__name__": __name__}
    if page.stem == "clients":  # the examples there share the first one
        exec(document.shown_of(ROOT / names.pop(0)), pasted)  # noqa: S102  # it is our own document
    for name in names:
        exec(document.shown_of(ROOT / name), dict(pasted))  # noqa: S102  # our own as well
