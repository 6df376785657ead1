"""What an app with a key sends: client assertions, request objects and DPoP proofs, right, wrong and expensive ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import orjson

from dev.fuzz.issuers import ISSUER
from dev.fuzz.jwts import signed, wrong_jwts, wrong_proofs
from dev.fuzz.tokens import CALLBACK, VERIFIER, Cast
from store.clock import wall
from store.crypto.dpop import TYPE, token_hash
from store.crypto.jose.jws import LONGEST
from store.crypto.seal import new_id
from store.names import ASSERTION_GRANT
from store.oauth.assertions.id_jag import ID_JAG
from store.oauth.tokens import s256

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ROOM = LONGEST * 3 // 4 - 600
"""Bytes of claims that still fit into a token."""


def header(cast: Cast, typ: str) -> dict[str, Any]:
    """The header of a right token of this type."""
    return {"typ": typ, "alg": cast.key.algorithm, "kid": cast.key.kid}


def claims_of_assertion(cast: Cast, ends: int = 60) -> dict[str, Any]:
    """The claims of an assertion that ends in so many seconds."""
    client, now = cast.key_app.client_id, int(wall.time())
    return {"iss": client, "sub": client, "aud": cast.base_url, "exp": now + ends, "jti": new_id()}


def claims_of_request(cast: Cast) -> dict[str, Any]:
    """The claims of a request object."""
    asked = {"response_type": "code", "redirect_uri": CALLBACK, "scope": "profile data:read", "state": "a-state"}
    proven = {"code_challenge": s256(VERIFIER), "code_challenge_method": "S256"}
    client = cast.key_app.client_id
    return {"iss": client, "aud": cast.base_url, "client_id": client, **asked, **proven}


def spent_proof(cast: Cast) -> dict[str, str]:
    """The parameters of an assertion that is right but for its end: it can change nothing."""
    text = signed(cast.key, header(cast, "JWT"), claims_of_assertion(cast, ends=-3600))
    return {"client_assertion_type": ASSERTION_TYPE, "client_assertion": text}


def claims_of_id_jag(cast: Cast, ends: int = 60) -> dict[str, Any]:
    """The claims of an identity provider's assertion that ends in this number of seconds. The key of `key-app` signs
    it."""
    now = int(wall.time())
    return {
        **{"iss": ISSUER, "sub": "ada", "aud": cast.base_url, "client_id": "web-app", "email": "ada@example.com"},
        **{"iat": now - 60, "exp": now + ends, "jti": new_id(), "scope": "profile"},
        **{"resource": [cast.base_url], "aud_sub": cast.ada, "cnf": {"jkt": "k" * 43}},
    }


def spent_id_jag(cast: Cast) -> dict[str, str]:
    """The parameters of an identity provider's assertion that is right but for its end, without the app's
    credentials."""
    text = signed(cast.key, header(cast, ID_JAG), claims_of_id_jag(cast, ends=-50))
    return {"grant_type": ASSERTION_GRANT, "assertion": text, "scope": "profile", "resource": cast.base_url}


def signed_request(cast: Cast) -> dict[str, str]:
    """The parameters of a right signed request."""
    text = signed(cast.key, header(cast, "oauth-authz-req+jwt"), claims_of_request(cast))
    return {"client_id": cast.key_app.client_id, "request": text}


def claims_of_proof(cast: Cast, method: str, path: str, token: str = "", age: int = 0) -> dict[str, Any]:
    """The claims of a DPoP proof for a request, made so many seconds ago."""
    claims = {"jti": new_id(), "htm": method, "htu": cast.base_url + path, "iat": int(wall.time()) - age}
    return {**claims, "ath": token_hash(token)} if token else claims


def spent_dpop(cast: Cast, method: str, path: str, token: str = "") -> dict[str, str]:
    """The header of a DPoP proof that is right but for its age: it can change nothing."""
    return {"DPoP": signed(cast.key, header_of_proof(cast), claims_of_proof(cast, method, path, token, age=3600))}


def header_of_proof(cast: Cast) -> dict[str, Any]:
    """The header of a right proof."""
    return {"typ": TYPE, "alg": cast.key.algorithm, "jwk": cast.key.public.to_jwk()}


def hostile_proofs(cast: Cast) -> Iterator[tuple[str, str, str, dict[str, str]]]:
    """Every wrong DPoP proof, and proofs that are right and expensive to read: what each is, method, path and header
    fields of its request."""
    scheme = {"Authorization": f"DPoP {cast.everything}"}
    for method, path, token, fields in (
        ("POST", "/api/oauth/token", "", {}),
        ("GET", "/api/v1/data/notes/n1", cast.everything, scheme),
    ):
        head, claims = header_of_proof(cast), claims_of_proof(cast, method, path, token)
        found = {**wrong_jwts(cast.key, head, claims), **wrong_proofs(cast.key, claims)}
        found |= {name: signed(cast.key, head, _padded(claims, value)) for name, value in _PADDINGS.items()}
        for name, htu in _ADDRESSES.items():
            found[name] = signed(cast.key, head, {**claims, "htu": htu})
        for name, text in found.items():
            if text.isascii() and text.isprintable():
                yield name, method, path, {**fields, "DPoP": text}


_ADDRESSES = {
    name: f"https://a/{part * (3_500 // len(part))}"
    for name, part in {"dots": "../", "escapes": "%41", "slashes": "/", "broken escapes": "%", "steps": "a/../"}.items()
}


def hostile_tokens(cast: Cast) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Every wrong token, and tokens that are right and expensive to read: what each is, where it goes, the
    parameters."""
    proof, asked = claims_of_assertion(cast), claims_of_request(cast)
    heads = {"assertion": header(cast, "JWT"), "request": header(cast, "oauth-authz-req+jwt")}
    for name, text in wrong_jwts(cast.key, heads["assertion"], proof).items():
        yield name, "/api/oauth/revoke", _as_proof(text)
    for name, value in _PADDINGS.items():
        yield name, "/api/oauth/revoke", _as_proof(signed(cast.key, heads["assertion"], _padded(proof, value)))
    jag, head = claims_of_id_jag(cast), header(cast, ID_JAG)
    texts = wrong_jwts(cast.key, head, jag)
    texts |= {name: signed(cast.key, head, _padded(jag, value)) for name, value in _PADDINGS.items()}
    client = {"client_id": "web-app", "client_secret": cast.secret, "grant_type": ASSERTION_GRANT}
    for name, text in texts.items():
        yield name, "/api/oauth/token", {**client, "assertion": text}
    for name, text in wrong_jwts(cast.key, heads["request"], asked).items():
        yield name, "/oauth/authorize", {"client_id": cast.key_app.client_id, "request": text}
    for name, value in _PADDINGS.items():
        text = signed(cast.key, heads["request"], _padded(asked, value))
        yield name, "/oauth/authorize", {"client_id": cast.key_app.client_id, "request": text}


