"""The helper process for long bodies: bounds before objects, a deadline, and nothing but exchanges from it."""

from __future__ import annotations

import json
import os
import pickle
import signal
from collections.abc import Iterator
from io import FileIO
from pathlib import Path

import pytest

from handlers.ai.asked import Sent
from handlers.ai.long_call import _load
from handlers.ai.long_jobs import MOST_VALUES, ReadJob
from handlers.core.concurrency import OVERLOADED
from handlers.core.long.bodies import LONG_REQUEST, LongBodies
from handlers.core.long.helper import Helper, HelperFailed
from handlers.core.long.memory import BodyMemory, LongBody
from store.json_text import MAX_NESTING
from store.refused import Refused
from tests.ai.long.kit import helper, site
from tests.ai.openai.kit import CLAUDE
from tests.support.http.driver import Service, json_of
from tests.support.http.http_servers import until
from tests.support.store.ai_spender import MODEL, SDK, Spender, models_on

pytestmark = pytest.mark.gen_test(timeout=60)
__all__ = ["helper", "site"]

DEEPEST = b"[" * (MAX_NESTING - 3) + b"]" * (MAX_NESTING - 3)


def asked(more: bytes = b"0", content: bytes = b'"a"', padding: int = LONG_REQUEST) -> bytes:
    """A long request with a member of this value, and the content of its message."""
    message = b'{"role":"user","content":%b}' % content
    start = b'{"model":"%b","max_tokens":5,"x":%b,"messages":[%b],"pad":"' % (CLAUDE.encode(), more, message)
    return start + b"a" * padding + b'"}'


