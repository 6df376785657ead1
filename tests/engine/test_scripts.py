"""The scripts of `lua/`: headers match bodies, the loader's refusals, and what is resent."""

from __future__ import annotations

import hashlib
import re
import socket
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any

import pytest
from redis.crc import key_slot
from tornado.ioloop import IOLoop

from store.crypto.keyring import Keys
from store.crypto.passwords import PasswordHasher
from store.engine.connect import connect
from store.engine.script_source import NOTED_AS, Script, ScriptError, include_files, load_scripts, script_files
from store.engine.scripts import Scripts
from store.errors import StoreError
from store.wiring import Store
from tests.conftest import OpenStore
from tests.support.calls.every import CALLS
from tests.support.calls.prepared import methods_of
from tests.support.lists.offenders import each
from tests.support.lists.recording import Recording
from tests.support.processes.engines import Engine
from tests.support.store.world import World

SCRIPTS = load_scripts()
ALL_FILES = [*script_files().values(), *include_files().values()]

# fakeredis has none of the libraries; tostring() keeps 14 digits; random numbers and `#!lua` differ between engines.
BARRED = [
    *("cmsgpack", "struct.", "bit.", "redis.sha1hex", "math.random", "#!lua", "tostring(", "redis.setresp"),
    *("redis.replicate_commands", "KEYS *", "'KEYS'", "'SCAN'", "loadstring", "string.rep"),
]

# Of these the key is not the first argument.
BEFORE_KEY = {"XGROUP": r"'CREATE',\s*", "XREADGROUP": r"'STREAMS',\s*"}

each_script = each("script", [pytest.param(found, id=name) for name, found in SCRIPTS.items()])
each_file = each("path", [pytest.param(path, id=path.stem) for path in ALL_FILES])


def code_of(source: str) -> str:
    """Lua without its comments."""
    return "\n".join(line.partition("--")[0] for line in source.splitlines())


def own_body(script: Script) -> str:
    """The script's own code, without its includes."""
    return code_of(script_files()[script.name].read_text())


@each_script
def test_a_scripts_locals_match_its_header(script: Script) -> None:
    """Each argument is read once, by its number, before the body."""
    taken = re.findall(r"^local (\w+) = (?:tonumber\(|cjson\.decode\()?(KEYS|ARGV)\[(\d+)\]\)?$", script.source, re.M)
    expected = [(name, "KEYS", str(number)) for number, name in enumerate(script.keys, 1)]
    expected += [(name, "ARGV", str(number)) for number, name in enumerate(script.args, 1)]
    # What the loader adds stands outside the script's own function.
    assert taken == (expected[-1:] + expected[:-1] if script.records else expected)
    source = code_of(script.source).removeprefix("redis.call('PEXPIREAT', KEYS[1], '1', 'GT')")
    assert len(re.findall(r"\b(?:KEYS|ARGV)\b", source)) == len(taken)


@each_script
def test_each_key_and_argument_is_used(script: Script) -> None:
    body = re.sub(r"'[^']*'", "''", own_body(script))
    own = [one for one in script.args if one != NOTED_AS]
    assert [name for name in (*script.keys, *own) if not re.search(rf"\b{name}\b", body)] == []


@each_script
def test_a_scripts_replies_match_its_header(script: Script) -> None:
    body = own_body(script)
    returned: dict[str, list[int]] = {}
    for table in re.findall(r"return (\{(?:'|redis\.call).*?\})(?: end)?$", body, re.M | re.S):
        # The word is a literal, or one of the two of `... and 'one' or 'other'`.
        for word in re.findall(r"(?:^\{|and |or )'([a-z]\w*)'(?=[,} ])", table):
            returned.setdefault(word, []).append(fields_in(table))
    declared = {word: len(fields) for word, fields in script.replies.items()}
    if "return {word" in body:  # the guard's word goes out as it came in
        assert {"invalid_token", "insufficient_scope", "rate_limited"} <= set(declared)
        assert (declared["invalid_token"], declared["insufficient_scope"], declared["rate_limited"]) == (0, 0, 2)
        declared = {word: count for word, count in declared.items() if word in returned}
    assert {word: set(counts) for word, counts in returned.items()} == {w: {count} for w, count in declared.items()}


