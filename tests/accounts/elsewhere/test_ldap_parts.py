"""The parts of the directory client: filters, answers that are none, the table of the file."""

from __future__ import annotations

import asyncio
import contextlib
import random
from pathlib import Path
from typing import Any

import pytest

from outbound.identity.calling import ProviderAway, ProviderRefused
from outbound.identity.config import ProvidersError, ProvidersFile, load_providers, parse_providers
from outbound.identity.ldap.ber import ENUMERATED, SEQUENCE, SET, element, integer, octets
from outbound.identity.ldap.connection import DirectoryEntry
from outbound.identity.ldap.directory import FAILURES, PAUSE_SECONDS, Directories, WrongPassword, _locked, _subject
from outbound.identity.ldap.filters import WrongFilter, parse_filter
from store.names import MAX_GROUPS
from store.results import Visitor
from store.wiring import Store

pytestmark = pytest.mark.gen_test(timeout=60)

TABLE = (
    '[[provider]]\ntype = "ldap"\nname = "company"\nurl = "ldaps://ldap.example.org"\nbase_dn = "dc=example,dc=org"\n'
)


def parsed(text: str, **environment: str) -> Any:
    return parse_providers(Path("providers.toml"), ProvidersFile(text), environment)


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("(uid={login})", b"\xa3\x0a\x04\x03uid\x04\x03a*)"),
        (r"(uid=\2a)", b"\xa3\x08\x04\x03uid\x04\x01*"),
        ("(uid=x-{login})", b"\xa3\x0c\x04\x03uid\x04\x05x-a*)"),
        ("(mail=*)", b"\x87\x04mail"),
        ("(!(a=b))", b"\xa2\x08\xa3\x06\x04\x01a\x04\x01b"),
        ("(&(a=b)(c>=d))", b"\xa0\x10\xa3\x06\x04\x01a\x04\x01b\xa5\x06\x04\x01c\x04\x01d"),
        ("(|(a<=b)(c~=d))", b"\xa1\x10\xa6\x06\x04\x01a\x04\x01b\xa8\x06\x04\x01c\x04\x01d"),
        ("(a=b*c*d)", b"\xa4\x0e\x04\x01a0\x09\x80\x01b\x81\x01c\x82\x01d"),
        ("(a:1.2.3:=5)", b"\xa9\x0d\x81\x051.2.3\x82\x01a\x83\x01" + b"5"),
    ],
)
def test_a_filter_takes_what_is_typed_as_one_value(text: str, made: bytes) -> None:
    assert parse_filter(text)("a*)") == made


@pytest.mark.parametrize(
    "text",
    [
        *("", "uid=a", "(uid=a", "(uid=a))", "()", "(&)", "(!(a=b)(c=d))", "(uid=)", "(uid={login}*)", r"(uid=\zz)"),
        *("(u id=a)", "(a=(b)", "(" * 5000, "(!" * 11 + "(a=b)" + ")" * 11, "(:=a)", "(uid=**)", "(&(a=b)"),
    ],
)
def test_what_is_no_filter_is_refused(text: str) -> None:
    with pytest.raises(WrongFilter):
        parse_filter(text)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (TABLE.replace("ldaps:", "ldap:"), "readable on the way"),
        (TABLE.replace("ldaps://ldap.example.org", "https://a.example"), "must be ldaps://HOST"),
        (TABLE.replace("ldaps://ldap.example.org", "ldaps://u:hush@a.example"), "must be ldaps://HOST"),
        (TABLE + "start_tls = true", "begins with TLS"),
        (TABLE + 'user_filter = "(uid=ada)"', "needs {login}"),
        (TABLE + 'user_filter = "(uid={login}*)"', "whoever types a letter"),
        (TABLE + 'bind_dn = "cn=a"', "bind_password_env is missing"),
        (TABLE + 'bind_dn = "cn=a"\nbind_password_env = "NOT_SET"', "which is not set"),
        (TABLE + 'ca_file = "ca.pem"', "no certificate"),
        (TABLE + 'groups = { "cn=a" = 5 }', "a name here for each"),
        (TABLE + 'client_id = "us"', "is not for providers of the type ldap"),
        (TABLE + 'mail_attribute = "a b"', "name of an attribute"),
        (TABLE + "create = true", "needs trust_email"),
        (TABLE.replace('type = "ldap"\n', 'issuer = "https://a.example"\n'), "is not for providers of the type oidc"),
    ],
)
def test_mistakes_in_the_table_of_a_directory_are_named(text: str, said: str) -> None:
    with pytest.raises(ProvidersError, match=said) as error:
        parse_providers(Path("providers.toml"), ProvidersFile(text, {"ca.pem": "nothing"}), {})
    assert "hush" not in str(error.value)


def test_a_directory_may_be_plain_on_this_machine_or_where_the_operator_insists() -> None:
    for url, more in (
        ("ldap://127.0.0.1:3890", ""),
        ("ldap://a.example", "insecure = true"),
        ("ldap://a", "start_tls = true"),
    ):
        [one] = parsed(TABLE.replace("ldaps://ldap.example.org", url) + more)
        assert (one.issuer, one.directory.context is not None) == (url, "start_tls" in more)
    [one] = parsed(TABLE + 'issuer = "company"\nbind_dn = "cn=a"\nbind_password_env = "A"', A="hush")
    assert one.issuer == "company"
    assert "hush" not in repr(one)


