"""Compares values and rows with the forms of `store/fsck/kinds.py`."""

from __future__ import annotations

import re
from functools import cache

from store.fsck.kinds import KeyKind


def matches(form: bytes, value: bytes) -> bool:
    """Whether all of a value has this form."""
    return _compiled(form).fullmatch(value) is not None


@cache
def _compiled(form: bytes) -> re.Pattern[bytes]:
    # The cache of `re` takes longer than most of these matches.
    return re.compile(form, re.S)


@cache
def _name_form(others: str) -> re.Pattern[str]:
    return re.compile(others)


def wrong_fields(kind: KeyKind, row: dict[str, bytes]) -> list[str]:
    """The fields of a row that are missing or malformed, and unknown fields."""
    wrong = [name for name, form in kind.fields.items() if name not in row or not matches(form, row[name])]
    wrong += [name for name, form in kind.forms.items() if name in row and not matches(form, row[name])]
    if kind.others is not None:
        is_known_name = _name_form(kind.others).fullmatch
        wrong += [name for name in row if name not in kind.fields and not is_known_name(name)]
    return wrong
