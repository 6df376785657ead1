"""The sector of an app: from its redirect URIs, or from a list that it names. OpenID Connect Core 8.1."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from outbound.address_policy import AddressPolicy
from outbound.fetching import Fetcher
from outbound.sector_files import check_sector
from store.apps.registration import Registration
from store.apps.sectors import SECTOR_FILE_BYTES, InvalidSector
from store.refused import Refused
from store.wiring import Store
from tests.support.http.receiver import Receiver, Reply, answering
from tests.support.lists.offenders import each
from tests.support.processes.operator_commands import Home
from tests.support.processes.proven_domain import DOMAIN, Domain
from tests.support.store.world import VISITOR, World

ONE, TWO = "https://one.example/cb", "https://two.example/cb"
JSON = "Content-Type: application/json"


def app(*uris: str, **fields: Any) -> Registration:
    """A pairwise app."""
    return Registration("app", "App", uris, ("openid",), **{"subject_type": "pairwise", **fields})


@each(
    ("uris", "sector"),
    [
        pytest.param(("https://one.example/a", "https://one.example:8443/b"), "one.example", id="two ports"),
        pytest.param(("http://127.0.0.1/cb",), "127.0.0.1", id="loopback"),
        pytest.param(("http://[::1]/cb",), "[::1]", id="IPv6"),
        pytest.param(("com.example.app:/cb", "com.example.app://x/cb"), "com.example.app:", id="a scheme"),
    ],
)
def test_the_sector_is_the_one_host_of_the_redirect_uris(uris: tuple[str, ...], sector: str) -> None:
    made = app(*uris, public=True)
    made.check_redirect_uris()
    assert made.sector == sector
    assert Registration.unpack(made.pack()).sector == sector
    assert Registration("app", "App", uris, ("openid",), public=True).sector == "", "a public subject type"


@each(
    "uris",
    [
        pytest.param((ONE, TWO), id="two hosts"),
        pytest.param((ONE, "https://www.one.example/cb"), id="a host below"),
        pytest.param((ONE, "com.example.one:/cb"), id="a host and a scheme"),
        pytest.param(("http://127.0.0.1/cb", "http://localhost/cb"), id="two names of loopback"),
    ],
)
def test_several_hosts_need_a_sector_identifier_uri(uris: tuple[str, ...]) -> None:
    with pytest.raises(InvalidSector, match="one host"):
        app(*uris, public=True).check_redirect_uris()
    named = app(*uris, public=True, sector_uri="https://sector.example:444/list.json")
    named.check_redirect_uris()
    assert named.sector == "sector.example"


@each(
    "fields",
    [
        pytest.param({"subject_type": "private"}, id="an unknown type"),
        pytest.param({"subject_type": "public", "sector_uri": "https://s.example/"}, id="a list for a public type"),
        pytest.param({"sector_uri": "http://s.example/"}, id="http"),
        pytest.param({"sector_uri": "ftp://s.example/"}, id="ftp"),
        pytest.param({"sector_uri": "https://s.example/#list"}, id="a fragment"),
        pytest.param({"sector_uri": "https://u@s.example/"}, id="a user name"),
        pytest.param({"sector_uri": "https://S.example/"}, id="upper case"),
        pytest.param({"sector_uri": "https://" + "s" * 2000 + ".example/"}, id="too long"),
    ],
)
def test_a_registration_with_a_wrong_sector_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(InvalidSector):
        app(ONE, **fields)


@pytest.mark.gen_test
@each(
    "changes",
    [
        pytest.param({"subject_type": "public"}, id="public"),
        pytest.param({"redirect_uris": (TWO,)}, id="another host"),
        pytest.param({"redirect_uris": (ONE, TWO)}, id="one more host"),
        pytest.param({"sector_uri": "https://one.example/list"}, id="a list at the same host"),
    ],
)
async def test_type_and_sector_never_change(memory_store: Store, changes: dict[str, Any]) -> None:
    if await memory_store.apps.find("app") is None:
        await memory_store.apps.create(app(ONE))
        await memory_store.apps.create(Registration("open", "Open", (ONE,), ("openid",)))
    with pytest.raises(InvalidSector):
        await memory_store.apps.update("app", **changes)
    with pytest.raises(InvalidSector):
        await memory_store.apps.update("open", subject_type="pairwise")
    await memory_store.apps.update("app", redirect_uris=(f"{ONE}/other",))
    assert (await memory_store.apps.update("open", redirect_uris=(ONE, TWO))).sector == ""


@pytest.mark.gen_test
async def test_an_owner_changes_no_sector_and_no_listed_redirect_uri(memory_store: Store) -> None:
    world = await World.make(memory_store)
    facts: dict[str, Any] = {"scopes": ("openid",), "subject_type": "pairwise", "owner": world.user}
    plain, _ = await world.register("plain", redirect_uris=(ONE,), **facts)
    listed, _ = await world.register("listed", redirect_uris=(ONE,), sector_uri="https://s.example/list", **facts)
    for made, code in ((plain, "invalid_request"), (listed, "access_denied")):
        with pytest.raises(Refused, match=code):
            await memory_store.owned.update(
                world.session, made.client_id, "app_changed", VISITOR, redirect_uris=(ONE, TWO)
            )
    assert "app_changed" not in await world.events()


@pytest.mark.rfc("9068 5 sub")
@pytest.mark.fapi("6.6 client ids")
@pytest.mark.gen_test
@each("client_id", ["0123456789abcdef" * 2, "0123456789ABCDEF" * 2, "pw_" + "a" * 22])
async def test_a_client_id_that_could_be_a_person_s_does_not_register(memory_store: Store, client_id: str) -> None:
    made = Registration(client_id, "App", (ONE,), ("profile",))
    with pytest.raises(ValueError, match="must not look like a person's id"):
        await memory_store.apps.create(made)
    for near in (client_id[:-1], client_id + "0"):
        await memory_store.apps.create(Registration(near, "App", (ONE,), ("profile",)))


@pytest.mark.gen_test
@each("client_id", ["api_" + "a" * 15, "api_" + "0" * 15, "api_" + "a" * 15 + "12"])
async def test_a_client_id_that_could_be_an_api_s_does_not_register(memory_store: Store, client_id: str) -> None:
    with pytest.raises(ValueError, match="must not look like an API's"):
        await memory_store.apps.create(Registration(client_id, "App", (ONE,), ("profile",)))
    for near in ("api_gateway", "api_" + "a" * 14, "api_" + "a" * 16):
        if await memory_store.apps.find(near) is None:
            await memory_store.apps.create(Registration(near, "App", (ONE,), ("profile",)))


@asynccontextmanager
async def domain_at(folder: Path) -> AsyncIterator[Domain]:
    """A host with the list."""
    made = await Domain.make(folder)
    yield made
    await made.receiver.close()


def listing(*uris: Any, kind: str = JSON) -> Reply:
    """The list as a file."""
    return answering(200, kind, body=json.dumps(uris).encode())


@pytest.mark.gen_test
async def test_a_list_with_all_redirect_uris_is_accepted(tmp_path: Path) -> None:
    async with domain_at(tmp_path) as domain:
        for kind in (JSON, "Content-Type: application/json; charset=utf-8", "Content-Type: text/plain"):
            domain.answers(listing(TWO, "https://three.example/", ONE, kind=kind))
            await check_sector(domain.fetcher, f"https://{DOMAIN}/list", (ONE, TWO))
        assert domain.receiver.posted[0].line == "GET /list HTTP/1.1"


@pytest.mark.gen_test
@each(
    ("reply", "said"),
    [
        pytest.param(listing(ONE), "does not have 'https://two.example/cb'", id="one is missing"),
        pytest.param(listing(ONE, TWO + "/"), "does not have", id="only a similar one"),
        pytest.param(listing(ONE, TWO, 3), "JSON array", id="a number in it"),
        pytest.param(answering(200, JSON, body=b'{"a": 1}'), "JSON array", id="an object"),
        pytest.param(answering(200, JSON, body=b"[" * 60_000), "JSON array", id="nested without end"),
        pytest.param(answering(200, JSON, body=b"nonsense"), "JSON array", id="no JSON"),
        pytest.param(answering(200, "Content-Type: text/html", body=b"[]"), "right type", id="a page"),
        pytest.param(answering(404), "The answer was 404", id="no such file"),
        pytest.param(answering(302, "Location: https://one.example/"), "redirect", id="a redirect"),
        pytest.param(
            answering(200, JSON, body=b"[" + b" " * SECTOR_FILE_BYTES + b"]"),
            "has more than 65536 bytes",
            id="too long",
        ),
    ],
)
async def test_any_other_answer_refuses_the_registration(tmp_path: Path, reply: Reply, said: str) -> None:
    async with domain_at(tmp_path) as domain:
        domain.answers(reply)
        with pytest.raises(InvalidSector, match=said):
            await check_sector(domain.fetcher, f"https://{DOMAIN}/list", (ONE, TWO))


@pytest.mark.gen_test
async def test_a_list_at_a_private_address_is_not_fetched(tmp_path: Path) -> None:
    receiver = Receiver(listing(ONE))
    await receiver.start()
    with pytest.raises(InvalidSector, match="could not be read"):
        await check_sector(Fetcher(AddressPolicy()), f"http://127.0.0.1:{receiver.port}/", (ONE,))
    assert receiver.posted == []
    await receiver.close()


def during(reply: Reply, act: Callable[[str], Any]) -> tuple[Any, int]:
    """The result of a command while a developer's file server on loopback has the list, and how often it was read."""

    async def run() -> tuple[Any, int]:
        receiver = Receiver(reply)
        await receiver.start()
        found = await asyncio.to_thread(act, f"http://127.0.0.1:{receiver.port}/list")
        await receiver.close()
        return found, len(receiver.posted)

    return asyncio.run(run())


