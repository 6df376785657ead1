"""A server's metrics for tests: read over HTTP, parsed by prometheus_client, and compared."""

from __future__ import annotations

import http.client
import re
from collections.abc import Callable, Mapping

from prometheus_client.parser import text_string_to_metric_families

from dev.lab.engines import wait_until
from tests.support.processes.processes import Server

METRICS = ("--metrics-port", "0")

Samples = dict[str, float]


def metrics_port(server: Server) -> int:
    """The metrics port in the log."""
    found = re.search(r" INFO latchkey: metrics on http://localhost:(\d+)/metrics$", server.log, re.MULTILINE)
    assert found, server.log
    return int(found[1])


def scrape(
    port: int, path: str = "/metrics", accept: str | None = None, host: str | None = None
) -> tuple[int, str, str]:
    """The status, the media type and the body of one GET."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=30)
    try:
        given = {name: value for name, value in (("Accept", accept), ("Host", host)) if value is not None}
        connection.request("GET", path, headers=given)
        response = connection.getresponse()
        return response.status, response.headers["Content-Type"], response.read().decode()
    finally:
        connection.close()


def parsed(text: str) -> Samples:
    """Every sample by name and labels, `name{a=b,c=d}`, sorted by name."""
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            labels = ",".join(f"{name}={value}" for name, value in sorted(sample.labels.items()))
            name = f"{sample.name}{{{labels}}}" if labels else sample.name
            assert name not in found, name
            found[name] = sample.value
    return found


def scraped(server: Server) -> Samples:
    """All current samples."""
    status, _, text = scrape(metrics_port(server))
    assert status == 200
    return parsed(text)


def gains(before: Mapping[str, float], after: Mapping[str, float], *names: str) -> Samples:
    """The increase of samples: for a bare name, of all its samples that rose; for a name with labels, of that
    sample."""
    return {
        name: value - before.get(name, 0.0)
        for name, value in after.items()
        if value != before.get(name, 0.0) and (not names or name.partition("{")[0] in names)
    }


def until(read: Callable[[], Samples], expected: Mapping[str, float], seconds: float = 10.0) -> Samples:
    """Waits until samples have these values: an answer reaches its client a moment before it is counted."""
    seen: Samples = {}

    def there() -> bool:
        seen.clear()
        seen.update(read())
        return all(seen.get(name, 0.0) == value for name, value in expected.items())

    try:
        wait_until(there, seconds)
    except AssertionError:
        wrong = {name: (seen.get(name), value) for name, value in expected.items() if seen.get(name) != value}
        raise AssertionError(f"there is, and should be: {wrong}") from None
    return seen
