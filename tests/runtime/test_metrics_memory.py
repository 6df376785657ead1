"""Counts in shared memory: a replacement worker continues, gauges end with a worker, and nothing grows forever."""

from __future__ import annotations

import json
import random

import pytest

from observability.metrics import memory as module
from observability.metrics import rows as of
from observability.metrics.declared import METRICS
from observability.metrics.exposition import Exposition
from observability.metrics.measures import Measures
from observability.metrics.memory import MetricsMemory
from observability.metrics.rows import KEPT, MOST_APPS, OTHER, QUICK, RowFamily
from store.engine.script_source import load_scripts
from store.errors import StoreError, StoreUnavailable, Unacknowledged
from tests.support.http.scraped_metrics import Samples, parsed
from tests.support.lists.offenders import each

BUILD = {"version": "1"}


def scraped(memory: MetricsMemory) -> Samples:
    """The text of a scrape."""
    return parsed(Exposition(memory, BUILD).rendered("")[0].decode())


def test_counts_of_workers_are_summed() -> None:
    memory = MetricsMemory(3)
    for number in range(3):
        measures = Measures(memory.place(number))
        for _ in range(number + 1):
            measures.answered(("userinfo", "GET", 200, False, 0.002, "an-app"))
        measures.fold()
    samples = scraped(memory)
    assert samples["latchkey_requests_total{method=GET,route=userinfo,status=200}"] == 6
    assert samples["latchkey_app_requests_total{client_id=an-app}"] == 6
    assert samples["latchkey_request_seconds_count{route=userinfo}"] == 6
    assert samples["latchkey_request_seconds_sum{route=userinfo}"] == pytest.approx(0.012)


@pytest.mark.parametrize(
    ("seconds", "least"),
    [
        pytest.param(0.0, 0.0005, id="none"),
        pytest.param(0.0005, 0.0005, id="as much as the bound says"),
        pytest.param(0.00051, 0.001, id="more than that"),
        pytest.param(10.0, 10.0, id="the last bound"),
        pytest.param(11.0, float("inf"), id="beyond"),
    ],
)
def test_histogram_buckets_are_cumulative(seconds: float, least: float) -> None:
    memory = MetricsMemory()
    measures = Measures(memory.place(0))
    measures.took("read_userinfo", seconds)
    samples = scraped(memory)
    for bound in (*QUICK, float("inf")):
        name = "+Inf" if bound == float("inf") else str(bound)
        found = samples[f"latchkey_store_call_seconds_bucket{{le={name},script=read_userinfo}}"]
        assert found == float(bound >= least), name
    assert samples["latchkey_store_call_seconds_sum{script=read_userinfo}"] == seconds


def test_batched_observations_equal_single_ones() -> None:
    memory, drawn = MetricsMemory(2), random.Random(7)
    measures = [Measures(memory.place(number)) for number in range(2)]
    seconds = [drawn.choice((*QUICK, -1.0, 0.0, 20.0, 10 ** drawn.uniform(-5, 2))) for _ in range(2000)]
    for one in seconds:
        measures[0].answered(("together", "GET", 200, False, one, ""))
        measures[1].answered(("apart", "GET", 200, False, one, ""))
        measures[1].fold()
    measures[0].fold()
    samples = scraped(memory)
    for route in ("together", "apart"):
        for bound in (*map(str, QUICK), "+Inf"):
            found = samples[f"latchkey_request_seconds_bucket{{le={bound},route={route}}}"]
            assert found == sum(one <= float(bound) for one in seconds)
        total = samples[f"latchkey_request_seconds_sum{{route={route}}}"]
        assert total == pytest.approx(sum(max(0.0, one) for one in seconds))
        assert samples[f"latchkey_requests_total{{method=GET,route={route},status=200}}"] == 2000


