"""Long bodies are read in turns: nobody's bodies delay those of others."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import pytest

from handlers.core.params import MOST_VALUES
from handlers.core.reading import EACH, LONG_BODY, MOST, Readers
from handlers.core.site import Site
from store.json_text import values_in
from store.lifetimes import AI
from store.refused import Refused
from store.results import Window
from tests.support.http.driver import Service, json_of
from tests.support.store.ai_spender import NATIVE, Spender, question

pytestmark = pytest.mark.gen_test(timeout=30)
WINDOW = Window(20, 19, 0)


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """Keeps the thread busy until it is set."""
    gate = threading.Event()
    yield gate
    gate.set()


def waiting(readers: Readers, gate: threading.Event, read: list[str], *people: str) -> list[asyncio.Task[None]]:
    """The bodies, each in a task; records whose body was read."""

    def work(person: str) -> Callable[[], None]:
        def read_one() -> None:
            gate.wait(10)
            read.append(person)

        return read_one

    return [asyncio.ensure_future(readers.run(person, WINDOW, work(person))) for person in people]


async def test_the_parser_queue_has_one_body_per_person(gate: threading.Event) -> None:
    read: list[Any] = []
    readers = Readers()
    tasks = waiting(readers, gate, read, *["bulk"] * 8, "ada", "bea")
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    assert (readers.queued, readers.limit.taken) == (3, 10)
    gate.set()
    await asyncio.gather(*tasks)
    assert read[:3] == ["bulk", "ada", "bea"], "whoever sends many waits for themselves"
    assert (readers.queued, readers.limit.taken) == (0, 0)


async def test_long_bodies_are_bounded_per_person_and_in_total(gate: threading.Event) -> None:
    read: list[Any] = []
    readers = Readers(most=30, each=4)
    tasks = waiting(readers, gate, read, *["bulk"] * 4)
    await asyncio.sleep(0)
    with pytest.raises(Refused) as too_many:
        await readers.run("bulk", WINDOW, int)
    assert (too_many.value.code, too_many.value.window) == ("rate_limited", WINDOW)
    tasks += waiting(readers, gate, read, *map(str, range(26)))
    await asyncio.sleep(0)
    with pytest.raises(Refused) as full:
        await readers.run("cleo", WINDOW, int)
    assert full.value.code == "temporarily_unavailable"
    gate.set()
    await asyncio.gather(*tasks)
    assert await readers.run("bulk", WINDOW, int) == 0


async def test_greedy_people_leave_room_for_many_others(gate: threading.Event) -> None:
    readers = Readers()
    tasks: list[asyncio.Task[None]] = []
    people = -(-MOST // EACH)
    for number in range(people):
        greedy = waiting(readers, gate, [], *[f"greedy {number}"] * MOST)
        await asyncio.sleep(0)
        tasks += greedy
    tasks += (others := waiting(readers, gate, [], *[f"other {number}" for number in range(people // 4)]))
    await asyncio.sleep(0)
    assert not any(other.done() for other in others), "they wait for the thread, and are not sent away"
    gate.set()
    assert {type(ended) for ended in await asyncio.gather(*tasks, return_exceptions=True)} == {Refused, type(None)}


async def test_bodies_of_gone_clients_are_not_read(gate: threading.Event) -> None:
    readers, read, gone = Readers(), list[str](), threading.Event()
    first = waiting(readers, gate, read, "bulk")
    second = asyncio.ensure_future(readers.run("ada", WINDOW, lambda: read.append("ada"), gone.is_set))
    await asyncio.sleep(0)
    gone.set()
    gate.set()
    await asyncio.gather(*first, second, return_exceptions=True)
    assert (read, readers.queued, readers.limit.taken) == (["bulk"], 0, 0)


async def test_waiting_for_a_turn_can_be_cancelled(gate: threading.Event) -> None:
    read: list[Any] = []
    readers = Readers()
    first, second, third = waiting(readers, gate, read, "ada", "ada", "ada")
    await asyncio.sleep(0)
    second.cancel()
    gate.set()
    await asyncio.gather(first, third)
    assert (read, readers.limit.taken) == (["ada", "ada"], 0)


@pytest.fixture
def site(ai_site: Site) -> Site:
    return ai_site


async def test_long_bodies_count_for_the_person_across_apps(service: Service) -> None:
    spender = await Spender.make(service)
    other = await Spender.make(service, app=await service.add_app("other-app"))
    wrong = b" " * (LONG_BODY + 1)
    for number in range(AI.limit):
        assert (await (spender, other)[number % 2].ask(wrong, NATIVE)).code == 400
    assert [(await each.ask(wrong, NATIVE)).code for each in (spender, other)] == [429, 429]


MANY = {
    "tools": {"tools": [{"": 1}] * MOST_VALUES},
    "keys": {"metadata": {str(number): 0 for number in range(MOST_VALUES)}},
    "messages": {"messages": [{"role": "user", "content": "a"}] * (MOST_VALUES // 3)},
}


@pytest.mark.parametrize("more", [pytest.param(more, id=what) for what, more in MANY.items()])
async def test_a_body_with_too_many_values_is_refused(service: Service, more: dict[str, Any]) -> None:
    spender = await Spender.make(service)
    refused = await spender.ask(question(**more))
    assert (refused.code, json_of(refused)["error_description"]) == (400, "The body has more than 30,000 values.")


async def test_values_are_counted_across_all_form_fields(service: Service) -> None:
    spender = await Spender.make(service)
    many = json.dumps([1] * (MOST_VALUES * 2 // 3))
    form = {"model": "scripted", "max_tokens": "1", "metadata": many, "tools": many}
    kind = {"Content-Type": "application/x-www-form-urlencoded"}
    refused = await spender.ask(urlencode(form).encode(), **kind)
    assert (refused.code, json_of(refused)["error_description"]) == (400, "The body has more than 30,000 values.")


async def test_a_long_text_is_one_value(service: Service) -> None:
    spender = await Spender.make(service)
    text = '{"a": [1, 2, "\\"", {}]}, ' * 8_000
    assert (await spender.ask(question(text))).code == 200


@pytest.mark.parametrize(
    ("text", "values"),
    [(b"1", 0), (b"[]", 1), (b'{"a":[1,2]}', 3), (rb'["[{,", "\"[,", "\\", "\\\",[" ]', 4), (rb'"\\\\", [', 2)],
)
def test_values_are_counted_outside_strings(text: bytes, values: int) -> None:
    assert values_in(text) == values
