"""The seed file adds what is missing, keeps what exists, and reports mistakes before any write."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from store import keys
from store.apps.registration import Registration
from store.errors import StartupError
from store.seed.seeding import SeedReport, seed
from store.wiring import Store
from tests.support.lists.offenders import each
from tests.support.store.world import every_key

SECRET = "s3cret-of_the-web-app-0123456789"
PASSWORD = "correct horse battery"
WEB: dict[str, Any] = {
    "client_id": "web",
    "client_secret": SECRET,
    "name": "Web",
    "redirect_uris": ["https://web.example/cb"],
    "scopes": "data:read profile",
}
ADA: dict[str, Any] = {"email": "Ada@Example.com", "name": "Ada", "password": PASSWORD, "groups": ["staff", "admins"]}
ORDERS: dict[str, Any] = {
    "identifier": "https://orders.example",
    "name": "Orders",
    "client_secret": SECRET,
    "scopes": [{"name": "orders:read", "title": "See your orders", "care": True}, "orders:write"],
}
KEY = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}
BY_KEY: dict[str, Any] = {**WEB, "authMethod": "private_key_jwt", "jwks": {"keys": [KEY]}}
del BY_KEY["client_secret"]
Write = Callable[[object], Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Writes the seed file: text unchanged, anything else as JSON."""

    def write_one(content: object) -> Path:
        path = tmp_path / "seed.json"
        path.write_text(content if isinstance(content, str) else json.dumps(content), "utf-8")
        return path

    return write_one


@pytest.mark.gen_test
async def test_seeding_creates_apps_and_people_as_the_file_says(memory_store: Store, write: Write) -> None:
    native = {
        "client_id": "native",
        "name": "Native",
        "redirect_uris": ["com.example.app:/cb"],
        "scopes": ["profile", "data:write"],
        "public": True,
        "pkceRequired": True,
        "hostedStorage": True,
        "issInResponse": False,
        "refreshRetrySeconds": 10,
        "idTokenAlg": "ES256",
        "subjectType": "pairwise",
        "homepage": "https://native.example",
    }
    progress: list[tuple[int, ...]] = []
    path = write({"apps": [WEB, native], "users": [ADA]})
    report = await seed(memory_store, path, progress=lambda *done: progress.append(done))
    assert report == SeedReport(("web", "native"), ("ada@example.com",))
    assert progress == [(1, 3), (2, 3), (3, 3)]

    web = await memory_store.apps.find("web")
    assert web is not None
    assert web.secret_matches(SECRET)
    assert len(web.secrets) == 1
    assert (web.scopes, web.redirect_uris) == (("profile", "data:read"), ("https://web.example/cb",))
    assert (web.public, web.pkce_required, web.iss_in_response, web.active) == (False, False, True, True)
    found = await memory_store.apps.find("native")
    assert found is not None
    assert not found.secrets
    assert {name: found.record()[name] for name in native} == native
    credentials = await memory_store.people.verify("ada@example.com", PASSWORD)
    assert credentials is not None
    assert credentials.active
    ada = await memory_store.operator.find("ada@example.com")
    assert ada.email_verified
    assert ada.groups == ("admins", "staff")


@pytest.mark.gen_test
async def test_seeding_adds_only_what_is_missing(memory_store: Store, write: Write) -> None:
    await seed(memory_store, write({"apps": [WEB], "users": [ADA]}))
    await memory_store.apps.update("web", name="Renamed", status="disabled")
    changed = {**WEB, "name": "Again", "client_secret": SECRET[::-1], "scopes": "apps:read"}
    other = {**ADA, "password": "another password entirely", "name": "Other"}
    bob = {"email": "bob@example.com", "name": "Bob", "password": PASSWORD}
    report = await seed(memory_store, write({"apps": [changed], "users": [other, bob]}))
    assert report == SeedReport((), ("bob@example.com",))
    web = await memory_store.apps.find("web")
    assert web is not None
    assert (web.name, web.status, web.scopes) == ("Renamed", "disabled", ("profile", "data:read"))
    assert web.secret_matches(SECRET)
    assert not web.secret_matches(SECRET[::-1])
    assert await memory_store.people.verify("ada@example.com", PASSWORD)
    assert await seed(memory_store, write({"apps": [changed], "users": [other, bob]})) == SeedReport((), ())


