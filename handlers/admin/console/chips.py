"""The filters in force above a list: each is a chip with a link to the list without it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlencode

from store.phrases import Phrase

LABELS: dict[str, str] = {
    "query": Phrase("Search term"),
    "status": Phrase("Status"),
    "state": Phrase("Status"),
    "person": Phrase("Person"),
    "app": Phrase("App"),
    "operator": Phrase("Operator"),
    "event": Phrase("Event"),
    "type": Phrase("Event"),
    "request": Phrase("Request ID"),
    "transaction": Phrase("Transaction"),
    "kind": Phrase("Kind"),
    "since": Phrase("Since"),
    "until": Phrase("Until"),
}
"""The names of all filters, by their parameters."""


class Chip(NamedTuple):
    """A filter in force."""

    label: str
    value: str
    without: str
    """The address of the list without this filter."""


class Chips(NamedTuple):
    """All filters in force, in the order of the form. `page`: the address of the whole list."""

    page: str
    all: list[Chip]


def chips_of(page: str, chosen: Mapping[str, str], **names: Mapping[str, str]) -> Chips:
    """The chips of a list at `page`. `chosen`: the parameters in force; one without a label stays in all addresses, but
    gets no chip. `names`: what people read in place of the values of a parameter."""
    given = {name: value for name, value in chosen.items() if value}
    kept = {name: value for name, value in given.items() if name not in LABELS}
    return Chips(
        _address(page, kept),
        [
            Chip(
                LABELS[name],
                names.get(name, {}).get(value, value),
                _address(page, {other: given[other] for other in given if other != name}),
            )
            for name, value in given.items()
            if name in LABELS
        ],
    )


def _address(page: str, params: Mapping[str, str]) -> str:
    return f"{page}?{urlencode(params)}" if params else page
