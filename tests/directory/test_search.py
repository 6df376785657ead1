"""Finding people: by address, by each word of a name, by domain, without regard to case and accents."""

from __future__ import annotations

import pytest

from store.refused import Refused
from store.wiring import Store
from tests.support.directory.listed_people import everybody, rename, sign_up

PEOPLE = {
    "alan@example.org": "Alan Mathison Turing",
    "alan.kay@example.com": "Alan Kay",
    "ada@example.org": "Ada Lovelace",
    "jose@xn--maana-pta.com": "José Núñez O'Brien",
    "søren@example.net": "Søren Kierkegaard",
    "kim@example.kr": "김철수",
    "signs@example.org": "!!!",
    "x@y": "X",
}


async def furnished(store: Store) -> Store:
    """The store with everybody of PEOPLE in the index."""
    for email, name in PEOPLE.items():
        await sign_up(store, email, name)
    await store.directory_relay.sweep()
    return store


FOUND = [
    pytest.param("alan", "address", ["alan.kay@example.com", "alan@example.org"], id="address"),
    pytest.param("ALAN@", "address", ["alan@example.org"], id="address in another case"),
    pytest.param("a", "address", ["ada@example.org", "alan.kay@example.com", "alan@example.org"], id="one letter"),
    pytest.param("soren", "address", ["søren@example.net"], id="address without its accent"),
    pytest.param("turing", "name", ["alan@example.org"], id="last word"),
    pytest.param("math", "name", ["alan@example.org"], id="middle word"),
    pytest.param("turing al", "name", ["alan@example.org"], id="last word first"),
    pytest.param("  Alan  m", "name", ["alan@example.org"], id="spaces"),
    pytest.param("nunez", "name", ["jose@xn--maana-pta.com"], id="name without its accent"),
    pytest.param("NÚÑEZ o'b", "name", ["jose@xn--maana-pta.com"], id="accents and an apostrophe"),
    pytest.param("Soren", "name", ["søren@example.net"], id="a letter without a decomposition"),
    pytest.param("김", "name", ["kim@example.kr"], id="a syllable"),
    pytest.param("!", "name", ["signs@example.org"], id="a name of signs"),
    pytest.param("x", "name", ["x@y"], id="a name of one letter"),
    pytest.param("example.org", "domain", ["ada@example.org", "alan@example.org", "signs@example.org"], id="domain"),
    pytest.param("@EXAMPLE.org", "domain", ["ada@example.org", "alan@example.org", "signs@example.org"], id="@domain"),
    pytest.param("a@example.org", "domain", ["ada@example.org", "alan@example.org"], id="address within a domain"),
    pytest.param("mañana.com", "domain", ["jose@xn--maana-pta.com"], id="international domain"),
    pytest.param("example", "domain", [], id="part of a domain"),
    pytest.param("alan", "any", ["alan.kay@example.com", "alan@example.org"], id="name and address, once each"),
    pytest.param("example.net", "any", ["søren@example.net"], id="any domain"),
    pytest.param("@example.kr", "any", ["kim@example.kr"], id="any @domain"),
    pytest.param("alan@example.org", "any", ["alan@example.org"], id="whole address"),
    pytest.param("", "any", sorted(PEOPLE), id="everybody"),
    pytest.param("zz", "any", [], id="nobody"),
    pytest.param("a" * 255, "any", [], id="longer than any address"),
    pytest.param("a\0", "any", [], id="a NUL"),
]


@pytest.mark.gen_test
@pytest.mark.parametrize(("query", "by", "expected"), FOUND)
async def test_people_are_found(memory_store: Store, query: str, by: str, expected: list[str]) -> None:
    store = await furnished(memory_store)
    for limit in (50, 1):
        assert [one.email for one in await everybody(store, query, by=by, limit=limit)] == (
            expected if query else sorted(expected, key=lambda email: email.replace("ø", "o"))
        )


@pytest.mark.gen_test
async def test_a_whole_address_and_an_id_are_found_at_once(memory_store: Store) -> None:
    """Before any relay has run."""
    user = await sign_up(memory_store, "ada@example.org", "Ada")
    for query in ("ada@example.org", " ADA@Example.org ", user, user.upper()):
        (found,) = (await memory_store.directory.search(query)).people
        assert (found.user, found.email, found.name, found.status) == (user, "ada@example.org", "Ada", "active")
        assert found.last_sign_in_at is None
    assert (await memory_store.directory.search("f" * 32)).people == ()
    assert (await memory_store.directory.search(user, status="disabled")).people == ()


@pytest.mark.gen_test
async def test_a_whole_address_comes_before_longer_ones(memory_store: Store) -> None:
    for email in ("ada@example.co", "ada@example.com"):
        await sign_up(memory_store, email, "Ada")
    await memory_store.directory_relay.sweep()
    for limit in (1, 50):
        found = await everybody(memory_store, "ada@example.co", limit=limit)
        assert [one.email for one in found] == ["ada@example.co", "ada@example.com"]


@pytest.mark.gen_test
async def test_an_entry_that_is_out_of_date_is_not_shown(memory_store: Store) -> None:
    user = await sign_up(memory_store, "ada@example.org", "Ada Lovelace")
    await memory_store.directory_relay.sweep()
    await rename(memory_store, user, "Countess")
    assert await everybody(memory_store, "love") == []
    await memory_store.people.delete(user)
    assert await everybody(memory_store, "ada") == []


@pytest.mark.gen_test
async def test_a_cursor_is_of_one_search(memory_store: Store) -> None:
    store = await furnished(memory_store)
    cursor = (await store.directory.search("a", by="address", limit=1)).cursor
    assert cursor.startswith("lk_cu_")
    for query, by, wrong in (("b", "address", cursor), ("a", "name", cursor), ("a", "address", cursor[:-1] + "_")):
        with pytest.raises(Refused) as refused:
            await store.directory.search(query, by=by, cursor=wrong)
        assert "cursor" in str(refused.value.description)
    with pytest.raises(ValueError, match="address, name"):
        await store.directory.search("a", by="phone")


@pytest.mark.gen_test
async def test_people_of_one_status_are_found(memory_store: Store) -> None:
    store = await furnished(memory_store)
    await store.operator.set_status("ada@example.org", "disabled")
    assert [one.email for one in await everybody(store, "a", status="disabled")] == ["ada@example.org"]
    assert "ada@example.org" not in [one.email for one in await everybody(store, "a", status="active")]


@pytest.mark.gen_test
async def test_long_texts_are_told_apart_by_the_rows(memory_store: Store) -> None:
    """The index has their first 48 bytes."""
    long = "a" * 60
    for end in "bc":
        await sign_up(memory_store, f"{long}{end}@example.org", f"{long}{end}")
    await memory_store.directory_relay.sweep()
    for by in ("address", "name", "any"):
        found = await everybody(memory_store, f"{long}c", by=by)
        assert [one.email for one in found] == [f"{long}c@example.org"]
