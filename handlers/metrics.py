"""The metrics port: what Prometheus reads. An application of its own, which shares no route with the others."""

from __future__ import annotations

import logging
from concurrent.futures import ThreadPoolExecutor
from typing import Any, cast

from tornado.routing import URLSpec

from handlers.application import Latchkey
from handlers.base import BaseHandler
from handlers.fallback import quote_nothing
from handlers.ops import NothingHandler
from handlers.policy import METRICS_POLICIES, NOWHERE, check_policies, policy_of
from handlers.site import Site
from metrics.exposition import Exposition


class Metrics(Latchkey):
    """The application. `scribe` is one thread: what is read is read by one at a time."""

    exposition: Exposition
    scribe: ThreadPoolExecutor


class MetricsHandler(BaseHandler):
    """GET /metrics."""

    async def get(self) -> None:
        """All metrics of all workers, in the format that is asked for. Thousands of lines take some milliseconds: they
        are written beside the event loop."""
        application, accept = cast(Metrics, self.application), self.request.headers.get("Accept", "")
        self.site.measures.fold()
        rendered = application.exposition.rendered
        body, media_type = await application.loop.run_in_executor(application.scribe, rendered, accept)
        self.write_whole(body, {"Content-Type": media_type})


METRICS_ROUTES: list[tuple[str, Any, str]] = [
    (r"/metrics", MetricsHandler, "metrics"),
]


def make_metrics_application(site: Site, exposition: Exposition) -> Metrics:
    """The Tornado application of the metrics port. Raises MissingPolicy for a route without a policy."""
    check_policies((name for _, _, name in METRICS_ROUTES), METRICS_POLICIES)
    application = Metrics(
        [
            URLSpec(pattern, handler, {"policy": policy_of(name, METRICS_POLICIES)}, name)
            for pattern, handler, name in METRICS_ROUTES
        ],
        default_handler_class=NothingHandler,
        default_handler_args={"policy": NOWHERE},
    )
    application.site = site
    application.exposition, application.scribe = exposition, ThreadPoolExecutor(1, "latchkey-metrics")
    logging.getLogger("tornado.general").addFilter(quote_nothing)
    return application
