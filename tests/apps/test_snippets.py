"""Runs the code samples of the developer portal, unchanged, against a running server."""

from __future__ import annotations

import asyncio
import os
import pty
import re
import select
import shutil
import subprocess
import sys
from asyncio.subprocess import PIPE
from collections.abc import Callable
from html import unescape
from pathlib import Path
from typing import Any, Self

import pytest

from handlers.developer.snippets import PLACEHOLDER, Snippet, snippets_of
from store.apps.registration import Registration
from store.names import SCOPES
from tests.support.browser.own_apps import own_app
from tests.support.http.driver import NAME, App, Service

HOSTILE = "https://app.example/cb?a='$(touch%20x)&b=;$HOME!n&c='';exit;"
COMMANDS = {"curl": ["bash", "-euo", "pipefail"], "python": [sys.executable], "javascript": ["node"]}
FILES = {"curl": "try.sh", "python": "try.py", "javascript": "try.mjs"}


async def run(
    service: Service,
    snippet: Snippet,
    app: App,
    folder: Path,
    *,
    pasted: Callable[[str], str] = str,
    status: int = 0,
) -> tuple[str, str]:
    """The output, with a person who opens the printed address, allows, and pastes the answer. `pasted` changes what the
    person pastes."""
    command = COMMANDS[snippet.name]
    if shutil.which(command[0]) is None:
        pytest.skip(f"no {command[0]} on this machine")
    file = folder / FILES[snippet.name]
    file.write_text(snippet.code)
    process = await asyncio.create_subprocess_exec(
        *command, str(file), cwd=folder, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    try:
        assert process.stdout is not None
        line = b""
        while not line.startswith(service.base_url.encode()):
            line = await process.stdout.readline()
            assert line, (await process.communicate())[1]
        browser = await service.signed_in()
        answer = (await browser.consent(line.decode().strip())).headers["Location"]
        assert answer.startswith(app.redirect_uri)
        out, err = await process.communicate(pasted(answer).encode() + b"\n")
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == status, err
    assert [path.name for path in folder.iterdir()] == [file.name], "a value was run"
    return out.decode(), err.decode()


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("public", [False, True], ids=["confidential", "public"])
@pytest.mark.parametrize("name", COMMANDS)
async def test_a_snippet_works_as_it_is_pasted(service: Service, name: str, public: bool, tmp_path: Path) -> None:
    app = await service.add_app("the-app", redirect_uris=(HOSTILE,), scopes=("profile", "data:read"), public=public)
    registration = await service.store.apps.find("the-app")
    assert registration is not None
    (snippet,) = (one for one in snippets_of(registration, service.base_url, app.secret) if one.name == name)
    out, err = await run(service, snippet, app, tmp_path)
    assert err == ""
    assert NAME in out
    assert "lk_rt_" in out


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("name", COMMANDS)
async def test_a_snippet_reads_the_balance(service: Service, name: str, tmp_path: Path) -> None:
    app = await service.add_app("the-app", scopes=("credits:read",))
    registration = await service.store.apps.find("the-app")
    assert registration is not None
    (snippet,) = (one for one in snippets_of(registration, service.base_url, app.secret) if one.name == name)
    out, err = await run(service, snippet, app, tmp_path)
    assert err == ""
    assert "spendable" in out


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("name", COMMANDS)
async def test_a_snippet_asks_a_model_and_no_issuer_is_awaited_where_none_is_sent(
    service: Service, name: str, tmp_path: Path
) -> None:
    app = await service.add_app("the-app", scopes=("credits:spend",))
    await service.store.apps.update("the-app", iss_in_response=False)
    await service.store.credits.grant(service.ada, 1_000_000)
    registration = await service.store.apps.find("the-app")
    assert registration is not None
    snippets = snippets_of(registration, service.base_url, app.secret, "latchkey-echo")
    (snippet,) = (one for one in snippets if one.name == name)
    out, err = await run(service, snippet, app, tmp_path)
    assert err == ""
    assert "credits_charged" in out
    assert "api_key ACCESS_TOKEN" in snippet.code
    assert all("chat/completions" not in one.code for one in snippets_of(registration, service.base_url, None))


@pytest.mark.gen_test
async def test_the_page_of_an_app_asks_a_model_that_is_offered(service: Service) -> None:
    browser = await service.confirmed()
    app = await own_app(service, browser)
    await service.store.apps.update(app.client_id, scopes=("credits:spend",))
    page = await browser.get(f"/developer/apps/{app.client_id}")
    assert unescape(page.body.decode()).count('{"model": "latchkey-echo", "max_tokens": 100') == len(COMMANDS)


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("name", COMMANDS)
async def test_a_snippet_stores_a_document_and_reads_it_back(service: Service, name: str, tmp_path: Path) -> None:
    app = await service.add_app("the-app", scopes=("data:read", "data:write"))
    registration = await service.store.apps.find("the-app")
    assert registration is not None
    (snippet,) = (one for one in snippets_of(registration, service.base_url, app.secret) if one.name == name)
    out, err = await run(service, snippet, app, tmp_path)
    assert err == ""
    assert out.rstrip().endswith(("{'text': 'Hello'}", "{ text: 'Hello' }", '{"text": "Hello"}'))


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("name", COMMANDS)
@pytest.mark.parametrize(
    ("pattern", "instead", "reason"),
    [
        ("code=[^&]+", "code=lk_ac_x", "invalid_grant"),
        ("state=[^&]+", "state=x", "not the answer to this sign-in"),
        ("iss=[^&]+", "iss=https%3A%2F%2Fother.example", "comes from another server"),
        ("iss=[^&]+", "no=iss", "comes from another server"),
        ("code=[^&]+", "error=access_denied", "access_denied"),
    ],
    ids=["wrong-code", "wrong-state", "another-server", "no-issuer", "denied"],
)
async def test_a_snippet_ends_with_the_reason_of_a_failure(
    service: Service, name: str, pattern: str, instead: str, reason: str, tmp_path: Path
) -> None:
    app = await service.add_app("the-app", scopes=("profile",))
    registration = await service.store.apps.find("the-app")
    assert registration is not None
    (snippet,) = (one for one in snippets_of(registration, service.base_url, app.secret) if one.name == name)
    shown = await run(service, snippet, app, tmp_path, pasted=lambda answer: re.sub(pattern, instead, answer), status=1)
    assert reason in "".join(shown)
    assert "invalid_token" not in "".join(shown)


TERMINALS = {"curl": ["bash", "--norc", "--noprofile", "-i"], "python": [sys.executable, "-i", "-q"]}


class Terminal:
    """A program at a terminal that sends all input at once, as a raw paste does. A context manager."""

    def __init__(self, command: list[str], folder: Path) -> None:
        self.ours, theirs = pty.openpty()
        # A dumb terminal has no bracketed paste: the program reads line by line.
        env = {**os.environ, "TERM": "dumb", "HISTFILE": "", "PYTHON_BASIC_REPL": "1"}
        self.process = subprocess.Popen(
            command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
        )
        os.close(theirs)
        self.shown = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *raised: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self.ours)

    async def type(self, text: str) -> None:
        """Types a text. The program reads while it is written."""
        writing = asyncio.create_task(asyncio.to_thread(os.write, self.ours, text.encode()))
        while not writing.done():
            await self.read()
        await writing

    async def read(self) -> None:
        ready, _, _ = await asyncio.to_thread(select.select, [self.ours], [], [], 0.1)
        if ready:
            self.shown += os.read(self.ours, 65536).decode("utf-8", "replace")

    async def find(self, pattern: str) -> str:
        """The first match of what the terminal shows."""
        while not (found := re.search(pattern, self.shown, re.MULTILINE)):
            assert self.process.poll() is None, self.shown
            await self.read()
        return found[0]


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("name", TERMINALS)
async def test_a_snippet_survives_a_raw_paste_into_a_terminal(service: Service, name: str, tmp_path: Path) -> None:
    app = await service.add_app("the-app", redirect_uris=(HOSTILE,), scopes=("profile",))
    registration = await service.store.apps.find("the-app")
    assert registration is not None
    (snippet,) = (one for one in snippets_of(registration, service.base_url, app.secret) if one.name == name)
    with Terminal(TERMINALS[name], tmp_path) as terminal:
        await terminal.type(snippet.code)
        address = await terminal.find(rf"^{re.escape(service.base_url)}/oauth/authorize\?\S+code_challenge_method=S256")
        browser = await service.signed_in()
        answer = (await browser.consent(address)).headers["Location"]
        await terminal.type(f"\n{answer}\n")  # Enter after a paste is no answer
        await terminal.find(NAME)
        assert "lk_rt_" in terminal.shown
        assert not re.search("syntax error|SyntaxError|command not found|Traceback", terminal.shown)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.gen_test(timeout=60)
@pytest.mark.parametrize("name", COMMANDS)
async def test_without_the_profile_scope_the_snippet_ends_with_the_tokens(
    service: Service, name: str, tmp_path: Path
) -> None:
    app = await service.add_app("the-app", scopes=("data:read",))
    registration = await service.store.apps.find("the-app")
    assert registration is not None
    (snippet,) = (one for one in snippets_of(registration, service.base_url, app.secret) if one.name == name)
    out, _ = await run(service, snippet, app, tmp_path)
    assert "lk_at_" in out
    assert NAME not in out


def test_an_unknown_secret_is_a_placeholder() -> None:
    fields: dict[str, Any] = {"redirect_uris": (HOSTILE,), "scopes": SCOPES}
    app = Registration("an-app", "An App", **fields)
    assert all(PLACEHOLDER in snippet.code for snippet in snippets_of(app, "http://localhost:8080", None))
    public = Registration("an-app", "An App", **fields, public=True)
    for snippet in snippets_of(public, "http://localhost:8080", None):
        assert PLACEHOLDER not in snippet.code
        assert "client_secret" not in snippet.code.lower()