def fields_in(table: str) -> int:
    """The number of fields after the word in a literal table."""
    depth = commas = 0
    quoted = False
    for character in table[1:-1]:
        quoted ^= character == "'"
        depth += 0 if quoted else (character in "({[") - (character in ")}]")
        commas += character == "," and depth == 0 and not quoted
    return commas


@each_script
def test_keys_are_built_only_as_the_header_declares(script: Script) -> None:
    body = own_body(script)
    assert set(script.derives) <= set(script.args)
    roots = {*script.keys, *script.derives}
    # Anything built from a declared argument, or iterating a list of keys, is a key too.
    for name, value in re.findall(r"local (\w+) = (\w+) \.\.", body):
        roots |= {name} if value in roots else set()
    for name, listed in re.findall(r"for _, (\w+) in ipairs\(\{([\w, ]+)\}\)", body):
        roots |= {name} if set(re.split(r",\s*", listed)) <= roots else set()
    for command, arguments in re.findall(r"redis\.p?call\('(\w+)',?\s*([^)]*)", body):
        if command not in ("TIME", "PUBLISH"):
            key = re.split(BEFORE_KEY[command], arguments)[-1] if command in BEFORE_KEY else arguments
            assert re.split(r"\W", key)[0] in roots, f"{command} {arguments}"
    assert all(part in roots for part in re.findall(r"(\w+) \.\. (?:'|\w+ \.\. ')?\w+", body) if part in script.args)


def test_includes_touch_only_the_keys_they_get() -> None:
    for path in include_files().values():
        text = code_of(path.read_text())
        assert not re.search(r"\b(KEYS|ARGV)\b", text)
        functions = re.findall(r"local function \w+\(([\w, ]*)\)(.*?)\nend", text, re.S)
        for parameters, body in functions:
            given = {*re.split(r",\s*", parameters), *re.findall(r"for _, (\w+) in ipairs\(kept\)", body)}
            for command, key in re.findall(r"redis\.call\('(\w+)'(?:,\s*(\w+))?", body):
                assert key in given or command == "TIME", f"{path.name}: {command} {key}"


@each_file
def test_scripts_use_only_what_all_engines_support(path: Path) -> None:
    body = code_of(path.read_text())
    assert [word for word in BARRED if word in body] == []
    assert not path.read_text().startswith("#!")


@each_file
def test_scripts_use_the_stores_time(path: Path) -> None:
    assert "os." not in code_of(path.read_text())
    assert not {"now", "time"} & set(SCRIPTS[path.stem].args if path.stem in SCRIPTS else ())


@each_script
def test_every_header_describes_its_script(script: Script) -> None:
    first = script_files()[script.name].read_text().splitlines()[0]
    assert re.fullmatch(r"--- [A-Z].*[.)]", first)


