"""The measurement of first paints: it reads Chromium's trace, and visits ten pages of a real server."""

from __future__ import annotations

from typing import Any

import pytest

from dev.bench.painting import SIGNED_IN, SIGNED_OUT, first_paints, measure


def test_a_paint_belongs_to_the_navigation_with_its_id() -> None:
    def event(name: str, ts: float, **data: str) -> dict[str, Any]:
        return {"name": name, "ts": ts, "args": {"frame": "F", "data": data}}

    events: list[dict[str, Any]] = [
        event("firstPaint", 61_000.0, navigationId="b"),
        event("navigationStart", 1_000.0, navigationId="a", documentLoaderURL="http://here/"),
        event("navigationStart", 2_000.0, navigationId="empty", documentLoaderURL=""),
        event("firstPaint", 3_000.0, navigationId="empty"),
        event("navigationStart", 31_000.0, navigationId="b", documentLoaderURL="http://here/account"),
        event("firstPaint", 21_500.0, navigationId="a"),
        {"name": "process_name", "args": {"name": "Renderer"}},
    ]
    assert first_paints(events) == {"http://here/": [20.5], "http://here/account": [30.0]}


@pytest.mark.bench
def test_every_page_is_painted() -> None:
    found = measure(1)
    assert set(found) == {"no server", *SIGNED_OUT, *SIGNED_IN}
    assert all(len(paints) == 1 and paints[0] > 0 for paints in found.values())