@pytest.mark.gen_test
async def test_a_common_password_is_refused_only_for_a_new_account(memory_store: Store, write: Write) -> None:
    weak = {**ADA, "password": "football2024"}
    with pytest.raises(StartupError, match=r"users\[1\].password: That password is too easy to guess"):
        await seed(memory_store, write({"apps": [WEB], "users": [{**ADA, "email": "bob@example.com"}, weak]}))
    assert await memory_store.apps.find("web") is None, "nothing is written"
    await seed(memory_store, write({"users": [ADA]}))
    assert await seed(memory_store, write({"users": [weak]})) == SeedReport((), ())
    assert await memory_store.people.verify("ada@example.com", PASSWORD)


async def paid(store: Store, email: str) -> tuple[int, list[str]]:
    """The balance, and the reasons of its entries."""
    account = await store.credits.show((await store.operator.find(email)).user)
    return account.paid, [entry.reason for entry in account.entries]


@pytest.mark.gen_test
async def test_a_file_from_before_a_rule_about_client_ids_still_starts(memory_store: Store, write: Write) -> None:
    old = "0123456789abcdef" * 2
    await memory_store.apps._save(old, b"", Registration(old, "Old", ("https://web.example/cb",), ("profile",)).pack())
    assert await seed(memory_store, write({"apps": [{**WEB, "client_id": old}]})) == SeedReport((), ())


@pytest.mark.gen_test
async def test_seeded_credits_are_given_once(memory_store: Store, write: Write) -> None:
    path = write({"users": [{**ADA, "credits": 5_000_000}, {**ADA, "email": "bob@example.com"}]})
    assert (await seed(memory_store, path)).credited == ("ada@example.com",)
    assert await paid(memory_store, "ada@example.com") == (5_000_000, ["First credits"])
    assert await paid(memory_store, "bob@example.com") == (0, [])
    await memory_store.operator.credit("ada@example.com", -5_000_000)
    await seed(memory_store, write({"users": [{**ADA, "credits": 7}]}))
    assert await paid(memory_store, "ada@example.com") == (0, ["", "First credits"])


@pytest.mark.gen_test
async def test_interrupted_seeding_is_completed_with_credits(memory_store: Store, write: Write) -> None:
    assert await seed(memory_store, write({"users": [ADA]})) == SeedReport((), ("ada@example.com",))
    path = write({"users": [{**ADA, "credits": 10**12}]})
    reports = await asyncio.gather(*(seed(memory_store, path) for _ in range(3)))
    assert sorted(sum((report.credited for report in reports), ())) == ["ada@example.com"]
    assert await paid(memory_store, "ada@example.com") == (10**12, ["First credits"])


@pytest.mark.gen_test
async def test_two_servers_may_seed_at_once(memory_store: Store, write: Write) -> None:
    path = write({"apps": [WEB], "users": [ADA, {**ADA, "email": "bob@example.com"}]})
    reports = await asyncio.gather(*(seed(memory_store, path) for _ in range(3)))
    assert sorted(sum((report.apps for report in reports), ())) == ["web"]
    assert sorted(sum((report.users for report in reports), ())) == ["ada@example.com", "bob@example.com"]


@pytest.mark.gen_test
async def test_seeding_waits_for_an_unfinished_account_to_expire(memory_store: Store, write: Write) -> None:
    await memory_store.client.set(keys.email("ada@example.com"), "0" * 32, px=300)
    assert (await seed(memory_store, write({"users": [ADA]}))).users == ("ada@example.com",)


@pytest.mark.gen_test
async def test_an_orphaned_address_is_taken_over(memory_store: Store, write: Write) -> None:
    await memory_store.client.set(keys.email("ada@example.com"), "0" * 32)
    assert (await seed(memory_store, write({"users": [ADA]}), patience=0)).users == ("ada@example.com",)


@pytest.mark.gen_test
async def test_a_reserved_address_is_reported(memory_store: Store, write: Write) -> None:
    await memory_store.client.set(keys.email("ada@example.com"), "0" * 32, px=60_000)
    with pytest.raises(StartupError, match=r"users\[0\]\.email: .*start again in a minute"):
        await seed(memory_store, write({"users": [ADA]}), patience=0.2)


@pytest.mark.gen_test
async def test_a_confidential_app_without_a_secret_gets_an_unknown_one(memory_store: Store, write: Write) -> None:
    await seed(memory_store, write({"apps": [{name: WEB[name] for name in WEB if name != "client_secret"}]}))
    web = await memory_store.apps.find("web")
    assert web is not None
    assert len(web.secrets) == 1
    assert not web.secret_matches("")


