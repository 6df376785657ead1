"""What RFC 8693 (token exchange) demands of an authorization server.

Each has a test that is marked for it, or a reason why not. What it demands of clients and of APIs is left out.
"""

from __future__ import annotations

from tests.support.lists.demands import TLS, Demand

EXCHANGES: dict[str, Demand] = {
    "8693 2.1 authentication": Demand("clients authenticate as for other grants"),
    "8693 2.1 resource": Demand("resource MUST be an absolute URI without a fragment"),
    "8693 2.1 several": Demand("resource and audience may be used together, and each may be repeated"),
    "8693 2.1 required": Demand("subject_token and subject_token_type are required"),
    "8693 2.1 actor type": Demand("actor_token_type is required with actor_token, and MUST NOT be there without it"),
    "8693 2.1 validation": Demand("both tokens MUST be validated as their types demand"),
    "8693 2.1 unharmed": Demand("an exchange changes nothing about the subject token"),
    "8693 2.2.1 answer": Demand("the answer has access_token, issued_token_type and token_type, and expires_in"),
    "8693 2.2.1 scope": Demand("scope is required in the answer where it is not the requested one"),
    "8693 2.2.2 invalid_request": Demand("a wrong request or an unacceptable token MUST be invalid_request"),
    "8693 2.2.2 invalid_target": Demand("a target that gets no token SHOULD be invalid_target"),
    "8693 3 types": Demand("types of tokens are URIs of the registry"),
    "8693 4.1 act": Demand("act names the current actor, and inside it those before, by claims of identity alone"),
    "8693 4.3 client_id": Demand(
        "client_id is the client that requested the token", "an API that asks is the actor; the app stays the client"
    ),
    "8693 4.4 may_act": Demand("may_act says who may act", "no token has it: the app and its API alone may"),
    "8693 6 TLS": Demand("tokens MUST be sent over encrypted channels only", TLS),
    "8693 6 minimal": Demand("tokens SHOULD have no more data about a person than needed"),
}
