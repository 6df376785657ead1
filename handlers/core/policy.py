"""What each route demands, as data. The default is deny: the server refuses to start on a route without a policy."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True)
class Policy:
    """`scope`: the token must carry one of these (space-separated); empty where no token is asked for. `window`: the
    group of SPEC 8.1 that counts the request. `write_scope`, `write_window`: the same for methods that write, where
    they differ. `xsrf`: a browser with cookies is on the other side. `operator`: an operator key is asked for.
    `finishes`: it is the last step of something, and has a reserve when there is more to do than can be done. `route`:
    the route's name, once it has been given to one."""

    scope: str = ""
    window: str = ""
    write_scope: str = ""
    write_window: str = ""
    xsrf: bool = False
    operator: bool = False
    finishes: bool = False
    route: str = ""


PAGE = Policy(xsrf=True)
OPEN = Policy()
NOWHERE = Policy(route="unmatched")
"""Of what no route answers."""
LAST_PAGE = Policy(xsrf=True, finishes=True)

POLICIES: dict[str, Policy] = {
    "home": PAGE,
    "authorize": PAGE,
    "decide": Policy(window="oauth", xsrf=True, finishes=True),
    "token": Policy(window="oauth", finishes=True),
    "userinfo": Policy(scope="profile", window="oauth"),
    "revoke": Policy(window="oauth", finishes=True),
    "metadata": OPEN,
    "openapi": OPEN,
    "docs": PAGE,
    "usage": Policy(scope="data:read data:write", window="data-read"),
    "document": Policy(scope="data:read", window="data-read", write_scope="data:write", write_window="data-write"),
    "collection": Policy(scope="data:read", window="data-list"),
    "credits": Policy(scope="credits:read", window="credits-read"),
    "apps": Policy(scope="apps:read", window="apps-read"),
    "ai-messages": Policy(scope="credits:spend", window="ai"),
    "ai-models": Policy(scope="credits:spend", window="ai-models"),
    "ai-sdk-messages": Policy(scope="credits:spend", window="ai"),
    "ai-sdk-count": Policy(scope="credits:spend", window="ai-models"),
    "ai-sdk-models": Policy(scope="credits:spend", window="ai-models"),
    "ai-sdk-model": Policy(scope="credits:spend", window="ai-models"),
    "signin": PAGE,
    "signin-second": LAST_PAGE,
    "signin-second-options": LAST_PAGE,
    "signin-passkey": LAST_PAGE,
    "signin-passkey-options": PAGE,
    "signup": PAGE,
    "signout": LAST_PAGE,
    "confirm": LAST_PAGE,
    "forgot": PAGE,
    "reset": LAST_PAGE,
    "account": PAGE,
    "account-email": PAGE,
    "account-email-confirm": PAGE,
    "account-email-change": PAGE,
    "account-email-undo": LAST_PAGE,
    "account-picture": PAGE,
    "account-picture-remove": PAGE,
    "account-download": PAGE,
    "account-delete": PAGE,
    "account-delete-options": PAGE,
    "account-deleted": PAGE,
    "picture": OPEN,
    "account-apps": PAGE,
    "account-app-revoke": PAGE,
    "account-app-limit": PAGE,
    "account-data": PAGE,
    "account-data-delete": PAGE,
    "account-document": PAGE,
    "account-document-delete": PAGE,
    "account-export": PAGE,
    "account-credits": PAGE,
    "account-security": PAGE,
    "developer-apps": PAGE,
    "developer-register": PAGE,
    "developer-app": PAGE,
    "developer-rotate": PAGE,
    "developer-end-secret": PAGE,
    "developer-status": PAGE,
    "developer-delete": PAGE,
    "developer-delete-options": PAGE,
    "developer-try": PAGE,
    "developer-verify": PAGE,
    "developer-webhooks": PAGE,
    "developer-webhook-secret": PAGE,
    "developer-webhook-test": PAGE,
    "developer-delivery": PAGE,
    "developer-delivery-again": PAGE,
    "account-confirm": PAGE,
    "account-confirm-options": PAGE,
    "account-session-end": PAGE,
    "account-sessions-end": PAGE,
    "account-authenticator": PAGE,
    "account-authenticator-remove": PAGE,
    "account-recovery": PAGE,
    "account-passkeys": PAGE,
    "account-passkeys-options": PAGE,
    "account-passkeys-remove": PAGE,
    "account-passkeys-rename": PAGE,
    "healthz": OPEN,
    "readyz": OPEN,
}

# The operations port.
OPS_POLICIES: dict[str, Policy] = {
    "ops-credits": Policy(operator=True),
    "healthz": OPEN,
}


# The metrics port.
METRICS_POLICIES: dict[str, Policy] = {
    "metrics": OPEN,
}


def policy_of(name: str, policies: Mapping[str, Policy] = POLICIES) -> Policy:
    """The policy of a route, which knows whose it is."""
    return replace(policies[name], route=name)


class MissingPolicy(Exception):
    """A route has no policy, or a policy no route."""


def check_policies(names: Iterable[str], policies: Mapping[str, Policy] = POLICIES) -> None:
    """Raises MissingPolicy unless routes and policies name each other."""
    odd = set(names) ^ set(policies)
    if odd:
        raise MissingPolicy(f"without a policy or without a route: {', '.join(sorted(odd))}")