def test_a_table_names_its_file_of_certificates_by_the_place_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "providers.toml"
    file.write_text(TABLE + 'ca_file = "not-there.pem"')
    with pytest.raises(ProvidersError, match=r"not-there\.pem cannot be read"):
        load_providers(file, {})


async def test_answers_that_are_none_are_a_directory_that_is_away() -> None:
    """Random bytes, and right answers with a wrong byte."""
    chance = random.Random(7)
    found = b"\x30\x0c\x02\x01\x01\x65\x07\x0a\x01\x00\x04\x00\x04\x00"
    sent = [chance.randbytes(chance.randrange(60)) for _ in range(60)]
    sent += [
        b"\x30\x84\xff\xff\xff\xff",
        b"\x30\x80\x00\x00",
        b"\x30\x0c\x02\x01\x00\x78\x07\x0a\x01\x34\x04\x00\x04\x00",
    ]
    for place in range(len(found)):
        for change in (1, 0x80, 0x7F):
            sent.append(found[:place] + bytes((found[place] ^ change,)) + found[place + 1 :])

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(sent[-1])
        writer.write_eof()
        writer.close()

    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    while sent:
        [one] = parsed(TABLE.replace("ldaps://ldap.example.org", f"ldap://127.0.0.1:{port}"))
        with pytest.raises((ProviderAway, WrongPassword)):
            await Directories().check(one.directory, "ada", "password", "192.0.2.1", nothing)
        sent.pop()
    server.close()


async def nothing(who: str) -> None:
    """Counts nothing."""


async def test_a_directory_that_fails_is_asked_seldom() -> None:
    asked, now = 0, [0.0]

    async def ends(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal asked
        asked += 1
        writer.close()

    server = await asyncio.start_server(ends, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    [one] = parsed(TABLE.replace("ldaps://ldap.example.org", f"ldap://127.0.0.1:{port}"))
    directories = Directories(lambda: now[0])

    async def tries(times: int) -> None:
        for _ in range(times):
            with pytest.raises(ProviderAway):
                await directories.check(one.directory, "ada", "password", "192.0.2.1", nothing)

    await tries(FAILURES + 5)
    assert asked == FAILURES
    now[0] += PAUSE_SECONDS
    await tries(5)
    assert asked == FAILURES + 1, "one tries"
    server.close()


async def test_one_entry_that_cannot_sign_in_keeps_nobody_else_out() -> None:
    """Somebody who knows the name of such an entry tries it again and again."""
    entry = element(
        0x64, octets("cn=a"), element(SEQUENCE, element(SEQUENCE, octets("entryUUID"), element(SET, octets("1"))))
    )
    results = [0]

    async def answers(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        for number, tag, code in ((1, 0x65, 0), (2, 0x61, results[0])):
            await reader.read(4096)
            end = element(tag, integer(code, ENUMERATED), octets(""), octets(""))
            for one in (entry, end) if tag == 0x65 else (end,):
                writer.write(element(SEQUENCE, integer(number), one))
        writer.close()

    server = await asyncio.start_server(answers, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    [one] = parsed(TABLE.replace("ldaps://ldap.example.org", f"ldap://127.0.0.1:{port}"))
    directories = Directories()
    for results[0], kind in ((48, WrongPassword), (10, WrongPassword), (80, ProviderAway), (0, None)):
        for _ in range(FAILURES + 1):
            with contextlib.nullcontext() if kind is None else pytest.raises(kind):
                await directories.check(one.directory, "ada", "password", "192.0.2.1", nothing)
    server.close()


async def test_a_person_in_too_many_groups_of_a_directory_still_signs_in(memory_store: Store) -> None:
    """The first ones count, and those that the operator gave stay."""
    created = await memory_store.people.create(
        "ada@example.com", "Ada", None, verified=True, event="signed_up", visitor=Visitor()
    )
    groups, names = memory_store.groups, [f"group {number:03}" for number in range(MAX_GROUPS + 20)]
    await groups.change(created, (), ["own"])
    found = await groups.take_over(created, names, names)
    assert found == (*names[: MAX_GROUPS - 1], "own")
    assert await groups.take_over(created, names, names) == found
    assert await groups.take_over(created, names, names[-2:]) == (*names[-2:], "own")


@pytest.mark.parametrize(
    ("name", "value", "locked"),
    [
        ("useraccountcontrol", b"512", False),
        ("useraccountcontrol", b"514", True),
        ("useraccountcontrol", b"9" * 5000, False),
        ("nsaccountlock", b"TRUE", True),
        ("nsaccountlock", b"false", False),
        ("pwdaccountlockedtime", b"000001010000Z", True),
    ],
)
def test_a_disabled_entry_is_known_by_its_attributes(name: str, value: bytes, locked: bool) -> None:
    assert _locked(DirectoryEntry("cn=a", {name: (value,)})) is locked


def test_the_id_of_an_entry_is_text_that_outlives_its_name() -> None:
    [one] = parsed(TABLE + 'id_attribute = "objectGUID"')
    guid = bytes.fromhex("33221100554477668899aabbccddeeff")
    found = _subject(one.directory, DirectoryEntry("cn=a", {"objectguid": (guid,)}))
    assert found == "00112233-4455-6677-8899-aabbccddeeff"
    for values in ((), (b"a", b"b"), (b"\xff",)):
        with pytest.raises(ProviderRefused):
            _subject(one.directory, DirectoryEntry("cn=a", {"objectguid": values}))
