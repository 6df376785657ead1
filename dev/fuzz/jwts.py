"""Signed tokens of every wrong kind: what well-known readers of JWTs have fallen for, and what costs them time."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from store.crypto.jose.private import PrivateKey

KIDS = (
    "../../../../dev/null",
    "file:///etc/passwd",
    "' OR 1=1 --",
    "x' UNION SELECT 'secret' --",
    "https://evil.example/key.pem",
    "|sleep 5",
    "\u0000",
    "a" * 100_000,
    "",
)
"""Names of keys that a careless server opens, asks its database for, or fetches."""


def b64(raw: bytes | str | Mapping[str, Any]) -> str:
    """One part of a token."""
    if isinstance(raw, Mapping):
        raw = json.dumps(raw)
    return base64.urlsafe_b64encode(raw.encode() if isinstance(raw, str) else raw).rstrip(b"=").decode()


def signed(key: PrivateKey, header: Mapping[str, Any] | str, claims: Mapping[str, Any] | bytes | str) -> str:
    """A token of any header and claims with a right signature."""
    text = f"{b64(header)}.{b64(claims)}"
    return f"{text}.{b64(key.sign(text.encode()))}"


def wrong_jwts(key: PrivateKey, header: Mapping[str, Any], claims: Mapping[str, Any]) -> dict[str, str]:
    """Tokens that nobody may accept, by what is wrong with them. `header` and `claims` are those of a right one, with
    the name of the key in `kid`. Most have a right signature, so only the reader's other checks can refuse them."""
    right = signed(key, header, claims)
    head, body, signature = right.split(".")
    without = {name: value for name, value in header.items() if name != "alg"}
    evil = PrivateKey.generate("ES256")
    return {
        **_algorithms(key, header, claims),
        **{f"kid {kid[:20]!r}": signed(key, {**header, "kid": kid}, claims) for kid in KIDS if kid},
        "kid that is a number": signed(key, {**header, "kid": 1}, claims),
        "kid that is a list": signed(key, {**header, "kid": [header.get("kid")]}, claims),
        "jku": signed(key, {**header, "jku": "https://evil.example/jwks.json"}, claims),
        "x5u": signed(key, {**header, "x5u": "https://evil.example/cert.pem"}, claims),
        "x5c": signed(key, {**header, "x5c": ["MIIB"]}, claims),
        "key of the sender in the header": signed(
            evil, {**header, "alg": "ES256", "jwk": evil.public.to_jwk()}, claims
        ),
        "key of the sender in the header, with the name of ours": signed(
            evil, {**header, "alg": "ES256", "jwk": {**evil.public.to_jwk(), "kid": header.get("kid", "")}}, claims
        ),
        "unknown crit": signed(key, {**header, "crit": ["exp"], "exp": 9e9}, claims),
        "empty crit": signed(key, {**header, "crit": []}, claims),
        "unencoded payload": signed(key, {**header, "b64": False, "crit": ["b64"]}, claims),
        "b64 that changes nothing": signed(key, {**header, "b64": True}, claims),
        "compressed": signed(key, {**header, "zip": "DEF"}, claims),
        "encrypted": signed(key, {**header, "enc": "A256GCM"}, claims),
        "nested": signed(key, {**header, "cty": "JWT"}, right),
        "nested a hundred times": _nested(key, header, right),
        "no alg": signed(key, without, claims),
        "alg that is a list": signed(key, {**header, "alg": [header["alg"]]}, claims),
        "alg that is null": signed(key, {**header, "alg": None}, claims),
        "alg in lower case": signed(key, {**header, "alg": header["alg"].lower()}, claims),
        "repeated alg": signed(key, json.dumps(header)[:-1] + f', "alg": "{header["alg"]}"}}', claims),
        "repeated claim": signed(key, header, json.dumps(claims)[:-1] + ', "sub": "a", "sub": "b"}'),
        "claims that are a list": signed(key, header, "[]"),
        "claims that are text": signed(key, header, '"text"'),
        "claims with NaN": signed(key, header, '{"exp": NaN}'),
        "claims with an endless date": signed(key, header, '{"exp": 1e999}'),
        "claims with a date beyond all": signed(key, header, '{"exp": 1e20}'),
        "claims with a negative date": signed(key, header, '{"exp": -1}'),
        "claims with a date as text": signed(key, header, '{"exp": "9999999999"}'),
        "claims with a date that is true": signed(key, header, '{"exp": true}'),
        "claims with a date that is null": signed(key, header, '{"exp": null}'),
        "claims with half a character": signed(key, header, '{"aud": ["\\ud800"]}'),
        "claims that are not UTF-8": signed(key, header, b'{"sub": "\xff"}'),
        "claims nested deep": signed(key, header, '{"a":' + "[" * 2_000 + "]" * 2_000 + "}"),
        "no JSON": signed(key, header, "{"),
        "60 KB": signed(key, header, {**claims, "padding": "a" * 60_000}),
        "60 KB of dots": "." * 60_000,
        "60 KB of brackets": signed(key, header, "[" * 45_000),
        "one part": head,
        "no signature": f"{head}.{body}.",
        "two parts": f"{head}.{body}",
        "four parts": f"{right}.{signature}",
        "five parts": f"{head}..{body}.{body}.{signature}",
        "padding": f"{head}.{body}.{signature}=",
        "a line break": f"{head}.{body}.\n{signature}",
        "spare bits": f"{head}.{body}.{_spare(signature)}",
        "other alphabet": f"{head}.{body}.+/{signature[2:]}",
        "letters beyond ASCII": f"{head}.{body}.{signature[:-1]}é",
        "signature cut": f"{head}.{body}.{b64(key.sign(f'{head}.{body}'.encode())[:-1])}",
        "signature of zeros": f"{head}.{body}.{b64(bytes(64))}",
        "signature of zeros, long": f"{head}.{body}.{b64(bytes(256))}",
        "signature of another token": f"{head}.{b64({**claims, 'sub': 'other'})}.{signature}",
        "nothing": "",
    }


