"""Two versions by turns: when a row counts as slower (dev/bench/versions.py)."""

from __future__ import annotations

import pytest

from dev.bench.measure import ROOT
from dev.bench.parts.rounds import Found, Key, Sample
from dev.bench.versions import BEFORE, NOW, interval, parse, slower, versions_table


@pytest.mark.parametrize(
    ("number", "low", "high"),
    [
        # Binomial(n, 1/2): the chance that the median lies outside is 2 * P(fewer than `low` values below it).
        pytest.param(10, 2, 9, id="ten: 97.9 %"),
        pytest.param(6, 1, 6, id="six: 96.9 %"),
        pytest.param(20, 6, 15, id="twenty: 95.9 %"),
        pytest.param(3, 1, 3, id="too few: the whole range"),
    ],
)
def test_the_medians_interval_is_made_of_order_statistics(number: int, low: int, high: int) -> None:
    assert interval([float(value) for value in range(number, 0, -1)]) == (low, high)


def test_a_row_is_slower_only_if_the_whole_interval_is() -> None:
    assert slower([1.04] * 10)
    assert not slower([1.02] * 10)
    assert not slower([2.0] * 5), "too few to say"
    assert slower([0.9, *[1.04] * 9])
    assert not slower([0.9, 0.9, *[1.2] * 8])


def sample(server: float) -> Sample:
    return Sample(1000, 1, 2, server, 0.05, 0.5, 300, 0)


def test_the_table_names_what_is_slower() -> None:
    samples = {}
    for call, now in (("userinfo", 0.11), ("refresh", 0.10)):
        samples[Key(BEFORE, call, 32)] = [sample(0.10)] * 10
        samples[Key(NOW, call, 32)] = [sample(now)] * 10
    shown, lost = versions_table(Found(samples), ["userinfo", "refresh"], 32)
    assert lost == ["userinfo"]
    lines = shown.splitlines()
    assert "1.100 (1.100 to 1.100)" in lines[-2]
    assert lines[-2].rstrip(" |").endswith("slower")
    assert "slower" not in lines[-1]


def test_a_few_calls_may_be_compared_with_another_checkout() -> None:
    assert parse(["--before", str(ROOT), "--calls", "userinfo", "--json", "some.json"]).calls == ["userinfo"]
    with pytest.raises(SystemExit):
        parse(["--before", str(ROOT), "--calls", "userinfo"])