BAD_FILES = [
    pytest.param('--- @reply ok\n--- @include "nothing"\nreturn {}', "unknown include nothing", id="unknown include"),
    pytest.param('--- @reply ok\n--- @include "a"\nreturn {}', "circular include of a", id="circular include"),
    pytest.param('--- @reply ok\n--- @include "self"\nreturn {}', "circular include of self", id="includes itself"),
    pytest.param("--- @reply ok\n--- @replies no\nreturn {}", "unknown directive @replies", id="unknown directive"),
    pytest.param("--- KEYS[2] a\n--- @reply ok\nreturn {}", "numbered from 1", id="keys not from 1"),
    pytest.param("--- KEYS[1] a\n--- KEYS[3] b\n--- @reply ok\nreturn {}", "numbered from 1", id="a gap"),
    pytest.param("--- ARGV[1] a\n--- ARGV[2] a\n--- @reply ok\nreturn {}", "named once", id="one name twice"),
    pytest.param("--- KEYS[1] a\n--- ARGV[1] a\n--- @reply ok\nreturn {}", "named once", id="a key and an argument"),
    pytest.param("--- ARGV[1] a (float)\n--- @reply ok\nreturn {}", "a cannot be a float", id="unknown type"),
    pytest.param("--- KEYS[1] a (number)\n--- @reply ok\nreturn {}", "a cannot be a number", id="a type of a key"),
    pytest.param("--- ARGV[1] a number\n--- @reply ok\nreturn {}", "cannot read", id="a line that cannot be read"),
    pytest.param("--- KEYS[1] a\n--- @reply ok\nlocal a = KEYS[1]\nreturn {a}", "declared: KEYS", id="keys by hand"),
    pytest.param(
        "--- ARGV[1] a\n--- @reply ok\nreturn {tonumber( ARGV[1] )}", "declared: ARGV", id="arguments by hand"
    ),
    pytest.param("--- KEYS[1] a\n--- @reply ok\nreturn {a, b}", "declared: b", id="a name that the header lacks"),
    pytest.param("--- KEYS[1] a\n--- @reply ok\nb = a\nreturn {}", "declared: b", id="a global is set"),
    pytest.param("--- KEYS[1] a\n--- @reply ok\nreturn {shared(a)}", "declared: shared", id="a function not included"),
    pytest.param("--- Has no reply line.\nreturn {}", "no @reply", id="no reply"),
]


@pytest.mark.parametrize(("text", "message"), BAD_FILES)
def test_the_loader_refuses(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "a.lua").write_text('--- @include "b"\n')
    (tmp_path / "include" / "b.lua").write_text('--- @include "a"\n')
    (tmp_path / "include" / "self.lua").write_text('--- @include "self"\n')
    (tmp_path / "bad.lua").write_text(text)
    with pytest.raises(ScriptError, match=message):
        load_scripts(tmp_path)


def test_the_loader_accepts_valid_declarations(tmp_path: Path) -> None:
    (tmp_path / "include").mkdir()
    (tmp_path / "include" / "a.lua").write_text("-- Of b.\nlocal most, least = 9, 1\nlocal function held(b) end\n")
    header = "--- KEYS[1] user: who\n--- ARGV[1] limit (number): how many\n--- ARGV[2] rows (json)\n--- @reply ok\n"
    body = """
local function add(one, other) return one + other end
local found = {count = 1, [2] = 'KEYS', other = least}
for _, row in ipairs(rows) do found.count = add(found.count, row.size) end -- of ARGV
for n = 1, limit do held(user .. n) end
return {'ok', found, most, 1e5}
"""
    (tmp_path / "good.lua").write_text(f'{header}--- @include "a"\n{body}')
    script = load_scripts(tmp_path)["good"]
    assert (script.keys, script.args) == (("user",), ("limit", "rows"))
    taken = "local user = KEYS[1]\nlocal limit = tonumber(ARGV[1])\nlocal rows = cjson.decode(ARGV[2])\n"
    assert script.source == "-- Of b.\nlocal most, least = 9, 1\nlocal function held(b) end\n" + taken + body


def include_and_script(folder: Path, include: str, body: str) -> Script:
    (folder / "include").mkdir()
    (folder / "include" / "a.lua").write_text(include)
    (folder / "good.lua").write_text(f"--- KEYS[1] user\n--- @reply ok\n{body}")
    return load_scripts(folder)["good"]


MOST = "local MOST = 9\n\n"
ADD = "-- Adds.\nlocal function add(n)\n  return n + MOST\nend\n\n"
A = f"-- Of a.\n\n{MOST}{ADD}local function odd() end\n"


