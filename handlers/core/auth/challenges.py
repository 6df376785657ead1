"""The challenges of a 401 or 403 for an access token: `Bearer` (RFC 6750 3) and `DPoP` (RFC 9449 7.1)."""

from __future__ import annotations

from collections.abc import Sequence

from handlers.core.errors import PUBLIC_NAME
from store.crypto.dpop import ALGORITHMS


def algs_of(algorithms: Sequence[str]) -> str:
    """The parameter of a `DPoP` challenge that names the algorithms of proofs."""
    return f'algs="{" ".join(algorithms)}"'


ALGS = algs_of(ALGORITHMS)
CHALLENGED = ("invalid_token", "insufficient_scope", "dpop_proof_refused", "dpop_nonce_required")
"""The errors that come with a challenge."""


def challenges(
    code: str,
    scheme: str,
    needed: str,
    metadata: str,
    algorithms: Sequence[str] = ALGORITHMS,
    *,
    hint: bool = False,
) -> str:
    """The value of `WWW-Authenticate`. `scheme`: of the request's credentials, in lower case; `needed`: the scopes that
    the call needs; `metadata`: the address of the resource's metadata, empty for a route that takes no access token;
    `algorithms`: what may sign proofs; `hint`: a 401 names the scopes, too."""
    error = [f'error="{PUBLIC_NAME.get(code, code)}"']
    if code == "insufficient_scope" or hint:
        error.append(f'scope="{needed}"')
    # RFC 9728 5.1: a client that knows only this API learns where to get a token.
    where = [f'resource_metadata="{metadata}"'] if metadata else []
    if scheme == "dpop" and metadata:
        return ", ".join(('DPoP realm="latchkey"', *error, algs_of(algorithms), *where))
    # RFC 6750 3.1: no error code for a request without a bearer token, or with another scheme.
    said = error if scheme == "bearer" else error[1:]
    bearer = ", ".join(('Bearer realm="latchkey"', *said, *where))
    # RFC 9449 7.2: the other scheme, without an error, since it was not tried.
    return f"{bearer}, DPoP {algs_of(algorithms)}" if metadata and code == "invalid_token" else bearer
