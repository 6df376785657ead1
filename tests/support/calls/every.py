"""Every call a process makes of the store, prepared so that it succeeds: for tests that must leave none out."""

from tests.support.calls import (  # noqa: F401  # each enters its calls
    accounts,
    apps,
    documents_and_credits,
    factors,
    grants,
    operator_calls,
    security,
    webhooks,
)
from tests.support.calls.prepared import CALLS

__all__ = ["CALLS"]
