"""What commands answer under `--json`: each is run in this process, on a store of its own, and its fields are noted."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any
from unittest import mock

from tests.frozen.command_line import run
from tests.frozen.shapes import shape

EMAIL, BOB = "ada@example.com", "bob@example.com"
NEW = ("--redirect-uri", "https://web.example/cb", "--scopes", "profile data:read")


class Operator:
    """Runs commands with these settings, and notes the shapes of answers in `seen`. `people`: ids of those it made."""

    def __init__(self, **environ: str) -> None:
        self.environ: Mapping[str, str] = {"LATCHKEY_PASSWORD_MEMORY": "8192", **environ}
        self.seen: set[str] = set()
        self.people: list[str] = []

    def ask(self, *words: str) -> Any:
        """The JSON of a command that works, or the error of one that does not."""
        said = run(*words, "--json", environ=self.environ)
        noun = words[0] if words[0] in ("fsck", "audit") else " ".join(words[:2])
        if said.status and not said.out:
            answer = json.loads(said.err)
            self.seen |= {f"a refusal, status {said.status}: {line}" for line in shape(answer)}
            return answer
        answer = json.loads(said.out)
        self.seen |= {f"{noun}: {line}" for line in shape(answer)}
        return answer


def begin(url: str, ring: str) -> tuple[Operator, str]:
    """The commands that make apps and people on a store of its own, and the password of Ada, who owns the app `web`."""
    one = Operator(LATCHKEY_REDIS_URL=url, LATCHKEY_SECRET_KEYS=ring, LATCHKEY_BASE_URL="http://localhost:8080")
    ada = one.ask("user", "create", "--email", EMAIL, "--name", "Ada")
    one.ask("app", "create", "--name", "Web", "--client-id", "web", "--webhook-url", "http://localhost:9/", *NEW)
    one.ask("app", "create", "--name", "Other", "--client-id", "other", *NEW)
    one.ask("app", "update", "web", "--owner", EMAIL)
    one.ask("token", "mint", "--user", EMAIL, "--client-id", "web", "--scopes", "profile")
    one.ask("app", "rotate-secret", "web")
    one.ask("app", "rotate-webhook-secret", "web")
    one.ask("credits", "grant", EMAIL, "5000", "--reason", "Payment 17", "--key", "payment-17")
    one.ask("user", "invite", "--email", "new@example.com")
    bob = one.ask("user", "create", "--email", BOB, "--name", "Bob")
    one.people = [ada["sub"], bob["sub"]]
    return one, str(ada["password"])


def go_on(one: Operator, folder: Path) -> None:
    """The commands that show, change and end what is there."""
    for delivery in one.ask("app", "deliveries", "web")["deliveries"]:
        one.ask("app", "replay", "web", delivery["id"])
    one.ask("credits", "show", EMAIL)
    one.ask("user", "list")
    one.ask("user", "show", EMAIL)
    one.ask("user", "export", EMAIL, "--output", str(folder / "ada.zip"))
    for action in ("set-password", "reset-factors", "disable", "enable"):
        one.ask("user", action, BOB)
    one.ask("user", "delete", BOB, "--yes")
    one.ask("app", "show", "web")
    one.ask("app", "list")
    # The command waits until no server has the registration in its cache.
    with mock.patch("asyncio.sleep", partial(asyncio.sleep, 0)):
        one.ask("app", "delete", "other", "--yes")
    one.ask("app", "show", "nobody")
    one.ask("app", "shown")
    one.ask("audit")
    one.ask("fsck")


def on_a_directory(folder: Path) -> Operator:
    """The commands about the embedded store and its keys, on a data directory where no server runs."""
    one = Operator(LATCHKEY_DATA_DIR=str(folder / "data"))
    one.ask("keys", "generate")
    one.ask("keys", "rotate")
    one.ask("keys", "list")
    one.ask("keys", "reencrypt")
    one.ask("keys", "retire", "1")
    one.ask("store", "backup", str(folder / "copy.rdb"), "--keys", str(folder / "keys"))
    one.ask("store", "end-tokens", "--yes")
    again = Operator(LATCHKEY_DATA_DIR=str(folder / "again"))
    again.ask("store", "restore", str(folder / "copy.rdb"), "--keys", str(folder / "keys"))
    one.seen |= again.seen
    return one
