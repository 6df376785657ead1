"""Texts of several sentences."""

from __future__ import annotations

from functools import reduce

from store.phrases import Phrase


def sentences(first: str, *more: str) -> str:
    """Whole sentences, one after the other: a language may part them otherwise."""
    return reduce(lambda one, other: Phrase("%(one)s %(other)s", one=one, other=other), more, first)
