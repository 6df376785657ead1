"""The command line as people see it: what help says of settings, commands and options, and what TOML files may hold."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import manage
import server

HIDDEN = ("operator_keys", "secret_keys")
"""Settings without a flag, which help does not show."""
_DEFAULT = re.compile(r"(?:(.*) )?Default: (.*) \[(LATCHKEY_\w+)\]")


class Output(NamedTuple):
    """What a command left behind."""

    status: int
    out: str
    err: str


class Row(NamedTuple):
    """A line of help: the section it is in, a flag or a name, and what is said of it."""

    section: str
    name: str
    help: str


def run(*words: str, environ: Mapping[str, str] | None = None, program: Any = manage) -> Output:
    """Runs a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            status = program.main(list(words)) if environ is None else program.main(list(words), environ)
        except SystemExit as ended:
            status = int(ended.code or 0)
    return Output(status, out.getvalue(), err.getvalue())


def rows(text: str) -> list[Row]:
    """Help, taken apart: the usage, the paragraphs, and each line of a section, however it was folded."""
    found: list[list[str]] = []
    section, goes_on = "", False
    for line in text.splitlines():
        title = re.fullmatch(r"(\w[^:]*):", line)
        begun = re.fullmatch(r"  (\S.*?)(?:\s{2,}(\S.*))?", line) if section else None
        if title:
            section, goes_on = title[1], False
        elif not line.strip():
            section, goes_on = "", False
        elif begun:
            found.append([section, begun[1], begun[2] or ""])
            goes_on = True
        elif goes_on:
            found[-1][2] = f"{found[-1][2]} {line.strip()}".strip()
        else:
            found.append(["", "usage" if line.startswith("Usage:") else "about", line])
            goes_on = True
    return [Row(*one) for one in found if one[0] != "Settings"]


class Setting(NamedTuple):
    """A setting as help shows it."""

    group: str
    flag: str
    default: str
    environment: str
    help: str


def settings() -> list[Setting]:
    """The settings of the server."""
    found = []
    for row in rows(run("--help", program=server).out):
        match = _DEFAULT.fullmatch(row.help)
        if match:
            found.append(Setting(row.section, row.name, match[2], match[3], match[1] or ""))
    return found


def toml_keys(names: set[str], folder: Path) -> Iterator[str]:
    """Those of `names` that a configuration file may hold."""
    left = sorted(names)
    file = folder / "settings.toml"
    while left:
        file.write_text("".join(f"{name} = []\n" for name in left))
        said = run("--config", str(file), "keys", "list", "--json", environ={})
        error = json.loads(said.err)["error_description"]
        unknown = re.match(r"'(\w+)' is no setting", error)
        if not unknown:
            # Every key is known, and the complaint is about a value.
            assert " must be " in error, error
            break
        left.remove(unknown[1])
    yield from left


def commands(*words: str) -> Iterator[tuple[str, list[Row]]]:
    """Every command, however deep, with its help."""
    found = rows(run(*words, "--help", environ={}).out)
    yield " ".join(words), found
    usage = next(row.help for row in found if row.name == "usage")
    if re.search(r" (COMMAND|ACTION)\b", usage):
        for row in found:
            if row.section not in ("", "Options", "Examples") and row.name != "serve":
                yield from commands(*words, row.name)


def of_commands() -> tuple[list[str], list[str]]:
    """A line for each command and each of its flags, and what help says of them."""
    names, words = [], []
    for command, found in commands():
        for row in found:
            if row.section == "Examples":
                words.append(f"{command} example: {row.name} {row.help}".replace(" \\ ", " ").strip())
            elif row.section:
                needed = ", required" if row.section == "Required" else ""
                if row.name != "-h, --help":
                    names.append(f"{command} {row.name}{needed}".strip())
                words.append(f"{command} {row.name}: {row.help}".strip())
            else:
                words.append(f"{command} {row.name}: {row.help}".strip())
    return names, words