@pytest.mark.trap(24)
@pytest.mark.gen_test
@each(
    ("content", "message"),
    [
        pytest.param("{", "line 1, column 2: is not JSON: ", id="no JSON"),
        pytest.param("[]", "the whole: must be an object", id="a list"),
        pytest.param({"credits": []}, "credits: is unknown here; known are apis, apps, users", id="an unknown group"),
        pytest.param({"apps": {}}, "apps: must be a list", id="apps that are no list"),
        pytest.param({"apps": ["web"]}, "apps[0]: must be an object", id="an app that is no object"),
        pytest.param({"apps": [{**WEB, "secret": SECRET}]}, "apps[0].secret: is unknown here", id="a misspelt name"),
        pytest.param('{"users": [], "users": []}', "users: is given twice", id="a group twice"),
        pytest.param(
            '{"users": [{"email": "a@b.example", "name": "A", "email": "b@b.example"}]}',
            "users[0].email: is given twice",
            id="a name twice",
        ),
        pytest.param({"users": [ADA, {**ADA, "email": "ada"}]}, "users[1].email: An e-mail", id="no e-mail address"),
        pytest.param(
            {"users": [ADA, {**ADA, "email": "ada@EXAMPLE.com"}]},
            "users[1].email: is that of users[0]",
            id="one address in two spellings",
        ),
        pytest.param({"apps": [WEB, WEB]}, "apps[1].client_id: is that of apps[0]", id="one client id twice"),
        pytest.param({"users": [{**ADA, "groups": "staff"}]}, "users[0].groups: must be a list", id="groups as a text"),
        pytest.param({"users": [{**ADA, "groups": ["\n"]}]}, "users[0].groups: A group's name", id="a bad group"),
        pytest.param({"users": [{**ADA, "name": 1}]}, "users[0].name: must be a string", id="a number for a name"),
        pytest.param({"users": [{"email": "a@b.example", "name": "A"}]}, "users[0].password: is missing", id="missing"),
        pytest.param({"users": [{**ADA, "password": "short"}]}, "users[0].password: Choose", id="a bad password"),
        *(
            pytest.param(
                {"users": [{**ADA, "credits": amount}]}, f"users[0].credits: must be {progress}", id=f"{amount!r}"
            )
            for amount, progress in [
                (0, "1 to 1000000000000 micro-dollars"),
                (-5, "1 to"),
                (10**12 + 1, "1 to"),
                (5.0, "a whole number"),
                (True, "a whole number"),
                ("5", "a whole number"),
                (None, "a whole number"),
            ]
        ),
        pytest.param({"users": [{**ADA, "name": "\ud800"}]}, "users[0].name: A name", id="a lone surrogate"),
        pytest.param({"apps": [{**WEB, "client_id": "a b"}]}, "apps[0].client_id: A client_id", id="a bad client id"),
        pytest.param(
            {"apps": [{**WEB, "client_id": "0123456789abcdef" * 2}]},
            "apps[0].client_id: A client_id must not look like a person's id",
            id="a client id that could be a person's",
        ),
        pytest.param(
            {
                "apps": [
                    {**WEB, "subjectType": "pairwise", "redirect_uris": ["https://a.example/", "https://b.example/"]}
                ]
            },
            "apps[0].redirect_uris: the redirect URIs of a pairwise app have one host",
            id="several hosts of a pairwise app",
        ),
        pytest.param({"apps": [{**WEB, "subjectType": "both"}]}, "apps[0]: subjectType is public or", id="a bad type"),
        pytest.param({"apps": [{**WEB, "scopes": ["root"]}]}, "apps[0].scopes: There is no scope", id="a bad scope"),
        pytest.param({"apps": [{**WEB, "scopes": []}]}, "apps[0].scopes: A scope is", id="no scope"),
        pytest.param({"apps": [{**WEB, "scopes": "profile orders:read"}]}, "apps[0].scopes: There is no", id="no API"),
        pytest.param({"apis": [ORDERS, ORDERS]}, "apis[1].identifier: is that of apis[0]", id="one API twice"),
        pytest.param({"apis": [{**ORDERS, "scopes": "a"}]}, "apis[0].scopes: the scopes of an API are", id="no list"),
        pytest.param({"apis": [{**ORDERS, "scopes": ["openid"]}]}, "apis[0].scopes: The name openid", id="reserved"),
        pytest.param({"apis": [{**ORDERS, "identifier": "orders"}]}, "apis[0].identifier: an identifier", id="no URI"),
        pytest.param({"apis": [{**ORDERS, "tokenLifetime": 1}]}, "apis[0]: the token lifetime is 60", id="too short"),
        pytest.param(
            {"apis": [{**ORDERS, "client_secret": "x"}]}, "apis[0].client_secret: must be 32", id="bad secret"
        ),
        pytest.param({"apps": [{**WEB, "authMethod": "key"}]}, "apps[0]: authMethod is one of", id="a bad method"),
        pytest.param(
            {"apps": [{**WEB, "authMethod": "client_secret", "public": True}]},
            "apps[0]: authMethod and public contradict",
            id="two methods",
        ),
        pytest.param(
            {"apps": [{**BY_KEY, "client_secret": SECRET}]},
            "apps[0].client_secret: an app with private_key_jwt has no secret",
            id="a key and a secret",
        ),
        pytest.param(
            {"apps": [{**WEB, "jwks": {"keys": []}}]},
            "apps[0]: jwks: This key set has no usable",
            id="a set without keys",
        ),
        pytest.param(
            {"apps": [{**WEB, "jwks": {"keys": [{**KEY, "d": "x"}]}}]},
            "apps[0]: jwks: This key set has a private",
            id="a private key",
        ),
        pytest.param({"apps": [{**WEB, "public": "yes"}]}, "apps[0].public: must be true or false", id="no boolean"),
        pytest.param(
            {"apps": [{**WEB, "refreshRetrySeconds": True}]},
            "apps[0].refreshRetrySeconds: must be a whole number",
            id="a boolean for a number",
        ),
        pytest.param(
            {"apps": [{**WEB, "refreshRetrySeconds": 61}]},
            "apps[0]: refreshRetrySeconds is 0 to 60",
            id="a number out of range",
        ),
        pytest.param(
            {"apps": [{**WEB, "redirect_uris": ["https://a.example/cb", "http://a.example/cb"]}]},
            "apps[0].redirect_uris[1]: http is for loopback",
            id="a bad redirect URI",
        ),
        pytest.param(
            {"apps": [{**WEB, "redirect_uris": "https://a.example/cb"}]},
            "apps[0].redirect_uris: must be a list of strings",
            id="redirect URIs that are no list",
        ),
        pytest.param(
            {"apps": [{**WEB, "redirect_uris": [1]}]},
            "apps[0].redirect_uris[0]: must be a string",
            id="a redirect URI that is no string",
        ),
        pytest.param({"apps": [{**WEB, "homepage": "javascript:x"}]}, "apps[0]: homepage must be", id="a bad homepage"),
        pytest.param(
            {"apps": [{**WEB, "hostedStorage": True, "scopes": "profile"}]},
            "apps[0]: an app with hosted storage",
            id="hosted storage without a scope for it",
        ),
        pytest.param(
            {"apps": [{**WEB, "public": True}]}, "apps[0].client_secret: a public app", id="a public app's secret"
        ),
        pytest.param(
            {"apps": [{**WEB, "client_secret": SECRET[:31]}]},
            "apps[0].client_secret: must be 32 to 256 characters",
            id="a secret that is too short",
        ),
        pytest.param(
            {"apps": [{**WEB, "client_secret": SECRET + "+"}]},
            "apps[0].client_secret: must be 32 to 256 characters",
            id="a secret with a character that Basic would escape",
        ),
    ],
)
async def test_a_bad_seed_file_is_refused_with_its_place_before_any_write(
    memory_store: Store, write: Write, content: Any, message: str
) -> None:
    if isinstance(content, dict) and isinstance(apps := content.get("apps", []), list):
        # Something good stands there too, which must not be written either.
        content = {**content, "apps": [*apps, {**WEB, "client_id": "good"}]}
    path = write(content)
    with pytest.raises(StartupError) as caught:
        await seed(memory_store, path)
    assert str(caught.value).startswith(f"the seed file {path}: {message}")
    assert SECRET not in str(caught.value)
    assert PASSWORD not in str(caught.value)
    assert await every_key(memory_store.client) == []


@pytest.mark.gen_test
@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "cannot be read: No such file", id="missing"),
        pytest.param(b"\xff", "is not UTF-8", id="not text"),
        pytest.param(b"[" * 100_000, "nested too deep", id="nested without end"),
        pytest.param(b"1" * 10_000, "a number too long", id="a number without end"),
    ],
)
async def test_an_unreadable_seed_file_is_refused(
    memory_store: Store, tmp_path: Path, content: bytes | None, message: str
) -> None:
    path = tmp_path / "seed.json"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(StartupError, match=message):
        await seed(memory_store, path)


@pytest.mark.gen_test
async def test_an_empty_seed_file_changes_nothing(memory_store: Store, write: Write) -> None:
    assert await seed(memory_store, write({})) == SeedReport((), ())
