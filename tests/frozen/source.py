"""What is read off the files of the product, wherever they lie: scripts and their answers, names in quotes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from tests.support.lists.mail_names import mail_templates

ROOT = Path(__file__).resolve().parent.parent.parent
NO_PRODUCT = {"build", "deploy", "dev", "docs", "examples", "tests"}
"""Folders at the top that no server runs."""


def files(ending: str) -> Iterator[Path]:
    """The files of the product with this ending."""
    for top in ROOT.iterdir():
        if top.name not in NO_PRODUCT and not top.name.startswith("."):
            yield from top.rglob(f"*{ending}") if top.is_dir() else [top] if top.suffix == ending else []


@cache
def scripts() -> dict[str, set[str]]:
    """Every script of the store by its bare name, with the first words of its answers."""
    return {
        path.stem: set(re.findall(r"^--- @reply (\w+)", path.read_text("utf-8"), re.MULTILINE))
        for path in files(".lua")
        if "include" not in path.parts
    }


@cache
def quoted() -> frozenset[str]:
    """Every name that stands in quotes somewhere in the code, and each part of one with colons or braces."""
    found: set[str] = set()
    for path in (*files(".py"), *files(".lua")):
        for one in re.findall(r"""["']([^"'\s]+)["']""", path.read_text("utf-8")):
            found.update(re.split(r"[:{}]", one), [one])
    return frozenset(found)


def loggers() -> set[str]:
    """The names under which the product logs."""
    return {
        name
        for path in files(".py")
        for name in re.findall(r'getLogger\("(latchkey[a-z.]*)"\)', path.read_text("utf-8"))
    }


def mails() -> set[str]:
    """The names of the mails that people get."""
    return set(mail_templates())
