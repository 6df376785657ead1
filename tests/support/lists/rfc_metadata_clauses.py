"""What RFC 9728 demands of the server: metadata of protected resources.

Each has a test that is marked for it, or a reason why not. A name is the RFC, the section and a word. What the RFC
demands of clients is left out.
"""

from __future__ import annotations

from tests.support.lists.demands import TLS, Demand

UNSIGNED = "the metadata is not signed"

RESOURCE_METADATA: dict[str, Demand] = {
    "9728 1.2 https": Demand("the resource identifier uses https", TLS),
    "9728 2 resource": Demand("resource is REQUIRED: the identifier, without a fragment"),
    "9728 2 authorization_servers": Demand("authorization_servers has issuer identifiers"),
    "9728 2 jwks_uri": Demand("jwks_uri MUST use https", "resource answers are not signed"),
    "9728 2 scopes_supported": Demand("scopes_supported is RECOMMENDED"),
    "9728 2 bearer_methods": Demand("bearer_methods_supported has the methods that work, and no other"),
    "9728 2 none": Demand("none MUST NOT be among the signing algorithms", "resource answers are not signed"),
    "9728 2 resource_name": Demand("resource_name is RECOMMENDED"),
    "9728 2.1 languages": Demand("a name with a language SHOULD be there without one too", "there is one language"),
    "9728 2.2 signed": Demand("signed metadata MUST be signed and have iss", UNSIGNED),
    "9728 3 path": Demand("the document MUST be at the well-known path, between host and path of the resource"),
    "9728 3.1 GET": Demand("the document MUST be queried with GET"),
    "9728 3.2 response": Demand("a success MUST be a 200 with a JSON object in application/json"),
    "9728 3.2 empty": Demand("parameters with zero values MUST be omitted"),
    "9728 3.3 identical": Demand("resource MUST be the identifier from which the document's address was made"),
    "9728 3.3 challenge": Demand(
        "after a challenge, resource MUST be the address that the client called",
        "not met: all calls are one resource, the base URL, so that one token works for all",
    ),
    "9728 5.1 challenge": Demand("a 401 has the document's address in resource_metadata"),
    "9728 6 strings": Demand("strings MUST be compared code point by code point", "the server reads no such document"),
    "9728 7.1 TLS": Demand("implementations MUST support TLS", TLS),
    "9728 7.4 audience": Demand("the authorization server SHOULD support audience-restricted access tokens"),
    "9728 7.10 caching": Demand("the document should have caching directives such as max-age"),
}
