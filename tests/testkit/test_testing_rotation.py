"""Travels past rotations of the signing keys: each key signs and verifies as long as on a server that ran all along."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import httpx
import pytest
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from latchkey.testing import Latchkey, Person
from store.crypto.jose.private import OURS
from store.crypto.signing_rows import SigningRow
from store.crypto.signing_store import KeySet as StoredKeys
from store.lifetimes import DAY
from testkit.clock import next_rotation
from tests.support.processes.processes import QUICK, Server

ALGORITHMS = {"ES256", "EdDSA", "RS256"}


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server that tests drive."""
    with Server("--redis-url=memory", *QUICK) as running:
        yield running.ready()


@pytest.fixture
def latchkey(server: Server) -> Latchkey:
    """The client that drives it; its store is empty."""
    made = Latchkey(server.url)
    made.reset()
    return made


def kids(latchkey: Latchkey) -> set[str]:
    """The names of the published keys."""
    return {key["kid"] for key in latchkey.jwks()["keys"]}


class Site:
    """An app that signs a person in, and an API that checks tokens."""

    def __init__(self, latchkey: Latchkey) -> None:
        self.latchkey = latchkey
        self.api = latchkey.api(scopes="orders:read", token_format="jwt", token_lifetime=3600)
        self.app = latchkey.app(scopes="openid orders:read", id_token_alg="ES256")
        self.ada: Person = latchkey.person()

    def tokens(self) -> tuple[str, str]:
        """An ID token and an access token."""
        token = self.latchkey.token(self.ada, self.app)
        assert token.id_token
        return token.id_token, token.access_token

    def kid(self, text: str) -> str:
        """The name of the key that signed; the signature is verified with the published keys."""
        keys = KeySet.import_key_set(self.latchkey.jwks())
        return str(jwt.decode(text, keys, algorithms=["ES256"]).header["kid"])

    def active(self, text: str) -> bool:
        """Whether the API is told that a token is live."""
        form = {"token": text, "client_id": self.api.client_id, "client_secret": self.api.client_secret}
        return bool(httpx.post(f"{self.latchkey.url}/api/oauth/introspect", data=form).json()["active"])

    def hinted(self, id_token: str) -> str | None:
        """The error of a silent sign-in with this hint."""
        query = {
            "response_type": "code",
            "client_id": self.app.client_id,
            "redirect_uri": self.app.redirect_uri,
            "scope": "openid",
            "state": "a-state",
            "prompt": "none",
            "id_token_hint": id_token,
        }
        return self.latchkey.consents(f"{self.latchkey.url}/oauth/authorize?{httpx.QueryParams(query)}").error


def test_a_successor_is_published_for_a_day_before_it_signs(latchkey: Latchkey) -> None:
    site = Site(latchkey)
    id_token, access_token = site.tokens()
    first, before = site.kid(id_token), kids(latchkey)
    assert site.kid(access_token) == first
    latchkey.rotate_keys()
    assert kids(latchkey) > before
    assert len(kids(latchkey)) == 6
    latchkey.travel(hours=23, minutes=30)
    id_token, access_token = site.tokens()
    assert site.kid(id_token) == first
    latchkey.travel(minutes=31)
    later = site.tokens()[0]
    assert site.kid(later) in kids(latchkey) - before
    # The tokens of the key before live for half an hour more, and it is published until then.
    assert site.kid(id_token) == first
    assert site.active(access_token)
    latchkey.travel(minutes=30)
    assert not site.active(access_token)
    latchkey.travel(hours=1)
    assert kids(latchkey).isdisjoint(before)
    with pytest.raises((JoseError, ValueError)):
        site.kid(id_token)
    # As a hint an ID token counts as long as a session may live.
    assert site.hinted(id_token) is None
    latchkey.travel(days=29)
    assert site.hinted(id_token) is None
    latchkey.travel(days=2)
    assert site.hinted(id_token) == "invalid_request"
    assert site.hinted(later) is None, "its key still signs"


def test_a_rotation_at_once_keeps_the_tokens_of_the_key_before(latchkey: Latchkey) -> None:
    site = Site(latchkey)
    id_token, access_token = site.tokens()
    latchkey.rotate_keys(now=True)
    renewed, _ = site.tokens()
    assert site.kid(renewed) != site.kid(id_token)
    assert site.active(access_token)
    assert site.hinted(id_token) is None


