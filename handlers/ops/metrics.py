"""The metrics port, for Prometheus: a separate application, which shares no route with the others."""

from __future__ import annotations

import logging
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from typing import cast

from handlers.core.application import Latchkey
from handlers.core.base import BaseHandler
from handlers.core.fallback import quote_nothing
from handlers.core.policy import NOWHERE, OPEN
from handlers.core.route import Route
from handlers.core.site import Site
from handlers.ops.operations import NothingHandler
from observability.metrics.exposition import Exposition
from store.refused import Refused


class Metrics(Latchkey):
    """The application. `scribe` is one thread, so one scrape runs at a time. `hosts` are the names that the port
    answers to; empty for any."""

    exposition: Exposition
    scribe: ThreadPoolExecutor
    hosts: Collection[str] = ()


class MetricsHandler(BaseHandler):
    """GET /metrics."""

    def prepare(self) -> None:
        """Raises Refused("access_denied") for a page of another site in a browser on this machine: its name may resolve
        to this address (DNS rebinding), but stays in `Host`."""
        hosts = cast(Metrics, self.application).hosts
        if hosts and self.request.host_name.strip("[]") not in hosts:
            raise Refused("access_denied", f"This port answers to {', '.join(hosts)} only.")
        super().prepare()

    async def get(self) -> None:
        """All metrics of all workers, in the requested format. Thousands of lines take some milliseconds, so a thread
        writes them."""
        application, accept = cast(Metrics, self.application), self.request.headers.get("Accept", "")
        self.site.measures.fold()
        rendered = application.exposition.rendered
        body, media_type = await application.loop.run_in_executor(application.scribe, rendered, accept)
        self.write_whole(body, {"Content-Type": media_type})


METRICS_ROUTES: tuple[Route, ...] = (Route(r"/metrics", MetricsHandler, "metrics", OPEN),)


def make_metrics_application(site: Site, exposition: Exposition, hosts: Collection[str] = ()) -> Metrics:
    """The Tornado application of the metrics port. `hosts` are the names that it answers to; empty for any."""
    application = Metrics(
        [route.spec() for route in METRICS_ROUTES],
        default_handler_class=NothingHandler,
        default_handler_args={"policy": NOWHERE},
    )
    application.site = site
    application.hosts = hosts
    application.exposition, application.scribe = exposition, ThreadPoolExecutor(1, "latchkey-metrics")
    logging.getLogger("tornado.general").addFilter(quote_nothing)
    return application
