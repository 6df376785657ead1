"""docs/webhooks.md: its code works when pasted, and its statements on events and attempts are true."""

from __future__ import annotations

import asyncio
import contextlib
import re
import shutil
import sys
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from dev.lab.ports import free_port
from handlers.developer.receivers import receivers
from handlers.developer.webhooks import EVENT_TEXTS, TEST
from outbound.address_policy import AddressPolicy
from outbound.webhooks.poster import EACH_APP
from outbound.webhooks.posting import WHOLE_SECONDS, Poster
from outbound.webhooks.retries import ATTEMPTS, PAUSES
from outbound.webhooks.signing import body_of, signed
from store.apps.webhooks import new_webhook_secret
from store.lifetimes import ACCESS_TOKEN, DAY, DELIVERY, MINUTE, WEBHOOK_OVERLAP
from store.webhooks.deliveries import MOST, SHOWN

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "docs" / "webhooks.md").read_text("utf-8")
BODY = body_of("user.deleted", 1, "web", "0" * 32, {})
WORDS = " ".join(TEXT.split())


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```$", TEXT, re.MULTILINE | re.DOTALL)


def test_the_library_snippet_accepts_only_signed_events() -> None:
    space: dict[str, Any] = {}
    exec(blocks("python")[0], space)  # noqa: S102  # it is our own document
    secret = new_webhook_secret()
    headers = signed("an-id", int(time.time()), BODY, [secret])
    assert space["event_of"](BODY, headers, secret)["type"] == "user.deleted"
    assert space["event_of"](BODY + b" ", headers, secret) is None
    assert space["event_of"](BODY, headers, new_webhook_secret()) is None


@contextlib.asynccontextmanager
async def running(language: str, folder: Path, secret: str) -> AsyncIterator[tuple[str, asyncio.StreamReader]]:
    """The document's receiver: its URL and its output."""
    port = free_port()
    environment = {"PATH": "/usr/bin:/bin", "WEBHOOK_SECRET": secret, "PORT": str(port), "TMPDIR": str(folder)}
    silent = asyncio.subprocess.DEVNULL
    command = await command_of(language, folder, port)
    process = await asyncio.create_subprocess_exec(
        *command, env=environment, stdout=asyncio.subprocess.PIPE, stderr=silent
    )
    try:
        async with asyncio.timeout(20):
            while True:
                with contextlib.suppress(OSError):
                    _, writer = await asyncio.open_connection("127.0.0.1", port)
                    writer.close()
                    break
                await asyncio.sleep(0.02)
        assert process.stdout
        yield f"http://127.0.0.1:{port}/webhooks", process.stdout
    finally:
        process.kill()
        await process.communicate()


async def command_of(language: str, folder: Path, port: int) -> list[str]:
    """The command that runs the document's receiver. Skips if this machine has no such interpreter."""
    name, interpreter = {
        "python": ("receiver.py", sys.executable),
        "javascript": ("receiver.mjs", shutil.which("node")),
        "go": ("receiver.go", shutil.which("go")),
        "php": ("receiver.php", shutil.which("php")),
    }[language]
    if interpreter is None:
        pytest.skip(f"no {language} on this machine")
    file = folder / name
    file.write_text(blocks(language)[-1])
    if language == "php":
        return [interpreter, "-S", f"127.0.0.1:{port}", str(file)]
    if language == "go":
        built, home = folder / "receiver", {"HOME": str(folder), "GOCACHE": str(folder / "cache")}
        build = await asyncio.create_subprocess_exec(
            interpreter, "build", "-o", str(built), str(file), env={"PATH": "/usr/bin:/bin", **home}
        )
        assert await build.wait() == 0
        return [str(built)]
    return [interpreter, str(file)]


def test_the_portal_shows_the_documents_receivers() -> None:
    assert {one.language: one.code for one in receivers()} == {
        "Python": blocks("python")[-1],
        "Node": blocks("javascript")[-1],
        "Go": blocks("go")[-1],
        "PHP": blocks("php")[-1],
    }


@pytest.mark.gen_test(timeout=180)
@pytest.mark.parametrize("language", ["python", "javascript", "go", "php"])
async def test_the_receiver_acts_once_on_signed_events_only(language: str, tmp_path: Path) -> None:
    secret, older, now = new_webhook_secret(), new_webhook_secret(), int(time.time())
    poster = Poster(AddressPolicy(loopback=True), 4)
    async with running(language, tmp_path, secret) as (url, printed):

        async def post(headers: dict[str, str], body: bytes = BODY) -> int | None:
            return (await poster.post(url, headers, body)).status

        right = signed("one", now, BODY, [secret])
        assert await post(signed("none", now, BODY, [older])) == 400
        assert await post(right, BODY.replace(b"web", b"wob")) == 400
        assert await post(signed("late", now - 301, BODY, [secret])) == 400
        assert await post(signed("early", now + 400, BODY, [secret])) == 400
        assert await post({**right, "webhook-id": "other"}) == 400
        assert await post({}) == 400
        assert [await post(right), await post(right)] == [204, 204]
        assert await post(signed("two", now, BODY, [older, secret])) == 204
        lines = [await asyncio.wait_for(printed.readline(), 10) for _ in range(2)]
        assert lines == [f"user.deleted {'0' * 32}\n".encode()] * 2
    await poster.close()


def test_the_table_has_every_event_and_every_reason() -> None:
    section = TEXT.split("\n## What is posted\n")[1].split("\n## ")[0]
    rows = [re.split(r"\s*\|\s*", line)[1:3] for line in section.splitlines() if line.startswith("| ")][1:]
    types = [name.strip("`") for name, _ in rows if name]
    assert types == [*(name for name, _ in EVENT_TEXTS), TEST]
    reasons = {reason.strip("`") for _, reason in rows} - {"none"}
    announced = set()
    for file in [*(ROOT / "lua").glob("**/*.lua")]:
        for event, reason in re.findall(r"announce\(\w+, '([a-z.]+)', \w+, \w+, '?(\w*)'?,", file.read_text()):
            assert event in types, f"{file.name}: {event}"
            announced.add(reason)
    assert announced - {""} <= reasons | {"reason"}
    for reason in reasons:
        written = [*(ROOT / "lua").glob("**/*.lua"), *(ROOT / "store").rglob("*.py")]
        assert any(f"'{reason}'" in one.read_text() or f'"{reason}"' in one.read_text() for one in written), reason


