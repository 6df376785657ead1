"""Tables of fields: what happens to each field of a request that is translated to another dialect."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from math import isfinite
from typing import Any, Literal, TypeGuard


class Untranslatable(Exception):
    """A request has no counterpart in the dialect of the model's server. `param` is the path of the field, as
    `messages[2].content`; the message says why, for people."""

    def __init__(self, param: str, why: str = "") -> None:
        super().__init__(why or f"{param} is not supported for this model.")
        self.param = param


def refers(param: str) -> Untranslatable:
    """The complaint about a reference to an item of an earlier response. SDKs send one unless they know better."""
    return Untranslatable(param, f"{param}: responses are not kept here. Send the items themselves, with store: false.")


@dataclass(frozen=True, slots=True)
class Rule:
    """What happens to a field: `read` by a translator, `copied` under another name if the value is right, `ignored`
    whatever it says, or accepted with some values `only` and then left out."""

    kind: Literal["read", "copied", "ignored", "only"]
    to: str = ""
    right: Callable[[Any], bool] = bool
    values: tuple[Any, ...] = ()


REFERENCE = "item_reference"
"""The type of an item that stands for one of an earlier response."""
READ = Rule("read")
IGNORED = Rule("ignored")
Table = Mapping[str, Rule]
"""A field that is missing in the table is refused by name."""


def copied(to: str, right: Callable[[Any], bool]) -> Rule:
    """The field goes on under the name `to`."""
    return Rule("copied", to, right)


def only(*values: Any) -> Rule:
    """The field may have one of these values, which are the default of the other dialect."""
    return Rule("only", values=values)


def number(least: float, most: float) -> Callable[[Any], bool]:
    """Whether a value is a number in this range."""

    def right(value: Any) -> bool:
        return is_number(value) and least <= value <= most

    return right


def is_number(value: object) -> bool:
    """Whether a value is a number of JSON."""
    return (
        isinstance(value, int | float) and not isinstance(value, bool) and (isinstance(value, int) or isfinite(value))
    )


def is_whole(value: object) -> TypeGuard[int]:
    """Whether a value is a whole number of JSON."""
    return isinstance(value, int) and not isinstance(value, bool)


def is_flag(value: object) -> bool:
    """Whether a value is true or false."""
    return isinstance(value, bool)


def is_text(value: object) -> bool:
    """Whether a value is text."""
    return isinstance(value, str)


def apply(table: Table, fields: Mapping[str, Any], place: str = "") -> dict[str, Any]:
    """The copied fields. A field that is null counts as missing. `place` is the path of the object. Raises
    Untranslatable."""
    result = {}
    for name, value in fields.items():
        if value is None:
            continue
        rule, param = table.get(name), f"{place}.{name}" if place else name
        if rule is None:
            raise Untranslatable(shown(param))
        if rule.kind == "copied":
            if not rule.right(value):
                raise Untranslatable(param, f"{param} has a value that this model does not take.")
            result[rule.to] = value
        elif rule.kind == "only" and not any(type(value) is type(known) and value == known for known in rule.values):
            raise Untranslatable(param)
    return result


def shown(param: str) -> str:
    """A path with an unknown name in it, fit for an answer."""
    return "".join(sign if sign.isprintable() else "?" for sign in param[:200])


def objects(value: object, param: str) -> list[dict[str, Any]]:
    """The value as a list of objects; null is an empty one. Raises Untranslatable."""
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise Untranslatable(param, f"{param} must be a list of objects.")
    return value


def an_object(value: object, param: str) -> dict[str, Any]:
    """The value as an object; null is an empty one. Raises Untranslatable."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise Untranslatable(param, f"{param} must be an object.")
    return value


def text(value: object, param: str) -> str:
    """The value as text. Raises Untranslatable."""
    if not isinstance(value, str):
        raise Untranslatable(param, f"{param} must be text.")
    return value