def test_a_script_has_no_more_of_an_include_than_it_uses(tmp_path: Path) -> None:
    """What is used, and what that uses, with the comment right above; other comments and functions are left out."""
    body = "-- Not odd().\nreturn {user, 'odd', add(1)}\n"
    script = include_and_script(tmp_path, A, f'--- @include "a"\n{body}')
    assert script.source == f"{MOST}{ADD}local user = KEYS[1]\n{body}"


def test_an_include_of_one_branch_stands_there(tmp_path: Path) -> None:
    body = "if user == '' then\n  --- @include \"a\"\n  add(1)\nend\nreturn {MOST}\n"
    script = include_and_script(tmp_path, A, f'--- @include "a"\n{body}')
    whole = f"{MOST}local user = KEYS[1]\nif user == '' then\n{ADD}  add(1)\nend\nreturn {{MOST}}\n"
    assert script.source == whole, "what both use is declared once"


def test_an_include_of_one_branch_is_unknown_elsewhere(tmp_path: Path) -> None:
    with pytest.raises(ScriptError, match="declared: add"):
        include_and_script(tmp_path, A, 'if user then\n  --- @include "a"\n  add(1)\nend\nreturn {add(2)}\n')


def test_scripts_are_in_folders_and_duplicate_names_are_refused(tmp_path: Path) -> None:
    for folder in ("include/deep", "one", "two"):
        (tmp_path / folder).mkdir(parents=True)
    (tmp_path / "include" / "deep" / "shared.lua").write_text("local function shared() end\n")
    script = tmp_path / "one" / "same.lua"
    script.write_text('--- @reply ok\n--- @include "shared"\nreturn {}')
    assert list(load_scripts(tmp_path)) == ["same"]
    (tmp_path / "two" / "same.lua").write_text(script.read_text())
    with pytest.raises(ScriptError, match=r"same\.lua has this name too"):
        load_scripts(tmp_path)


def test_an_include_is_inserted_once_and_before_its_use() -> None:
    source = SCRIPTS["decide_authorization"].source
    for function in ("now_ms", "int", "take_window", "open_grant", "record", "covers"):
        assert source.count(f"local function {function}(") == 1
        assert source.index(f"local function {function}(") == source.index(f"{function}(") - len("local function ")


@pytest.mark.gen_test
async def test_a_script_unknown_to_the_store_is_loaded_again(store: Store) -> None:
    world = await World.make(store)
    tokens = await world.tokens()
    await store.client.script_flush()
    rotated = await world.refresh(tokens.refresh_token)
    await store.client.script_flush()
    assert await world.lives(rotated.access_token)


class Answering:
    """A client whose scripts give answers chosen by a test."""

    def __init__(self, answer: Any) -> None:
        self.answer = answer

    async def evalsha(self, sha: str, numkeys: int, *keys_and_args: str | bytes | int) -> Any:
        return self.answer

    eval = evalsha


@pytest.mark.gen_test
@each(
    "answer",
    [
        pytest.param([b"maybe"], id="a word that is not in the header"),
        pytest.param([b"ok", 1], id="a field too few"),
        pytest.param([b"ok", 1, 2, 3], id="a field too many"),
        pytest.param([], id="nothing"),
        pytest.param([1, 2, 3], id="a number for a word"),
        pytest.param(b"ok", id="no list"),
        pytest.param(None, id="nil"),
    ],
)
async def test_an_undeclared_answer_is_a_defect(answer: Any) -> None:
    with pytest.raises(StoreError, match="take_window: the answer"):
        await Scripts(Answering(answer)).run("take_window", {"window": "w"}, limit=1, period=1)


@pytest.mark.gen_test
async def test_arguments_are_passed_by_name(memory_store: Store) -> None:
    with pytest.raises(StoreError, match="takes"):
        await memory_store.scripts.run("take_window", {"window": "w"}, limit=1)
    with pytest.raises(KeyError):
        await memory_store.scripts.run("take_window", {"window": "w"}, limit=1, duration=1)