def test_the_page_says_which_tokens_a_revocation_event_covers() -> None:
    """`tests/webhooks/test_outbox_events.py` has the events."""
    [row] = [line for line in TEXT.splitlines() if "`token_revoked`" in line]
    assert "holds a refresh token" in row
    assert ACCESS_TOKEN == 60 * MINUTE
    assert "revokes only an access token (it lasts an hour at most)" in WORDS


def test_the_documented_numbers_match_the_code() -> None:
    hours = [pause // 3600 for pause in PAUSES[5:]]
    assert PAUSES[:5] == (5, 30, 120, 600, 1800)
    assert hours == [1, 3, 6, 12, 24, 24]
    assert "after 5 and 30 seconds, 2, 10 and 30 minutes, and 1, 3, 6, 12, 24 and 24 hours" in WORDS
    assert f"{ATTEMPTS} attempts in three days" in WORDS
    assert f"within {WHOLE_SECONDS:g} seconds" in WORDS
    assert f"for {DELIVERY // DAY} days" in WORDS
    assert f"the newest {SHOWN} events of each app, and all others that still wait, up to {MOST:,} in all" in WORDS
    assert f"An app has at most {MOST:,} of them" in (ROOT / "docs" / "bounds.md").read_text("utf-8")
    assert "none is lost" not in WORDS
    assert {1: "one", 4: "four"}[EACH_APP] in "At most four posts to one app"
    assert f"For {WEBHOOK_OVERLAP // (60 * 60 * 1000)} hours, both secrets sign" in WORDS