def wrong_proofs(key: PrivateKey, claims: Mapping[str, Any]) -> dict[str, str]:
    """DPoP proofs that nobody may accept, by what is wrong with them. `claims` are those of a right one."""
    jwk, other = key.public.to_jwk(), PrivateKey.generate(key.algorithm).public.to_jwk()
    header = {"typ": "dpop+jwt", "alg": key.algorithm, "jwk": jwk}
    without = {name: value for name, value in header.items() if name != "jwk"}
    secret = {"kty": "oct", "k": b64(b"k" * 32)}
    text = f"{b64({**header, 'alg': 'HS256', 'jwk': secret})}.{b64(claims)}"
    heads: dict[str, Mapping[str, Any]] = {
        "no type": {name: value for name, value in header.items() if name != "typ"},
        "type of an ID token": {**header, "typ": "JWT"},
        "type of an access token": {**header, "typ": "at+jwt"},
        "type that is a list": {**header, "typ": ["dpop+jwt"]},
        "no key": without,
        "name of a key in place of a key": {**without, "kid": jwk["kid"]},
        "another key": {**header, "jwk": other},
        "key as text": {**header, "jwk": json.dumps(jwk)},
        "key in a list": {**header, "jwk": [jwk]},
        "key in a set": {**header, "jwk": {"keys": [jwk]}},
        "key that is empty": {**header, "jwk": {}},
        "key for encryption": {**header, "jwk": {**jwk, "use": "enc"}},
        "key for another algorithm": {**header, "jwk": {**jwk, "alg": "ES512"}},
        "key that is symmetric": {**header, "jwk": secret},
        "key with a thousand members": {**header, "jwk": {**jwk, **{f"m{n}": n for n in range(1000)}}},
        "key of 1,024 bits": {**header, "jwk": {"kty": "RSA", "n": b64(b"\xc1" * 128), "e": "AQAB"}},
        "key of 16,384 bits": {**header, "jwk": {"kty": "RSA", "n": b64(b"\xc1" * 2048), "e": "AQAB"}},
        "key with the exponent 1": {**header, "jwk": {"kty": "RSA", "n": b64(b"\xc1" * 256), "e": "AQ"}},
        "point off its curve": {**header, "jwk": {"kty": "EC", "crv": "P-256", "x": "A" * 43, "y": "A" * 43}},
        **{
            f"key with the private member {name}": {**header, "jwk": {**jwk, name: "AAAA"}}
            for name in ("d", "p", "q", "dp", "dq", "qi", "oth", "k")
        },
    }
    return {
        "HS256 with a key in the header": f"{text}.{b64(hmac.digest(b'k' * 32, text.encode(), 'sha256'))}",
        **{what: signed(key, head, claims) for what, head in heads.items()},
        **{
            f"no {name}": signed(key, header, {one: value for one, value in claims.items() if one != name})
            for name in ("jti", "htm", "htu", "iat")
        },
        "two proofs": f"{signed(key, header, claims)}, {signed(key, header, claims)}",
    }


def _algorithms(key: PrivateKey, header: Mapping[str, Any], claims: Mapping[str, Any]) -> dict[str, str]:
    """No signature, and the public key as the secret of an HMAC, in each form that a server may have it."""
    found = {}
    for alg in ("none", "None", "NONE", "nOnE", ""):
        text = f"{b64({**header, 'alg': alg})}.{b64(claims)}"
        found[f"alg {alg!r} without a signature"] = f"{text}."
        found[f"alg {alg!r} with one"] = f"{text}.{b64(key.sign(text.encode()))}"
    public = key.key.public_key()
    secrets = {
        "PEM": public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo),
        "DER": public.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo),
        "JWK": json.dumps(key.public.to_jwk()).encode(),
        "nothing": b"",
    }
    for name, secret in secrets.items():
        text = f"{b64({**header, 'alg': 'HS256'})}.{b64(claims)}"
        found[f"HS256 with the public key as {name}"] = f"{text}.{b64(hmac.digest(secret, text.encode(), 'sha256'))}"
    others = {"ES256", "RS256", "PS256", "EdDSA", "ES384", "RS1", "HS512", "A128KW"} - {header["alg"]}
    found |= {f"alg {alg} for another key": signed(key, {**header, "alg": alg}, claims) for alg in sorted(others)}
    digest = hashlib.sha256(b"").hexdigest()
    return {**found, "alg that is a digest": signed(key, {**header, "alg": digest}, claims)}


def _nested(key: PrivateKey, header: Mapping[str, Any], inner: str) -> str:
    """A token in a token, until it is too long for any reader."""
    for _ in range(100):
        if len(inner) > 60_000:
            break
        inner = signed(key, {**header, "cty": "JWT"}, inner)
    return inner


def _spare(signature: str) -> str:
    """The same bytes with another last character."""
    letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"
    return signature[:-1] + letters[letters.index(signature[-1]) ^ 1]
