"""Keys of models' servers from files and commands: read off the loop, kept for a while, and again after a refusal."""

from __future__ import annotations

import asyncio
import json
import logging
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from outbound.ai import server_keys
from outbound.ai.config import ConfigError, load_models
from outbound.ai.server_keys import KeyUnreadable, ReadKey, command_reader, file_reader
from tests.ai.upstreams.several import Several, file_of
from tests.support.http.driver import Service
from tests.support.http.upstream import failing
from tests.support.store.ai_spender import Spender, assert_error, cost, question

pytestmark = pytest.mark.gen_test(timeout=20)

ONCE = cost(25, 31)


def python(program: str, *words: str) -> list[str]:
    """A command that runs a program."""
    return [sys.executable, "-c", program, *words]


class Script:
    """A reading that a test directs."""

    def __init__(self) -> None:
        self.now, self.reads, self.key = 1000.0, 0, "key-1"
        self.opens: asyncio.Event | None = None
        self.source = ReadKey(self, 60, lambda: self.now)

    async def __call__(self) -> str:
        self.reads += 1
        if self.opens:
            await self.opens.wait()
        if not self.key:
            raise KeyUnreadable("is away")
        return self.key


@pytest.fixture
def script() -> Script:
    """A key that lasts 60 seconds."""
    return Script()


async def test_a_key_is_kept_until_it_expires(script: Script) -> None:
    assert [await script.source.get() for _ in range(3)] == ["key-1"] * 3
    assert script.reads == 1
    script.key, script.now = "key-2", script.now + 60
    assert [await script.source.get() for _ in range(3)] == ["key-2"] * 3
    assert script.reads == 2


async def test_many_calls_share_one_reading_and_outlive_the_first(script: Script) -> None:
    script.opens = asyncio.Event()
    waiting = [asyncio.ensure_future(script.source.get()) for _ in range(20)]
    await asyncio.sleep(0)
    waiting[0].cancel()
    await asyncio.sleep(0)
    script.opens.set()
    assert await asyncio.gather(*waiting[1:]) == ["key-1"] * 19
    assert script.reads == 1


async def test_an_old_key_stays_in_use_if_no_new_one_comes(script: Script) -> None:
    await script.source.get()
    script.key, script.now = "", script.now + 60
    assert [await script.source.get() for _ in range(5)] == ["key-1"] * 5
    assert script.reads == 2, "no second reading at once"
    script.now += server_keys.LEAST_AGE
    assert await script.source.get() == "key-1"
    assert script.reads == 3


async def test_a_refused_key_is_read_again_but_not_by_every_call(script: Script) -> None:
    await script.source.get()
    assert await script.source.renew("key-1") is None, "it was read just now"
    script.key, script.now = "key-2", script.now + server_keys.LEAST_AGE
    assert await script.source.renew("key-1") == "key-2"
    assert await script.source.renew("key-1") == "key-2"
    assert script.reads == 2


async def test_no_key_at_all_is_an_error(script: Script) -> None:
    script.key = ""
    for _ in range(3):
        with pytest.raises(KeyUnreadable, match="is away"):
            await script.source.get()
    script.key = "two\nlines"
    script.now += server_keys.LEAST_AGE
    with pytest.raises(KeyUnreadable, match="printable"):
        await script.source.get()
    assert script.reads == 2


async def test_a_file_is_read_in_bounds(tmp_path: Path) -> None:
    file = tmp_path / "key"
    for content, found in ((b" a-key\n", "a-key"), (b"k" * 16_384, "k" * 16_384)):
        file.write_bytes(content)
        assert await file_reader(file)() == found
    for content in (b"k" * 16_385, "schlüssel".encode()):
        file.write_bytes(content)
        with pytest.raises(KeyUnreadable) as error:
            await file_reader(file)()
        assert "k" * 20 not in str(error.value)
    with pytest.raises(KeyUnreadable, match="No such file"):
        await file_reader(tmp_path / "none")()