@pytest.fixture
def recording(io_loop: IOLoop, valkey_engine: Any) -> Iterator[Recording]:
    """A recording client of an empty Valkey."""
    with valkey_engine.client() as client:
        client.flushall()
    made: Recording = Recording(io_loop.run_sync(lambda: connect(valkey_engine.url)))
    yield made
    io_loop.run_sync(made.aclose)


async def run_every_call(client: Any, keys: Keys) -> None:
    """One call of each method of the store, in a world of its own."""
    hasher = PasswordHasher(64, 1, workers=1, queue=10)
    store = Store(client, keys, hasher, session_idle=3600, session_lifetime=7200)
    store.apps.settle = 0
    for prepared in CALLS.values():
        ready = await prepared.prepare(await World.make(store))
        before = len(client.ran)
        await ready()
        assert {name for name, _, _ in client.ran[before:]} == set(prepared.scripts), prepared.method
    hasher.close()


@pytest.mark.gen_test(timeout=60)
async def test_every_script_touches_one_slot(recording: Recording, keys: Keys, valkey_engine: Any) -> None:
    """Checked by its declared keys, its header's derived keys, and the keys that the server saw."""
    with Monitor(valkey_engine) as monitor:
        await run_every_call(recording, keys)
    for name, script_keys, args in recording.ran:
        slots = {key_slot(key.encode()) for key in script_keys}
        assert len(slots) == 1, (name, script_keys)
        for position, argument in enumerate(args):
            # No key is derived from an argument that is empty.
            if argument and SCRIPTS[name].args[position] in SCRIPTS[name].derives:
                assert key_slot(f"{argument}anything".encode()) in slots, (name, argument)
    assert {name for name, _, _ in recording.ran} == set(SCRIPTS), "a script that no noun runs"
    touched = [*monitor.touched()]
    assert {script for script, _, _ in touched} >= {script.sha for script in SCRIPTS.values()}
    for script, declared, key in touched:
        assert key_slot(key) == key_slot(declared), (script, declared, key)


class Monitor:
    """The server's commands during the block."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._socket = socket.socket(socket.AF_UNIX)
        self.lines: list[bytes] = []

    def __enter__(self) -> Monitor:
        self._socket.connect(self._engine.socket_path)
        self._socket.sendall(b"MONITOR\r\n")
        return self

    def __exit__(self, kind: type[BaseException] | None, exc: BaseException | None, tb: TracebackType | None) -> None:
        with self._socket, self._engine.client() as client:
            client.echo("the end")
            seen = b""
            while b'"the end"' not in seen:
                seen += self._socket.recv(2**20)
            self.lines = seen.split(b"\r\n")

    def touched(self) -> Iterator[tuple[str, bytes, bytes]]:
        """Each key that a script touched, with the script's digest and the first of the keys it was called with."""
        script, declared = "", b""
        for line in self.lines:
            words = re.findall(rb'"((?:[^"\\]|\\.)*)"', line)
            command = words[0].upper() if words else b""
            if command == b"EVALSHA":
                script, declared = words[1].decode(), words[3]
            elif command == b"EVAL":  # of several that were sent at once, none may be loaded yet
                source = words[1].decode("unicode_escape").encode("latin-1")
                script, declared = hashlib.sha1(source, usedforsecurity=False).hexdigest(), words[3]
            elif b" lua]" in line and command not in (b"TIME", b"PUBLISH"):
                if command.decode() in BEFORE_KEY:
                    words = words[words.index(b"CREATE" if command == b"XGROUP" else b"STREAMS") :]
                for key in words[1:] if command in (b"DEL", b"UNLINK", b"EXISTS") else words[1:2]:
                    yield script, declared, key


def test_the_table_of_calls_covers_every_public_method(open_store: OpenStore) -> None:
    assert set(CALLS) == methods_of(open_store("memory"))