HOSTILE = {
    "brackets": (b"[" * 2 * LONG_REQUEST, "200,000 values"),
    "objects": (b'{"a":' * (LONG_REQUEST // 2), "200,000 values"),
    "too many values": (asked(b"[%b0]" % (b"0," * MOST_VALUES)), "200,000 values"),
    "too deep": (asked(b"[[[[%b]]]]" % DEEPEST), "not valid JSON"),
    "closing brackets": (b"]" * 2 * LONG_REQUEST, "not valid JSON"),
    "no UTF-8": (asked(b'"\xff"'), "not valid JSON"),
    "a repeated name": (asked(b'{"a":1,"a":2}'), "repeated"),
    "NUL": (asked(content=b'"%b"' % (b"\\u0000" * (LONG_REQUEST // 4))), "NUL"),
    "half a character": (asked(content=b'[{"type":"text","text":"\\ud800"}]'), "not UTF-8"),
    "half a character in a list": (asked(b'["\\ud800"]'), "not UTF-8"),
    "a million digits": (asked(b"1" * 10**6), "not valid JSON"),
    "a number beyond a double": (asked(b"1e999"), "not valid JSON"),
    "quotes": (b'"' * (2 * LONG_REQUEST), "not valid JSON"),
    "no object": (b"[1]".ljust(2 * LONG_REQUEST), "one JSON object"),
}


@pytest.mark.parametrize(("body", "said"), HOSTILE.values(), ids=HOSTILE)
async def test_hostile_bodies_are_refused(service: Service, body: bytes, said: str) -> None:
    spender = await Spender.make(service)
    refused = await spender.ask(body, SDK)
    assert refused.code == 400
    assert said in json_of(refused)["error"]["message"]
    assert refused.headers["X-RateLimit-Remaining"] == "19"


@pytest.mark.parametrize("more", [DEEPEST, b"[%b0]" % (b"0," * (MOST_VALUES - 20))], ids=["deep", "many values"])
async def test_what_is_just_within_the_bounds_passes(service: Service, more: bytes) -> None:
    spender = await Spender.make(service)
    assert (await spender.ask(asked(more), SDK)).code == 200


@pytest.fixture
def own() -> Iterator[Helper]:
    made = Helper("handlers.ai.long_helper")
    yield made
    made.close()


@pytest.fixture
def body() -> Iterator[LongBody]:
    made = LongBody(BodyMemory(2**30).take("ada", 2**20))
    yield made
    made.file.close()


def job(reader: str = "messages") -> bytes:
    """A job for the helper."""
    return pickle.dumps(ReadJob(Sent(reader, "application/json", b""), tuple(models_on("http://localhost").all())))


def test_a_helper_that_takes_too_long_is_killed(own: Helper, body: LongBody) -> None:
    body.write(b" " * LONG_REQUEST)
    own.ask(job(), body.file.fileno(), 20)
    assert own.pid is not None
    os.kill(own.pid, signal.SIGSTOP)
    with pytest.raises(HelperFailed):
        own.ask(job(), body.file.fileno(), 0.2)
    assert own.pid is None
    assert _load(own.ask(job(), body.file.fileno(), 20))[0] == "refused", "the next job has another process"


async def test_a_helper_that_dies_is_a_503(own: Helper, body: LongBody) -> None:
    bodies = LongBodies(2**30, Helper("no.such.program"))
    for broken in (bodies, LongBodies(2**30, own)):
        if broken.helper is own:
            own.ask(job(), body.file.fileno(), 20)
            os.kill(own.pid or 0, signal.SIGKILL)
        with pytest.raises(Refused) as refused:
            await broken.ask("ada", job(), body)
        assert (refused.value.code, bool(refused.value.retry_after)) == (OVERLOADED.code, True)


def test_the_helper_has_no_secrets_and_ends_when_idle(
    own: Helper, body: LongBody, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LATCHKEY_SECRET_KEYS", "nobody may see this")
    own.ask(job(), body.file.fileno(), 20)
    pid = own.pid
    environment = Path(f"/proc/{pid}/environ").read_bytes()
    assert b"PYTHONPATH" in environment
    assert b"LATCHKEY" not in environment
    assert os.getpriority(os.PRIO_PROCESS, pid or 0) > 0, "the server's work comes first"
    own.rest()
    assert own.pid is None
    assert not Path(f"/proc/{pid}").exists()
    own.close()
    with pytest.raises(HelperFailed):
        own.ask(job(), body.file.fileno(), 20)


class _Harmful:
    def __reduce__(self) -> tuple[object, ...]:
        return os.system, ("true",)


def test_nothing_but_exchanges_is_taken_from_the_helper() -> None:
    with pytest.raises(pickle.UnpicklingError):
        _load(pickle.dumps(_Harmful()))


async def test_nothing_is_read_for_a_client_that_is_gone(body: LongBody) -> None:
    bodies = LongBodies(2**30, Helper("no.such.program"))
    with pytest.raises(Refused) as refused:
        await bodies.ask("ada", job(), body, lambda: True)
    assert refused.value.code == "invalid_request", "no process was started"


def test_models_in_the_helper_have_neither_key_nor_address() -> None:
    sent = job()
    for word in (b"localhost", b"sk-of-the-operator"):
        assert word not in sent
    (model,) = pickle.loads(sent).models  # noqa: S301  # our own
    assert (model.model_id, model.upstream.dialect, model.max_input) == (MODEL, "anthropic", 200_000)


def test_each_person_leaves_memory_for_others() -> None:
    memory = BodyMemory(100)
    ada = [memory.take("ada", 20), memory.take("ada", 20)]
    with pytest.raises(Refused) as own_limit:
        memory.take("ada", 20)
    bea = memory.take("bea", 60)
    with pytest.raises(Refused) as full:
        memory.take("cleo", 1)
    assert (own_limit.value.code, full.value.code) == ("rate_limited", OVERLOADED.code)
    bea.resize(10)
    assert memory.taken == 50
    for room in (*ada, bea, bea):
        room.resize(0)
    assert (memory.taken, len(vars(memory)["_people"])) == (0, 0)


async def test_a_long_body_frees_its_memory_once() -> None:
    memory = BodyMemory(100)
    body = LongBody(memory.take("ada", 50))
    body.write(b"a" * 30)
    body.now_has(30)
    assert (memory.taken, os.pread(body.file.fileno(), 100, 0)) == (30, b"a" * 30)
    body.close()
    body.close()
    await until(lambda: memory.taken == 0)
    assert body.file.closed


def test_a_body_is_a_file_without_a_name(body: LongBody) -> None:
    assert isinstance(body.file, FileIO)
    assert "memfd:latchkey-body" in str(Path(f"/proc/self/fd/{body.file.fileno()}").readlink())
    assert json.dumps(os.get_inheritable(body.file.fileno())) == "false"