def _as_proof(text: str) -> dict[str, str]:
    return {"token": "any", "client_assertion_type": ASSERTION_TYPE, "client_assertion": text}


def _padded(claims: dict[str, Any], value: bytes) -> bytes:
    return orjson.dumps(claims)[:-1] + b',"claims":' + value + b"}"


_PADDINGS: dict[str, bytes] = {
    "many names": b"{" + b",".join(b'"%d":1' % number for number in range(_ROOM // 8)) + b"}",
    "shallow arrays": b"[" + b"[]," * (_ROOM // 3) + b"[]]",
    "deep arrays": b"[" * 14 + b"1," * (_ROOM // 2) + b"1" + b"]" * 14,
    "arrays that are too deep": b"[" * (_ROOM // 2) + b"]" * (_ROOM // 2),
    "a string of escapes": b'"' + b"\\ud83d\\ude00" * (_ROOM // 12) + b'"',
    "half characters": b'"' + b"\\ud83d" * (_ROOM // 6) + b'"',
    "a string without an end": b'"' + b"\\" * (_ROOM - 1),
    "a long number": b"9" * _ROOM,
    "a large exponent": b"1e" + b"9" * _ROOM,
    "one name many times": b"{" + b'"a":1,' * (_ROOM // 6) + b'"a":1}',
    "marks that are put in order": b'"' + "\u0344".encode() * (_ROOM // 2) + b'"',
}