def test_script_outcomes_are_counted_once_and_survive_a_process() -> None:
    memory, answered = MetricsMemory(), [("read_userinfo", "ok", 3)]
    for expected in (7, 14):
        measures = Measures(memory.place(0))
        measures.scripts = lambda: answered
        answered[:] = [("read_userinfo", "ok", 3)]
        measures.fold()
        measures.fold()
        answered[:] = [("read_userinfo", "ok", 7), ("read_userinfo", "unavailable", 1)]
        measures.fold()
        assert scraped(memory)["latchkey_store_calls_total{answer=ok,script=read_userinfo}"] == expected
    assert scraped(memory)["latchkey_store_calls_total{answer=unavailable,script=read_userinfo}"] == 2


def test_a_replacement_worker_keeps_counts_and_resets_gauges() -> None:
    memory = MetricsMemory(2)
    first, second = (Measures(memory.place(number)) for number in range(2))
    for measures in (first, second):
        measures.refused("token", "invalid_grant")
        measures.level(of.CONNECTIONS, 7)
    memory.leave(0)
    samples = scraped(memory)
    assert samples["latchkey_refusals_total{code=invalid_grant,route=token}"] == 2
    assert "latchkey_connections{worker=0}" not in samples
    assert samples["latchkey_connections{worker=1}"] == 7
    again = Measures(memory.place(0))
    assert scraped(memory)["latchkey_connections{worker=0}"] == 0
    assert scraped(memory)["latchkey_worker_deaths_total"] == 1
    again.refused("token", "invalid_grant")
    again.refused("revoke", "invalid_client")
    samples = scraped(memory)
    assert samples["latchkey_refusals_total{code=invalid_grant,route=token}"] == 3
    assert samples["latchkey_refusals_total{code=invalid_client,route=revoke}"] == 1


def test_an_incomplete_line_is_ignored() -> None:
    """A writer may be killed in the middle, and another processor may see a line before it is whole."""
    memory = MetricsMemory()
    Measures(memory.place(0)).mailed("reset", "sent")
    line = json.dumps([of.MAILED.name, "a very long name of a mail", "sent"]).encode()
    part = memory._parts[0]
    end = bytes(part).index(b"\0")
    part[end : end + len(line)] = line
    sent = "latchkey_mails_total{outcome=sent,what=reset}"
    assert {name for name in scraped(memory) if name.startswith("latchkey_mails")} == {sent}
    again = Measures(memory.place(0))
    again.mailed("confirm", "sent")
    again.mailed("reset", "sent")
    samples = scraped(memory)
    assert samples[sent] == 2
    assert samples["latchkey_mails_total{outcome=sent,what=confirm}"] == 1
    assert sum(name.startswith("latchkey_mails") for name in samples) == 2


def test_apps_beyond_the_bound_are_counted_together() -> None:
    memory = MetricsMemory()
    measures = Measures(memory.place(0))
    for _ in range(2):
        for number in range(MOST_APPS + 50):
            measures.answered(("userinfo", "GET", 200, False, 0.001, f"app-{number}"))
            measures.answered(("ai-messages", "POST", 200, True, 1.0, f"app-{number}"))
        measures.fold()
    apps = {name: value for name, value in scraped(memory).items() if name.startswith("latchkey_app_requests_total")}
    assert len(apps) == MOST_APPS + 1
    assert apps.pop(f"latchkey_app_requests_total{{client_id={OTHER}}}") == 200
    assert set(apps.values()) == {4}


def test_apps_stay_bounded_however_many_workers_die() -> None:
    memory = MetricsMemory()
    for death in range(4):
        measures = Measures(memory.place(0))
        for number in range(MOST_APPS):
            measures.answered(("userinfo", "GET", 200, False, 0.001, f"app-{death}-{number}"))
        measures.answered(("userinfo", "GET", 200, False, 0.001, "app-0-0"))
        measures.fold()
        memory.leave(0)
    apps = {name: value for name, value in scraped(memory).items() if name.startswith("latchkey_app_requests_total")}
    assert len(apps) == MOST_APPS + 1
    assert apps["latchkey_app_requests_total{client_id=app-0-0}"] == 5
    assert apps[f"latchkey_app_requests_total{{client_id={OTHER}}}"] == 3 * MOST_APPS


