"""When a server is asked last, and when not at all."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from email.utils import format_datetime

import pytest

from outbound.ai.echo import EchoUpstream, echo_model
from outbound.ai.failure import Elsewhere, Passing, UpstreamFailed
from outbound.ai.health import MAX_EJECTIONS, MAX_REST, Ejection, Health
from outbound.ai.messages import MessagesUpstream
from outbound.ai.models import Model, Models, Timeouts
from outbound.ai.retry_after import retry_after
from store.clock import wall

RULE = Ejection(failures=3, seconds=10)
FAILED = Passing("upstream_error", "status 503")


@dataclass
class Clock:
    """A clock that a test moves."""

    now: float = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    """A clock."""
    return Clock()


@pytest.fixture
def health(clock: Clock) -> Health:
    """The state of a server that did nothing yet."""
    return Health(RULE, clock)


def test_failures_in_a_row_eject(health: Health, clock: Clock) -> None:
    assert [health.fail(FAILED) for _ in range(2)] == [False, False]
    health.succeed()
    assert [health.fail(FAILED) for _ in range(3)] == [False, False, True]
    assert health.ejected
    clock.now += 9.9
    assert health.ejected
    clock.now += 0.1
    assert not health.ejected


def test_each_ejection_without_a_success_is_longer(health: Health, clock: Clock) -> None:
    for _ in range(2):
        health.fail(FAILED)
    for number in range(1, 15):
        assert health.fail(FAILED), "after an ejection, one failure is enough"
        assert not health.fail(FAILED), "failures during an ejection do not count again"
        clock.now += 10 * min(number, MAX_EJECTIONS) - 0.1
        assert health.ejected
        clock.now += 0.2
        assert not health.ejected
    health.succeed()
    assert not health.fail(FAILED)


def test_the_mistakes_of_apps_do_not_count(health: Health) -> None:
    for _ in range(9):
        assert not health.fail(UpstreamFailed("invalid_request", "status 400"))
    for _ in range(2):
        health.fail(UpstreamFailed("upstream_timeout", "silent"))
    assert health.fail(Elsewhere("upstream_error", "status 401"))


def test_zero_failures_never_eject(clock: Clock) -> None:
    health = Health(Ejection(failures=0), clock)
    assert not any(health.fail(FAILED) for _ in range(100))


def test_a_pause_is_kept_and_bounded(health: Health, clock: Clock) -> None:
    for seconds, kept in ((7.0, 7.0), (3.0, 7.0), (10.0**9, MAX_REST)):
        assert not health.fail(Passing("overloaded", "status 429", retry_after=seconds))
        assert health.rests_for == kept
    clock.now += MAX_REST
    assert health.rests_for == 0


def test_retry_after_is_seconds_or_a_date() -> None:
    assert [retry_after(value) for value in ("0", "7", " 12 ", None, "", "-1", "1.5", "soon", "9" * 10)] == [
        *(0.0, 7.0, 12.0),
        *(None,) * 6,
    ]
    date = format_datetime(wall.utc() + timedelta(seconds=90), usegmt=True)
    assert 80 < (retry_after(date) or 0) <= 90
    assert retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert retry_after("Wed, 21 Oct 99999 07:28:00 GMT") is None
    assert retry_after("Wed, 21 Oct 2015 " * 1000) is None


def test_a_reload_keeps_the_state_of_servers_that_stay() -> None:
    def models(*upstreams: MessagesUpstream) -> Models:
        first, *others = (Model("m", "M", one, "m", 1, 1, echo_model().prices) for one in upstreams)
        return Models((Model("m", "M", first.upstream, "m", 1, 1, first.prices, others=tuple(others)),))

    def server(name: str, url: str, rule: Ejection = RULE) -> MessagesUpstream:
        return MessagesUpstream(name, url, "", Timeouts(), 1, ejection=rule)

    stays, moves = server("stays", "https://a.example"), server("moves", "https://b.example")
    for one in (stays, moves):
        for _ in range(3):
            one.health.fail(FAILED)
    before = models(stays, moves)
    lenient = Ejection(failures=50)
    kept, moved, new = (
        server("stays", "https://a.example/", lenient),
        server("moves", "https://c.example"),
        server("new", "https://a.example"),
    )
    models(kept, moved, new).keep_health(before)
    assert [one.health.ejected for one in (kept, moved, new)] == [True, False, False]
    assert kept.health is stays.health, "a call in progress still counts"
    assert kept.health.rule == lenient
    assert EchoUpstream().health is not EchoUpstream().health
