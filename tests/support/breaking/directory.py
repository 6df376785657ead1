"""Cases of the index of people."""

from __future__ import annotations

from store import keys
from store.directory.entries import IndexEntry, entries_of
from tests.support.breaking.cases import GHOST, case
from tests.support.directory.listed_people import everybody
from tests.support.store.checked_store import Furnished


def entry_of(f: Furnished) -> IndexEntry:
    """The entry of the person under the first word of their name."""
    return min(one for one in entries_of(f.world.user, f.world.email, "Ada Lovelace") if one.section.begin == b"ad")


def bucket_of(entry: IndexEntry) -> str:
    """The first bucket of the section of an entry."""
    return keys.directory_section(entry.section.family, entry.section.begin.hex())["bucket"]


async def is_found(f: Furnished) -> None:
    """The person is found by name, once."""
    found = [one.user for one in await everybody(f.store, "ada", by="name")]
    assert found.count(f.world.user) == 1
    assert len(found) == len(set(found))


async def not_in_the_index(f: Furnished) -> None:
    await f.store.directory_relay.sections.change([entry_of(f)], [])


async def former_name_in_the_index(f: Furnished) -> None:
    await f.store.directory_relay.sections.change([], entries_of(f.world.user, f.world.email, "Ada Byron"))


async def nobody_in_the_index(f: Furnished) -> None:
    await f.store.directory_relay.sections.change([], entries_of(GHOST, f.world.email, "Ada Lovelace"))


async def twice_in_the_index(f: Furnished) -> None:
    await f.client.rpush(bucket_of(entry_of(f)), entry_of(f).rest)


async def in_another_bucket(f: Furnished) -> None:
    await not_in_the_index(f)
    sections = f.store.directory_relay.sections
    sections.most = 4
    await sections.change([], [entry for n in range(9) for entry in entries_of(f"{n:032x}", f"ad{n}@a.test", "")])
    first = keys.directory_section("address", b"ad".hex())
    last = (await f.client.zrange(first["listed"], 0, -1))[-1]
    await f.client.rpush(first["bucket"], b"9@a.test" + bytes.fromhex(f"{9:032x}"))
    assert last


async def section_on_no_list(f: Furnished) -> None:
    await f.client.zrem(keys.directory_family("name"), b"ad".hex())


async def bucket_in_no_section(f: Furnished) -> None:
    await f.client.delete(keys.directory_section("name", b"ad".hex())["listed"])


DIRECTORY = [
    case(not_in_the_index, "directory", proof=is_found),
    case(former_name_in_the_index, "directory-left", proof=is_found),
    case(nobody_in_the_index, "directory-left", proof=is_found),
    case(twice_in_the_index, "directory-left", proof=is_found),
    case(in_another_bucket, "directory directory-left", proof=is_found),
    case(section_on_no_list, "directory-bucket", proof=is_found),
    case(bucket_in_no_section, "directory directory-bucket", proof=is_found),
]
