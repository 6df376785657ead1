"""The DPoP proof of a request: read, checked, and refused in words that help a developer. RFC 9449 4.3, 8, 9."""

from __future__ import annotations

from tornado.httputil import HTTPServerRequest

from handlers.core.site import Site
from store.apps.profiles import ProfileRules, listed
from store.clock import wall
from store.crypto.dpop import ALGORITHMS, LEEWAY, DpopProof, check_proof
from store.crypto.jose.refusal import JoseError
from store.refused import Refused

AT_SERVER = ("invalid_dpop_proof", "use_dpop_nonce")
AT_RESOURCE = ("dpop_proof_refused", "dpop_nonce_required")
"""The codes of the same two errors, as the token endpoint (400) and resource calls (401) answer them."""

_TIME = f"iat of the DPoP proof is more than {LEEWAY} seconds off."
_REASONS = {
    "htm": "htm of the DPoP proof is not the method of this request.",
    "htu": "htu of the DPoP proof is not the address of this request.",
    "ath": "ath of the DPoP proof is not the hash of this access token.",
    "signature": "The signature of the DPoP proof is not one of the key in its header.",
    "typ": "typ of the DPoP proof is not dpop+jwt.",
    "private_key": "The DPoP proof has a private or symmetric key.",
    "too_long": "The DPoP proof is too long.",
    **dict.fromkeys(("iat", "not_yet", "expired"), _TIME),
}


def read_proof(request: HTTPServerRequest, site: Site, rules: ProfileRules, access_token: str = "") -> DpopProof:
    """The proof of a request. `rules`: of the app's profile; `access_token`: the token that a resource call presents,
    empty at the token endpoint. Raises Refused with one of the codes above; a nonce that is missing, or is none of ours
    of the last five minutes, is an error of its own."""
    refused, nonce_required = AT_RESOURCE if access_token else AT_SERVER
    sent = request.headers.get_list("DPoP")
    if len(sent) != 1:
        raise Refused(refused, "The request needs exactly one DPoP header, with a proof.")
    # The base URL, and not the host of the request: a proxy may change that, and anybody can send one.
    uri = f"{site.base_url}{request.path}"
    method, algorithms = request.method or "", rules.among(ALGORITHMS)
    try:
        proof = check_proof(
            sent[0], method=method, uri=uri, now=wall.time(), access_token=access_token, algorithms=algorithms
        )
    except JoseError as error:
        words = {**_REASONS, "alg": f"alg of the DPoP proof is {listed(algorithms)}."}
        raise Refused(refused, words.get(error.reason, "The DPoP proof is malformed.")) from None
    if proof.nonce is None and not site.dpop_nonce_required:
        return proof
    if proof.nonce is None or not site.store.proofs.is_recent(proof.nonce):
        raise Refused(nonce_required, "The DPoP proof needs the nonce of this answer's DPoP-Nonce header.")
    return proof
