"""The timing measurement runs, and its verdicts are right; nothing depends on speed."""

from __future__ import annotations

import random
from itertools import count, repeat
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import Mock

import pytest

from dev.bench.measure import Unexpected
from dev.bench.parts import results
from dev.timing import __main__ as timing
from dev.timing import pairs
from dev.timing.judging import Judged, judge, rank_chance
from dev.timing.pairs import HASH, Pair, pairs_of
from dev.timing.stage import Response, Stage, staged
from store.limits import network_of


def samples(number: int, apart: float, noise: float = 20.0) -> list[tuple[float, float]]:
    """Pairs whose first is slower by this much, under shared noise and individual noise."""
    made = random.Random(5)
    return [
        (both + apart + made.expovariate(1 / noise), both + made.expovariate(1 / noise))
        for both in (500 + made.expovariate(1 / 200) for _ in range(number))
    ]


def test_equal_kinds_are_found_equal() -> None:
    found = judge(samples(2000, 0))
    assert found.within(10)
    assert not found.differs
    assert found.chance > 0.001
    assert found.low < found.difference < found.high


@pytest.mark.parametrize("apart", [-30.0, 30.0])
def test_a_difference_is_found(apart: float) -> None:
    found = judge(samples(2000, apart))
    assert found.differs
    assert not found.within(30)
    assert found.within(60)
    assert found.difference == pytest.approx(apart, abs=5)


def test_too_few_samples_prove_nothing() -> None:
    found = judge(samples(40, 0, noise=1000))
    assert not found.differs
    assert not found.within(100), "that no difference is found is no proof that there is none"
    with pytest.raises(ValueError, match="40 pairs"):
        judge(samples(39, 0))


def test_the_interval_holds_the_median_as_often_as_it_says() -> None:
    """Of a thousand measurements of two equal kinds, one is found to differ; more than five are not chance."""
    chance = random.Random(7)
    alike = ([(chance.random(), chance.random()) for _ in range(60)] for _ in range(1000))
    assert sum(judge(one).differs for one in alike) <= 5


def test_ranks_are_compared_as_in_the_books() -> None:
    assert rank_chance([1, 2, 3], [4, 5, 6]) == pytest.approx(0.0495, abs=1e-4)
    assert rank_chance([4, 5, 6], [1, 2, 3]) == pytest.approx(0.0495, abs=1e-4)
    assert rank_chance([1, 1, 1], [1, 1, 1]) == 1
    assert rank_chance([1, 2, 2, 3], [2, 2, 3, 3]) == pytest.approx(0.3428, abs=1e-4)


def test_every_pair_is_answered_alike(tmp_path: Path) -> None:
    with TemporaryDirectory(prefix="timing-", dir="/tmp") as directory, staged(Path(directory), 10) as stage:
        every = pairs_of(stage)
        for pair in every:
            assert len(pair.measure(stage, 6)) == int(6 * pair.share)
        assert sum(pair.bound is None for pair in every) == 1
        assert max(pair.bound or 0 for pair in every) == HASH
        other = Pair("odd", every[0].first, lambda: stage.userinfo("x"), 400, 1.0)
        with pytest.raises(Unexpected, match="odd: 401"):
            other.measure(stage, 1)


def test_requests_do_not_share_a_network() -> None:
    stage = object.__new__(Stage)
    stage._addresses = count(1)
    networks = [network_of(stage._from()["X-Forwarded-For"]) for _ in range(2000)]
    assert len(set(networks)) == 2000


@pytest.mark.parametrize("mails", [True, False])
def test_a_form_that_sends_mail_waits_while_the_server_has_no_room(
    monkeypatch: pytest.MonkeyPatch, mails: bool
) -> None:
    pauses: list[float] = []
    monkeypatch.setattr(pairs, "sleep", pauses.append)
    stage = Mock(spec=Stage)
    stage.ask.side_effect = [Response(status, b"", 1.0) for status in (200, 429, 429, 200, 200)]
    pair = Pair("a form", bytes, bytes, 200, 50.0, tries=1, mails=mails)
    if mails:
        assert pair.measure(stage, 1) == [(1.0, 1.0)]
        assert pauses == [pairs.PAUSE, pairs.PAUSE]
        stage.ask.side_effect = repeat(Response(429, b"", 1.0))
    with pytest.raises(Unexpected, match="a form: 429"):
        pair.measure(stage, 1)


def test_a_row_passes_within_its_bound() -> None:
    alike, apart = Judged(100, 5, 5, 1, -2, 3, 0.5), Judged(100, 9, 5, 4, 3, 5, 1e-9)
    rows = [
        {"what": "a pair", "bound": bound, **{name: getattr(one, name) for name in Judged.__slots__}}
        for one in (alike, apart)
        for bound in (4.0, None)
    ]
    assert [timing.passed(row) for row in rows] == [True, False, False, True]
    shown = timing.rows_as_table(rows).splitlines()
    assert [line.rstrip(" |").endswith("**no**") for line in shown[2:]] == [False, True, True, False]


def test_the_page_matches_the_last_measurement() -> None:
    found = results.read(timing.RESULTS)
    assert timing.PAGE.read_text("utf-8") == timing.page(found)
    assert all(map(timing.passed, found["rows"]))
