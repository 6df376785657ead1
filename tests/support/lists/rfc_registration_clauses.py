"""What RFC 7591 (dynamic client registration) and RFC 7592 (its management) demand of the server.

Each has a test that is marked for it, or a reason why not. A name is the RFC, the section and a word. What the RFCs
demand of clients is left out.
"""

from __future__ import annotations

from tests.support.lists.demands import TLS, Demand

NO_STATEMENTS = "software statements are unknown metadata here, and are ignored"

REGISTRATION_CLAUSES: dict[str, Demand] = {
    "7591 2 defaults": Demand("what is left out has the default value, such as client_secret_basic"),
    "7591 2 unknown": Demand("unknown metadata MUST be ignored"),
    "7591 2 redirect_uris": Demand("clients of redirect-based flows MUST register their redirect URIs"),
    "7591 2 one set": Demand("jwks and jwks_uri MUST NOT both be there"),
    "7591 2.1 types": Demand("the server SHOULD refuse grant and response types that do not fit together"),
    "7591 2.3 statement": Demand("a software statement's values take precedence", NO_STATEMENTS),
    "7591 3 TLS": Demand("the endpoint MUST use TLS", TLS),
    "7591 3 POST": Demand("the endpoint MUST accept POST with application/json"),
    "7591 3 initial access token": Demand("an initial access token may be required, as a bearer token"),
    "7591 3.1 open": Demand("open registration SHOULD be limited in rate"),
    "7591 3.2.1 response": Demand("the answer is a 201 with a unique client_id and all registered metadata"),
    "7591 3.2.1 expires": Demand("client_secret_expires_at is REQUIRED with a secret"),
    "7591 3.2.2 errors": Demand("an error is a 400 with invalid_redirect_uri or invalid_client_metadata"),
    "7591 5 impersonation": Demand("the server SHOULD warn people of names and logos that nobody checked"),
    "7592 2.1 read": Demand("with its token an app reads its registration; anybody else gets a 401"),
    "7592 2.2 update": Demand("a change replaces all metadata, and names the client_id and a right secret"),
    "7592 2.2 server's": Demand("a change MUST NOT have the values that the server chooses"),
    "7592 2.3 delete": Demand("a deletion is a 204, and ends tokens and registration token"),
    "7592 3 location": Demand("registration_client_uri and registration_access_token are in every answer"),
    "7592 5 entropy": Demand("the registration access token cannot be guessed"),
}