def test_methods_that_clients_invent_are_counted_together() -> None:
    memory = MetricsMemory()
    measures = Measures(memory.place(0))
    for number in range(100):
        measures.answered(("userinfo", f"M{number}", 405, False, 0.001, ""))
    measures.fold()
    assert scraped(memory)[f"latchkey_requests_total{{method={OTHER},route=userinfo,status=405}}"] == 100


def test_metrics_memory_fits_everything_and_ignores_the_excess(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    memory = MetricsMemory()
    measures = Measures(memory.place(0))
    for name, script in load_scripts().items():
        for word in (*script.replies, "unavailable", "unconfirmed", "failed"):
            measures.took(name, 0.001)
            measures._count(of.SCRIPTS, name, word)
    for number in range(MOST_APPS):
        long = f"an-app-with-a-name-of-sixty-four-characters-as-long-as-any-{number}"
        measures.answered(("x", "GET", 200, False, 0.001, long))
    for number in range(800):  # routes by methods and by statuses that they have
        measures.answered((f"a-route-with-a-long-name-{number}", "POST", 200, False, 0.001, ""))
    measures.fold()
    assert "no room" not in caplog.text
    monkeypatch.setattr(module, "FIGURES", 0)
    measures.refused("token", "invalid_grant")
    measures.refused("token", "invalid_client")
    measures.answered(("another", "GET", 200, False, 0.001, ""))
    measures.fold()
    samples = scraped(memory)
    assert not [name for name in samples if "latchkey_refusals" in name or "another" in name]
    assert caplog.text.count("no room") == 1


def test_every_row_is_exported_with_its_metrics_labels() -> None:
    assert set(KEPT.values()) == {kept for metric in METRICS for kept in metric.families}
    assert len({metric.name for metric in METRICS}) == len(METRICS)
    for metric in METRICS:
        kinds = {(kept.labels, kept.level) for kept in metric.families}
        assert len(kinds) == 1, metric.name
        labels, level = kinds.pop()
        if not metric.only:
            assert set(metric.labels) <= {*labels, "worker"}, metric.name
        assert level == (metric.kind == "gauge"), metric.name
        assert metric.name.endswith("_total") == (metric.kind == "counter"), metric.name
        assert metric.help.endswith("."), metric.name


def test_script_outcomes_match_the_scripts_replies() -> None:
    scripts = load_scripts()
    named = [(metric, key) for metric in METRICS if metric.families == (of.SCRIPTS,) for key in metric.only]
    assert len(named) > 6
    for metric, (script, word) in named:
        assert word in scripts[script].replies, metric.name
    # The words that stand for no answer are nobody's answer.
    words = {error.word for error in (StoreError, StoreUnavailable, Unacknowledged)}
    assert len(words) == 3
    assert not [script.name for script in scripts.values() if words & set(script.replies)]


def test_unused_metrics_are_exported_as_zero() -> None:
    """An alert on the rise of a count misses the first event of one that was not there."""
    samples = scraped(MetricsMemory())
    assert samples["latchkey_rotations_total"] == 0
    assert samples["latchkey_replays_total{kind=code}"] == samples["latchkey_replays_total{kind=refresh_token}"] == 0
    assert samples["latchkey_holds_total{event=expired}"] == 0
    assert samples["latchkey_build_info{version=1}"] == 1


@each("kept", KEPT.values(), ids=lambda kept: kept.name)
def test_a_rows_width_matches_its_values(kept: RowFamily) -> None:
    row = [1.0] * kept.width
    assert kept.count(row) == (kept.width - 1 if kept.bounds else 1)
    assert list(kept.bounds) == sorted(kept.bounds)
