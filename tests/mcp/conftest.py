"""A company whose identity provider this server trusts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from handlers.core.site import Site
from tests.oauth.assertions.identity_provider import Enterprise
from tests.support.http.driver import Service


@pytest.fixture
def enterprise(service: Service, site: Site, io_loop: Any) -> Iterator[Enterprise]:
    """The service and the identity provider."""
    made = io_loop.run_sync(lambda: Enterprise.make(service, site))
    yield made
    io_loop.run_sync(made.provider.close)
