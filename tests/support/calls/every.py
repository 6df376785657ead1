"""Every call that a process makes to the store, prepared to succeed: for tests that must cover all."""

from tests.support.calls import (  # noqa: F401  # each enters its calls
    accounts,
    apis,
    apps,
    assertions,
    devices,
    directory,
    documents_and_credits,
    exchanges,
    factors,
    grants,
    identities,
    introspection,
    operator_calls,
    operator_roles,
    operators,
    people_moving,
    prepared,
    provisioning,
    security,
    self_registered,
    subjects,
    teams,
    webhooks,
)
from tests.support.calls.prepared import Prepared

CALLS: dict[str, Prepared] = dict(sorted(prepared.CALLS.items(), key=lambda item: item[1].prepare.__module__))
"""In one order, whichever of the modules above a test imported first."""
