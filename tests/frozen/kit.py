"""The test kit for apps as who imports it sees it: names, signatures, fields, fixtures."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Iterator
from configparser import ConfigParser
from typing import Any

import latchkey
import latchkey.testing
from latchkey.testing import plugin
from tests.frozen.source import ROOT


def names() -> Iterator[str]:
    """A line for each public name, and for whatever it offers."""
    for name in latchkey.__all__:
        yield f"latchkey.{name}{_signature(getattr(latchkey, name))}"
    for name in latchkey.testing.__all__:
        yield from _of_class(f"latchkey.testing.{name}", getattr(latchkey.testing, name))
    for name, value in vars(plugin).items():
        if type(value).__name__ == "FixtureFunctionDefinition" and not name.startswith("_"):
            yield f"fixture {name}"
    settings = ConfigParser()
    settings.read(ROOT / "setup.cfg", "utf-8")
    for group, lines in settings["options.entry_points"].items():
        yield from (f"entry point {group} {line}" for line in lines.strip().splitlines())


def _of_class(at: str, found: type) -> Iterator[str]:
    yield f"{at}{_signature(found)}"
    if dataclasses.is_dataclass(found):
        for field in dataclasses.fields(found):
            yield f"{at}.{field.name}: {field.type}"
    for name, value in vars(found).items():
        if name.startswith("_"):
            continue
        if isinstance(value, property):
            yield f"{at}.{name}: {inspect.signature(value.fget).return_annotation}" if value.fget else f"{at}.{name}"
        elif callable(value):
            yield f"{at}.{name}{_signature(value)}"


def _signature(found: Any) -> str:
    return str(inspect.signature(found)) if callable(found) else ""