HOSTS = ("--redirect-uri", ONE, "--redirect-uri", TWO, "--scopes", "openid")
NEW = ("app", "create", "--name", "Web", "--client-id", "web", *HOSTS, "--subject-type", "pairwise")


def test_the_command_reads_the_list_when_it_registers_or_changes_redirect_uris(home: Home) -> None:
    named, read = during(listing(ONE, TWO), lambda url: home.json(*NEW, "--sector-identifier-uri", url))
    assert read == 1
    assert named["subjectType"] == "pairwise"
    assert named["sectorIdentifierUri"].endswith("/list")
    assert home.json("app", "update", "web", "--name", "Website")["subjectType"] == "pairwise"
    # The list is away by now.
    said = home.error("app", "update", "web", "--redirect-uri", ONE)
    assert said[1] == "invalid_request"
    assert "could not be read" in said[2]
    assert home.json("app", "show", "web")["redirect_uris"] == [ONE, TWO]


def test_the_command_refuses_a_list_that_lacks_a_redirect_uri(home: Home) -> None:
    said, read = during(listing(ONE), lambda url: home.error(*NEW, "--sector-identifier-uri", url))
    assert (said[1], read) == ("invalid_request", 1)
    assert "does not have" in said[2]
    assert home.json("app", "list") == {"apps": []}


def test_the_command_refuses_several_hosts_and_every_change(home: Home) -> None:
    assert "one host" in home.error(*NEW)[2]
    home.app("plain")
    home.app("pairwise", "--subject-type", "pairwise")
    for words in (
        ("plain", "--subject-type", "pairwise"),
        ("pairwise", "--subject-type", "public"),
        ("pairwise", "--redirect-uri", TWO),
        ("pairwise", "--sector-identifier-uri", "https://web.example/list"),
    ):
        assert "fixed at registration" in home.error("app", "update", *words)[2], words
    assert home.json("app", "update", "pairwise", "--subject-type", "pairwise")["subjectType"] == "pairwise"
    assert "sector identifier URI is an https address" in home.error(*NEW, "--sector-identifier-uri", "http://a.b/")[2]


def test_a_list_on_loopback_is_for_a_developer_s_server_only(home: Home) -> None:
    url = ("--sector-identifier-uri", "http://127.0.0.1:1/list", "--base-url", "https://id.example.org")
    assert "is an https address" in home.error(*NEW, *url)[2]
