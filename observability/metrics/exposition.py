"""The rows of all workers for Prometheus: summed, in the text format or in OpenMetrics."""

from __future__ import annotations

import platform
from collections.abc import Iterable, Iterator
from itertools import accumulate

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, InfoMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector, CollectorRegistry
from prometheus_client.utils import floatToGoString

from observability.metrics.declared import BUILD, BUILD_HELP, BUILD_LABELS, METRICS
from observability.metrics.memory import MetricRow, MetricsMemory
from observability.metrics.rows import Labels, Metric

MetricFamily = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily | InfoMetricFamily


class Exposition(Collector):
    """Reports the metrics in a memory. `build` has the labels of the release."""

    def __init__(self, memory: MetricsMemory, build: dict[str, str]) -> None:
        self._memory, self._build = memory, build
        self._registry = CollectorRegistry(auto_describe=False)
        self._registry.register(self)

    def rendered(self, accept: str) -> tuple[bytes, str]:
        """All metrics in the format that the header `Accept` requests, and its media type."""
        encode, media_type = choose_encoder(accept)
        return encode(self._registry), media_type

    def collect(self) -> Iterator[MetricFamily]:
        """Called by prometheus_client: every metric, also without rows."""
        rows: dict[str, list[MetricRow]] = {}
        for row in self._memory.read():
            rows.setdefault(row.family.name, []).append(row)
        for metric in METRICS:
            yield _family(metric, [row for family in metric.families for row in rows.get(family.name, ())])
        yield InfoMetricFamily(BUILD, BUILD_HELP, value=self._build)


def build(version: str, http: str, loop: str) -> dict[str, str]:
    """The labels of a release; `http` is the HTTP server in use, `loop` the event loop."""
    return dict(zip(BUILD_LABELS, (version, platform.python_version(), http, loop), strict=True))


def _family(metric: Metric, rows: Iterable[MetricRow]) -> MetricFamily:
    sums: dict[Labels, list[float]] = {labels: [0.0] for labels in metric.only.values()}
    if metric.kind == "counter" and not metric.labels:
        sums = {(): [0.0]}
    for row in rows:
        labels = _labels(metric, row)
        if labels is None or (row.family.level and not row.taken):
            continue
        figures = row.figures if metric.kind == "histogram" else [row.family.count(row.figures)]
        before = sums.get(labels)
        sums[labels] = figures if before is None else [a + b for a, b in zip(before, figures, strict=True)]
    if metric.kind == "histogram":
        bounds = [*map(floatToGoString, metric.families[0].bounds), "+Inf"]
        histogram = HistogramMetricFamily(metric.name, metric.help, labels=metric.labels)
        for labels, figures in sums.items():
            buckets = list(zip(bounds, accumulate(figures[:-1]), strict=True))
            histogram.add_metric(labels, buckets, figures[-1])
        return histogram
    family = (CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily)(
        metric.name, metric.help, labels=metric.labels
    )
    for labels, figures in sums.items():
        family.add_metric(labels, figures[0])
    return family


def _labels(metric: Metric, row: MetricRow) -> Labels | None:
    """The labels of a row for this metric; None if the metric does not include the row."""
    if metric.only:
        return metric.only.get(row.labels)
    named = dict(zip(row.family.labels, row.labels, strict=True), worker=str(row.place))
    return tuple(named[label] for label in metric.labels)