async def test_a_command_is_run_without_a_shell_and_without_our_secrets(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LATCHKEY_SECRET_KEYS", "1:secret")
    monkeypatch.setenv("TOKEN_OF_THE_CLOUD", "kept")
    program = "import os, sys; print(sys.argv[1:], sorted(n for n in os.environ if 'LATCH' in n or 'TOKEN' in n))"
    found = await command_reader(python(program, "$HOME; echo"))()
    assert found == "['$HOME; echo'] ['TOKEN_OF_THE_CLOUD']"


@pytest.mark.parametrize(
    ("program", "reason"),
    [
        pytest.param("import sys; print('sk-secret'); sys.exit(3)", "ended with status 3", id="fails"),
        pytest.param("import sys; sys.stderr.write('sk-secret'); sys.exit(1)", "ended with status 1", id="complains"),
        pytest.param("while True: print('sk-secret' * 999)", "longer than 16384 bytes", id="prints without end"),
        pytest.param("print('sk-schlüssel')", "not ASCII", id="prints no ASCII"),
    ],
)
async def test_a_command_that_fails_gives_no_key_and_says_no_secret(program: str, reason: str) -> None:
    with pytest.raises(KeyUnreadable, match=reason) as error:
        await command_reader(python(program))()
    assert "sk-" not in str(error.value)


async def test_a_command_that_is_not_there_gives_no_key() -> None:
    with pytest.raises(KeyUnreadable, match="cannot be run"):
        await command_reader(["/nowhere/at-all"])()


async def test_a_command_that_hangs_is_ended_with_what_it_started(tmp_path: Path) -> None:
    note = tmp_path / "pids"
    program = (
        "import os, subprocess, sys, time\n"
        "child = subprocess.Popen(['sleep', '600'])\n"
        f"open({str(note)!r} + '.new', 'w').write(f'{{os.getpid()}} {{child.pid}}')\n"
        f"os.rename({str(note)!r} + '.new', {str(note)!r})\n"
        "time.sleep(600)"
    )
    running = asyncio.ensure_future(command_reader(python(program), 600.0)())
    while not note.exists():
        await asyncio.sleep(0.005)  # the loop goes on meanwhile
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    for pid in map(int, note.read_text().split()):
        while is_running(pid):
            await asyncio.sleep(0.005)
    with pytest.raises(KeyUnreadable, match=r"took more than 0\.2 s"):
        await command_reader(python("import time; time.sleep(600)"), 0.2)()


def is_running(pid: int) -> bool:
    """Whether a process exists and is no zombie."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.fixture
def take(several: Several, tmp_path: Path) -> Callable[[str], None]:
    """Gives the site's servers another key, by lines of the file of models."""

    def replace(key: str) -> None:
        file = tmp_path / "keys.toml"
        file.write_text(file_of({name: server.url for name, server in several.servers.items()}, key=key))
        several.site.models._models = load_models(file)._models

    return replace


async def test_a_call_goes_on_with_a_newer_key_after_a_refusal(
    service: Service,
    several: Several,
    tmp_path: Path,
    take: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(server_keys, "LEAST_AGE", 0.0)
    file = tmp_path / "key"
    program = f"print(open({str(file)!r}).read())"
    caplog.set_level(logging.DEBUG)
    for lines in (f'key_file = "{file}"', f"key_command = {json.dumps(python(program))}"):
        file.write_text("sk-old\n")
        take(lines)
        spender = await Spender.make(service)
        first = several.order(spender)[0]
        before = len(first.calls)
        assert (await spender.ask()).code == 200
        file.write_text("sk-new\n")
        first.script(failing(401, "authentication_error"))
        assert (await spender.ask()).code == 200
        assert (await spender.ask(question(stream=True))).code == 200
        keys = [call.request.headers["X-Api-Key"] for call in first.calls[before:]]
        assert keys == ["sk-old", "sk-old", "sk-new", "sk-new"]
        assert several.calls(spender)[1:] == [0, 0], "the server works, so nobody else is asked"
        # A key that the server refuses again: another server answers.
        first.script(failing(401, "authentication_error"))
        assert (await spender.ask()).code == 200
        assert several.calls(spender)[1:] == [1, 0]
        several.order(spender)[1].calls.clear()
        await several.site.models.close()
    assert "sk-" not in caplog.text


async def test_a_server_without_its_key_is_passed_over(
    service: Service, several: Several, take: Callable[[str], None], caplog: pytest.LogCaptureFixture
) -> None:
    take(f"key_command = {json.dumps(python('import sys; sys.exit(1)'))}")
    spender = await Spender.make(service)
    assert "status 1" not in assert_error(await spender.ask(), 502, "upstream_error")
    assert several.calls(spender) == [0, 0, 0]
    assert "ended with status 1" in caplog.text
    assert await spender.charged() == []
    alone = several.upstreams(spender)[2]
    alone._key = server_keys.FixedKey("sk-alone")
    assert (await spender.ask()).code == 200
    assert several.calls(spender) == [0, 0, 1]
    assert await spender.charged() == [ONCE]


@pytest.mark.parametrize(
    ("key", "mistake"),
    [
        ('key_file = "/nowhere/key"', "key_file is unusable: /nowhere/key cannot be read"),
        ('key = "a"\nkey_command = ["a"]', "key_command is one key too many: there is key"),
        ('key_command = "gcloud auth"', "key_command must be an array"),
        ("key_command = [1]", "key_command must be an array of strings"),
        ('key_command = ["", "a"]', "key_command must be an array of strings"),
        ('key_command = ["a"]\nkey_lifetime = 0', "key_lifetime must be more than 0"),
    ],
)
def test_a_mistake_in_the_file_is_named(tmp_path: Path, key: str, mistake: str) -> None:
    file = tmp_path / "models.toml"
    file.write_text(file_of({"red": "http://127.0.0.1:1"}, key=key))
    with pytest.raises(ConfigError, match=r"upstream\[0\]\." + mistake.replace("[", r"\[")):
        load_models(file)
