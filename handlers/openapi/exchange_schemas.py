"""The schemas of grants of access that somebody else decided on: token exchange (RFC 8693), assertions (RFC 7523)."""

from __future__ import annotations

from functools import reduce

from handlers.oauth.delegated.token_exchange import ACCESS, MAX_AUDIENCE, MAX_LIFE, MOST_NAME, SUBJECT_TYPES
from handlers.openapi.budget_schemas import DETAILS
from handlers.openapi.shapes import COUNT, FILLED, TEXT, Schema, written
from store.crypto.jose.jws import LONGEST
from store.names import ASSERTION_GRANT, EXCHANGE_GRANT
from store.oauth.exchange.token_exchange import DEEPEST

_ACTOR = {"sub": FILLED, "client_id": FILLED}
ACT: Schema = reduce(lambda inner, _: written(_ACTOR, {"act": inner}), range(DEEPEST - 1), written(_ACTOR))
"""Who acts, and inside who acted before."""
EXCHANGED: Schema = {
    "grant_type": {"const": EXCHANGE_GRANT},
    "subject_token": FILLED,
    "subject_token_type": {"enum": [*SUBJECT_TYPES]},
}
"""What every exchange sends."""
NARROWED: Schema = {
    **{"resource": TEXT, "scope": TEXT, "audience": {**TEXT, "maxLength": MAX_AUDIENCE}},
    "requested_token_type": {"const": ACCESS},
    **{"actor_token": FILLED, "actor_token_type": {"enum": [*SUBJECT_TYPES]}},
    "name": {**TEXT, "maxLength": MOST_NAME, "description": "of the delegated token, for the person"},
    "expires_in": {
        **{"type": "integer", "minimum": 1, "maximum": MAX_LIFE},
        "description": "seconds that the token is to live; without it as long as the subject token",
    },
}
"""What an exchange may send."""
EXCHANGE_EXAMPLE = {
    **{"grant_type": EXCHANGE_GRANT, "subject_token": "lk_at_an-access-token", "subject_token_type": ACCESS},
    **{"scope": "profile", "name": "Summarizer", "client_id": "notes-app", "client_secret": "a-client-secret"},
}
DELEGATED_EXAMPLE = {
    **{"access_token": "lk_at_an-access-token", "issued_token_type": ACCESS, "token_type": "Bearer"},
    **{"expires_in": 600, "scope": "profile"},
}
ASSERTED: Schema = {
    "grant_type": {"const": ASSERTION_GRANT},
    "assertion": {**FILLED, "maxLength": LONGEST, "description": "by an issuer that the operator trusts (ID-JAG)"},
}
"""What sends an assertion."""
ASSERTION_EXAMPLE = {
    **{"grant_type": ASSERTION_GRANT, "assertion": "an.id-jag.jwt", "resource": "https://id.example.org/mcp"},
    **{"client_id": "notes-app", "client_secret": "a-client-secret"},
}


def delegated(token_type: Schema) -> Schema:
    """A token response with a delegated token."""
    return written(
        {
            **{"access_token": FILLED, "issued_token_type": {"const": ACCESS}, "token_type": token_type},
            **{"expires_in": COUNT, "scope": FILLED},
        },
        {"authorization_details": DETAILS},
    )