def test_keys_grow_old_on_a_travel(latchkey: Latchkey) -> None:
    site = Site(latchkey)
    id_token, _ = site.tokens()
    first = kids(latchkey)
    latchkey.travel(days=89, hours=23)
    assert kids(latchkey) == first
    latchkey.travel(hours=1, seconds=5)
    published = kids(latchkey)
    assert published > first
    assert len(published) == 6
    assert site.kid(site.tokens()[0]) in first
    latchkey.travel(days=1)
    assert site.kid(site.tokens()[0]) in published - first
    latchkey.travel(hours=2)
    assert kids(latchkey) == published - first
    assert site.hinted(id_token) is None


def test_a_travel_to_a_day_with_a_successor_ends_with_both(latchkey: Latchkey) -> None:
    site = Site(latchkey)
    first = kids(latchkey)
    latchkey.travel(days=90.5)
    assert len(kids(latchkey)) == 6
    assert site.kid(site.tokens()[0]) in first
    latchkey.travel(days=91)
    assert len(kids(latchkey)) == 6
    assert kids(latchkey).isdisjoint(first)


@pytest.mark.parametrize(("days", "until_next"), [(91.5, 89.5), (400, 54), (3650, 80)])
def test_one_long_travel_leaves_the_keys_of_a_server_that_ran_all_along(
    latchkey: Latchkey, days: float, until_next: float
) -> None:
    site = Site(latchkey)
    first = kids(latchkey)
    latchkey.travel(days=days)
    found = kids(latchkey)
    assert len(found) == 3
    assert found.isdisjoint(first)
    assert site.kid(site.tokens()[0]) in found
    # Every key was made 91 days after the one before, so the next one is due on a known day.
    latchkey.travel(days=until_next - 0.01)
    assert kids(latchkey) == found
    latchkey.travel(days=0.02)
    assert len(kids(latchkey)) == 6


def test_a_reset_ends_the_keys(latchkey: Latchkey) -> None:
    before = kids(latchkey)
    assert len(before) == 3
    latchkey.rotate_keys()
    latchkey.reset()
    assert kids(latchkey).isdisjoint(before)
    assert len(kids(latchkey)) == 3


def row(first_use: int, algorithm: str = "ES256") -> SigningRow:
    return SigningRow(f"kid-{first_use}", algorithm, first_use, first_use, 0, "", b"{}", b"sealed")


@pytest.mark.parametrize(
    ("days", "rows", "until", "expected"),
    [
        pytest.param(90, [], 1000, None, id="no key at all"),
        pytest.param(90, [row(0)], 89, None, id="a young key"),
        pytest.param(90, [row(0)], 90, 90, id="a key that grows old"),
        pytest.param(0, [row(0)], 1000, None, id="keys that never grow old"),
        pytest.param(90, [row(-100)], 50, 0, id="a key that is old already"),
        pytest.param(90, [row(0), row(10)], 9, None, id="a successor that waits beyond the travel"),
        pytest.param(90, [row(0), row(10)], 99, None, id="a successor that is young at the end"),
        pytest.param(90, [row(0), row(10)], 100, 100, id="a successor that grows old"),
        pytest.param(90, [row(0), row(10)], 10 + 91, 100, id="the next successor signs at the end"),
        pytest.param(90, [row(0), row(10)], 10 + 5 * 91 + 7, 10 + 4 * 91 + 90, id="only the last of many"),
        pytest.param(90, [row(0), row(-5, "RS256")], 95, 85, id="the first of two algorithms"),
    ],
)
def test_a_travel_stops_where_a_key_is_due(days: int, rows: list[SigningRow], until: int, expected: int | None) -> None:
    whole = [replace(one, created=one.created * DAY, first_use=one.first_use * DAY) for one in rows]
    found = next_rotation(StoredKeys(0, tuple(whole)), until * DAY, days)
    assert found == (None if expected is None else expected * DAY)


def test_a_travel_stops_for_every_algorithm_of_ours() -> None:
    assert set(OURS) == ALGORITHMS
