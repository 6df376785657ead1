"""Every call a process makes of the store, prepared so that it succeeds: for tests that must leave none out."""

from tests.support.calls import accounts, apps, factors, grants, hooks, operating, paid, security  # noqa: F401  # each enters its calls
from tests.support.calls.prepared import CALLS

__all__ = ["CALLS"]
