"""Signed tokens: vectors of the standards, other libraries, and everything that readers of JWTs have fallen for."""

from __future__ import annotations

import json
import re
import time
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import KeySet

from dev.fuzz.jwts import b64, signed, wrong_jwts
from store.crypto.jose import base64url, claims, jws
from store.crypto.jose.algorithms import ALGORITHMS, EDDSA, half_hash, is_signed
from store.crypto.jose.algorithms import sign as sign_with
from store.crypto.jose.jwk import parse_key
from store.crypto.jose.private import OURS, PrivateKey
from store.crypto.jose.refusal import JoseError
from tests.engine.keys.test_jwk import RFC7515_EC, RFC8037

JOE = "eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ"
RFC7515_RSA = {
    "kty": "RSA",
    "n": "ofgWCuLjybRlzo0tZWJjNiuSfb4p4fAkd_wWJcyQoTbji9k0l8W26mPddxHmfHQp-Vaw-4qPCJrcS2mJPMEzP1Pt0Bm4d4QlL-yR"
    "T-SFd2lZS-pCgNMsD1W_YpRPEwOWvG6b32690r2jZ47soMZo9wGzjb_7OMg0LOL-bSf63kpaSHSXndS5z5rexMdbBYUsLA9e-KXB"
    "dQOS-UTo7WTBEMa2R2CapHg665xsmtdVMTBQY4uDZlxvb3qCo5ZwKh9kG4LT6_I5IhlJH7aGhyxXFvUK-DWNmoudF8NAco9_h9ia"
    "GNj8q2ethFkMLs91kzk2PAcDTW9gb54h4FRWyuXpoQ",
    "e": "AQAB",
}
RS256_SIGNATURE = (
    "cC4hiUPoj9Eetdgtv3hF80EGrhuB__dzERat0XF9g2VtQgr9PJbu3XOiZj5RZmh7AAuHIm4Bh-0Qc_lF5YKt_O8W2Fp5jujGbds9"
    "uJdbF9CUAr7t1dnZcAcQjbKBYNX4BAynRFdiuB--f_nZLgrnbyTyWzO75vRK5h6xBArLIARNPvkSjtQBMHlb1L07Qe7K0GarZRmB"
    "_eSN9383LcOLn6_dO--xi12jzDwusC-eOkHWEsqtFZESc6BfI7noOPqvhJ1phCnvWh6IeYI2w9QOYEUipUTI8np6LbgGY9Fs98rq"
    "Vt5AXLIhWkWywlVmtVrBp0igcN_IoypGlUPQGe77Rw"
)
ES256_SIGNATURE = "DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q"
EDDSA_SIGNATURE = "hgyY0il_MGCjP0JzlnLWG1PPOt7-09PGcvMg3AIbQR6dWbhijcNR4ki4iylGjg5BhVsPt9g7sVvpAr_MuM0KAg"

CLAIMS = {"iss": "https://id.example.com", "sub": "ada", "aud": "app", "exp": 2_000_000_000, "iat": 1_700_000_000.5}
WORD = re.compile(r"[a-z0-9_]{2,20}")
KEYS = {algorithm: PrivateKey.generate(algorithm) for algorithm in OURS}


def reason(text: str, *, algorithms: Any = ALGORITHMS, types: Any = ("JWT",), **more: Any) -> str:
    """The word that a token is refused with, by a reader that has all keys."""
    with pytest.raises(JoseError) as caught:
        jws.verify(text, [key.public for key in KEYS.values()], algorithms=algorithms, types=types, **more)
    return caught.value.reason


def test_headers_of_our_tokens_are_written_once_for_each_type_and_key() -> None:
    keys = [*KEYS.values(), PrivateKey.generate(EDDSA)]
    for _ in range(2):
        for key in keys:
            for typ in ("JWT", "at+jwt"):
                found = jws.verify(jws.sign(CLAIMS, key, typ), [key.public], algorithms=ALGORITHMS, types=(typ,))
                assert found.header == {"typ": typ, "alg": key.algorithm, "kid": key.kid}
    for number in range(jws.MOST_WRITTEN + 1):
        jws.sign(CLAIMS, KEYS[EDDSA], f"type-{number}")
    assert jws._written_header.cache_info().currsize == jws.MOST_WRITTEN


@pytest.mark.parametrize(
    ("key", "header", "signature"),
    [
        pytest.param(RFC7515_RSA, "eyJhbGciOiJSUzI1NiJ9", RS256_SIGNATURE, id="RFC 7515 A.2, RS256"),
        pytest.param(RFC7515_EC, "eyJhbGciOiJFUzI1NiJ9", ES256_SIGNATURE, id="RFC 7515 A.3, ES256"),
    ],
)
def test_the_tokens_of_the_standard_are_verified(key: dict[str, Any], header: str, signature: str) -> None:
    found = jws.verify(f"{header}.{JOE}.{signature}", [parse_key(key)], algorithms=ALGORITHMS, types=[None])
    assert found.claims == {"iss": "joe", "exp": 1300819380, "http://example.com/is_root": True}


def test_the_signature_of_rfc_8037_is_verified() -> None:
    message = b"eyJhbGciOiJFZERTQSJ9.RXhhbXBsZSBvZiBFZDI1NTE5IHNpZ25pbmc"
    key, signature = parse_key(RFC8037).key, base64url.decode(EDDSA_SIGNATURE)
    assert is_signed("EdDSA", key, message, signature)
    assert not is_signed("EdDSA", key, message + b"A", signature)
    assert not is_signed("ES256", key, message, signature)


# RFC 9864 gives the algorithm another name. Most clients still know only this one.
@pytest.mark.filterwarnings("ignore:EdDSA is deprecated")
@pytest.mark.parametrize("algorithm", OURS)
def test_another_library_reads_our_tokens_and_we_read_its(algorithm: str) -> None:
    key = KEYS[algorithm]
    own: Any = key.public.to_jwk(algorithm)
    keys = KeySet.import_key_set({"keys": [own]})
    text = jws.sign(CLAIMS, key, "JWT")
    theirs = jwt.decode(text, keys, algorithms=[algorithm])
    assert theirs.claims == CLAIMS
    assert theirs.header == {"typ": "JWT", "alg": algorithm, "kid": key.kid}
    found = jws.verify(text, [key.public], algorithms=[algorithm], types=["jwt"])
    assert (found.claims, found.key) == (CLAIMS, key.public)


@pytest.mark.parametrize("algorithm", OURS)
def test_half_hash_is_that_of_the_algorithm(algorithm: str) -> None:
    # OpenID Connect Core A.3 has the value for RS256; EdDSA hashes with SHA-512.
    assert half_hash("RS256", "jHkWEdUXMU1BwAsC4vtUsZwnNvTIxEl0z9K3vx5KF0Y") == "77QmUPtjPfzWtF2AnpK9RQ"
    assert len(base64url.decode(half_hash(algorithm, "x"))) == (32 if algorithm == "EdDSA" else 16)


@pytest.mark.fapi("5.4.1-1.1 RFC 8725")
@pytest.mark.trap(44)
@pytest.mark.parametrize("algorithm", OURS)
def test_no_wrong_token_is_accepted(algorithm: str) -> None:
    key = KEYS[algorithm]
    header = {"typ": "JWT", "alg": algorithm, "kid": key.kid}
    right = signed(key, header, CLAIMS)
    keys = [one.public for one in KEYS.values()]
    assert jws.verify(right, keys, algorithms=ALGORITHMS, types=["JWT"]).claims == CLAIMS
    for what, text in wrong_jwts(key, header, CLAIMS).items():
        began = time.process_time()
        assert WORD.fullmatch(refusal(partial(jws.verify, keys=keys), text, what)), what
        assert time.process_time() - began < 0.02, what


@pytest.mark.trap(44)
@pytest.mark.parametrize("algorithm", OURS)
def test_no_wrong_proof_is_accepted(algorithm: str) -> None:
    key = KEYS[algorithm]
    header = {"typ": "JWT", "alg": algorithm, "jwk": key.public.to_jwk()}
    assert jws.verify_with_own_key(signed(key, header, CLAIMS), algorithms=OURS, types=["JWT"]).claims == CLAIMS
    for what, text in wrong_jwts(key, header, CLAIMS).items():
        # The key of a proof is its sender's, and its name chooses nothing.
        if not what.startswith(("key of the sender", "kid '", 'kid "')):
            assert WORD.fullmatch(refusal(jws.verify_with_own_key, text, what)), what


def refusal(read: Callable[..., object], text: str, what: str) -> str:
    """The word that a reader of all our algorithms refuses a token with."""
    try:
        read(text, algorithms=OURS, types=["JWT"])
    except JoseError as error:
        return error.reason
    pytest.fail(f"accepted: {what}")


@pytest.mark.trap(44)
@pytest.mark.parametrize(
    ("header", "expected"),
    [
        ({"alg": "none"}, "alg"),
        ({"alg": "HS256"}, "alg"),
        ({"crit": ["exp"]}, "header_crit"),
        ({"jku": "https://evil.example"}, "header_jku"),
        ({"x5u": "https://evil.example"}, "header_x5u"),
        ({"x5c": []}, "header_x5c"),
        ({"b64": False}, "header_b64"),
        ({"zip": "DEF"}, "header_zip"),
        ({"enc": "A256GCM"}, "header_enc"),
        ({"cty": "JWT"}, "header_cty"),
        ({"jwk": KEYS["ES256"].public.to_jwk()}, "jwk_in_header"),
        ({"kid": "../../key"}, "unknown_key"),
        ({"kid": 5}, "kid"),
        ({"typ": "at+jwt"}, "typ"),
        ({"typ": 5}, "typ"),
        ({"typ": None}, "typ"),
    ],
)
def test_each_check_of_the_header_says_its_own_word(header: dict[str, Any], expected: str) -> None:
    key = KEYS["ES256"]
    whole = {"typ": "JWT", "alg": "ES256", "kid": key.kid, **header}
    assert reason(signed(key, whole, CLAIMS)) == expected


@pytest.mark.trap(45)
@pytest.mark.parametrize("typ", ["JWT", "at+jwt", "logout+jwt", "dpop+jwt", "oauth-authz-req+jwt"])
def test_a_token_of_one_type_is_none_of_another(typ: str) -> None:
    text = jws.sign(CLAIMS, KEYS["ES256"], typ)
    key = [KEYS["ES256"].public]
    for other in {"JWT", "at+jwt", "logout+jwt", None} - {typ}:
        assert reason(text, types=[other]) == "typ"
    for same in (typ.upper(), f"application/{typ}"):
        assert jws.verify(text, key, algorithms=["ES256"], types=[same]).claims == CLAIMS


def test_a_caller_s_algorithms_bind() -> None:
    text = jws.sign(CLAIMS, KEYS["RS256"], "JWT")
    assert reason(text, algorithms=("ES256", "PS256", "EdDSA")) == "alg"


def test_ed25519_has_two_names() -> None:
    key = KEYS["EdDSA"]
    text = signed(key, {"alg": "Ed25519"}, CLAIMS)
    assert jws.verify(text, [parse_key(key.public.to_jwk())], algorithms=["Ed25519"], types=[None]).claims == CLAIMS
    assert reason(text, algorithms=["EdDSA"], types=[None]) == "alg"


def test_an_algorithm_needs_a_key_of_its_type() -> None:
    text = jws.sign(CLAIMS, KEYS["ES256"], "JWT")
    with pytest.raises(JoseError, match="unknown_key"):
        jws.verify(text, [KEYS["RS256"].public, KEYS["EdDSA"].public], algorithms=["ES256"], types=["JWT"])
    with pytest.raises(ValueError, match="does not sign"):
        sign_with("ES256", KEYS["RS256"].key, b"")


def test_a_key_without_a_name_fits_each_name() -> None:
    key = KEYS["ES256"]
    unnamed = parse_key({name: value for name, value in key.public.to_jwk().items() if name != "kid"})
    for header in ({"kid": "any"}, {}):
        text = signed(key, {"typ": "JWT", "alg": "ES256", **header}, CLAIMS)
        assert jws.verify(text, [unnamed], algorithms=["ES256"], types=["JWT"]).key == unnamed


@pytest.mark.rfc("9101 6.2 kid")
def test_a_token_that_names_a_key_is_verified_with_no_other() -> None:
    signer, other = KEYS["ES256"], PrivateKey.generate("ES256")
    known = [other.public, signer.public]
    wrong = signed(signer, {"typ": "JWT", "alg": "ES256", "kid": other.kid}, CLAIMS)
    with pytest.raises(JoseError, match="signature"):
        jws.verify(wrong, known, algorithms=["ES256"], types=["JWT"])
    for header in ({"kid": signer.kid}, {}):
        text = signed(signer, {"typ": "JWT", "alg": "ES256", **header}, CLAIMS)
        assert jws.verify(text, known, algorithms=["ES256"], types=["JWT"]).key == signer.public


@pytest.mark.fapi("5.4.3 kid")
def test_of_keys_with_one_name_the_right_one_verifies() -> None:
    right, wrong = KEYS["ES256"], PrivateKey.generate("ES256")
    keys = [parse_key({**one.public.to_jwk(), "kid": "same"}) for one in (wrong, right)]
    text = signed(right, {"alg": "ES256", "kid": "same"}, CLAIMS)
    assert jws.verify(text, keys, algorithms=["ES256"], types=[None]).key.thumbprint == right.kid


def test_the_signature_is_checked_before_the_claims_are_read() -> None:
    key = KEYS["ES256"]
    header = b64({"typ": "JWT", "alg": "ES256", "kid": key.kid})
    assert reason(f"{header}.{b64('{')}.{b64(bytes(64))}") == "signature"
    assert reason(signed(key, {"typ": "JWT", "alg": "ES256", "kid": key.kid}, "{")) == "json"


@pytest.mark.trap(39)
def test_length_is_the_first_check() -> None:
    text = jws.sign({**CLAIMS, "more": "a" * 8_000}, KEYS["ES256"], "JWT")
    assert reason(text) == "too_long"
    found = jws.verify(text, [KEYS["ES256"].public], algorithms=["ES256"], types=["JWT"], longest=20_000)
    assert found.claims["sub"] == "ada"


def test_a_proof_is_verified_with_its_own_key() -> None:
    for algorithm, key in KEYS.items():
        header = {"typ": "dpop+jwt", "alg": algorithm, "jwk": key.public.to_jwk()}
        text = signed(key, header, {"jti": "1"})
        found = jws.verify_with_own_key(text, algorithms=ALGORITHMS, types=["dpop+jwt"])
        assert (found.key.thumbprint, found.claims) == (key.kid, {"jti": "1"})


def proof(key: PrivateKey, claims: Any = None, **header: Any) -> str:
    """A token with the key in its header."""
    head = {"typ": "dpop+jwt", "alg": key.algorithm, "jwk": key.public.to_jwk(), **header}
    return signed(key, head, claims or {"jti": "1"})


def read(text: str) -> jws.Verified:
    """The proof in a text."""
    return jws.verify_with_own_key(text, algorithms=ALGORITHMS, types=["dpop+jwt"])


def test_a_key_that_signed_before_is_parsed_once_and_every_signature_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    key, other = PrivateKey.generate("ES256"), PrivateKey.generate("ES256")
    head, _, _ = proof(key).split(".")
    with pytest.raises(JoseError, match="signature"):
        read(signed_by_another := f"{head}.{proof(other).partition('.')[2]}")
    first = read(proof(key))
    monkeypatch.setattr(jws, "parse_key", None)
    again = read(proof(key, {"jti": "2"}))
    assert (again.claims, again.key) == ({"jti": "2"}, first.key)
    for wrong in (signed_by_another, proof(key)[:-8] + "AAAAAAAA", f"{head}.{b64({'jti': '3'})}.{'A' * 86}"):
        with pytest.raises(JoseError, match="signature"):
            read(wrong)
    with pytest.raises(JoseError, match="alg"):
        jws.verify_with_own_key(proof(key), algorithms=["RS256"], types=["dpop+jwt"])
    with pytest.raises(JoseError, match="typ"):
        jws.verify_with_own_key(proof(key), algorithms=ALGORITHMS, types=["JWT"])


def test_few_keys_are_kept_and_only_those_that_signed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(jws, "_own_keys", kept := OrderedDict())  # type: ignore[var-annotated]  # its own are long
    monkeypatch.setattr(jws, "MOST_KEPT", 2)
    texts = [proof(PrivateKey.generate("ES256")) for _ in range(3)]
    with pytest.raises(JoseError, match="signature"):
        read(texts[0][:-8] + "AAAAAAAA")
    read(proof(PrivateKey.generate("ES256"), more="x" * jws.LONGEST_KEPT))
    assert not kept
    for number in (0, 1, 0, 2):
        read(texts[number])
    assert [head for head, _, _ in kept] == [texts[0].split(".")[0], texts[2].split(".")[0]]


@pytest.mark.trap(44)
@pytest.mark.parametrize(
    ("own", "expected"),
    [
        pytest.param(None, "jwk", id="none"),
        pytest.param({"kty": "oct", "k": "AAAA"}, "private_key", id="symmetric"),
        pytest.param({**RFC7515_EC, "d": "AAAA"}, "private_key", id="private"),
        pytest.param(RFC7515_EC, "signature", id="another key"),
        pytest.param(RFC8037, "unknown_key", id="another type"),
    ],
)
def test_a_proof_s_key_must_be_public_and_the_signer_s(own: Any, expected: str) -> None:
    text = signed(KEYS["ES256"], {"typ": "dpop+jwt", "alg": "ES256", "jwk": own}, {})
    with pytest.raises(JoseError) as caught:
        jws.verify_with_own_key(text, algorithms=ALGORITHMS, types=["dpop+jwt"])
    assert caught.value.reason == expected


def test_the_sender_is_told_before_anything_is_verified() -> None:
    text = f"{b64({'alg': 'none'})}.{b64({'iss': 'app', 'sub': 'app'})}.{b64('x')}"
    assert jws.unverified_sender(text) == jws.Unverified("app", "app")
    for wrong in ({"iss": "app"}, {"iss": ["app"], "sub": "app"}):
        with pytest.raises(JoseError, match="claims"):
            jws.unverified_sender(f"{b64({})}.{b64(wrong)}.{b64('x')}")


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, None),
        ({"exp": 939}, "expired"),
        ({"exp": 941}, None),
        ({"exp": 1661}, "exp"),
        ({"exp": None}, "exp"),
        ({"nbf": 1061}, "not_yet"),
        ({"iat": 1061}, "not_yet"),
        ({"iat": 639}, "iat"),
        ({"iat": None}, "iat"),
    ],
)
def test_times_are_checked_with_leeway(changed: dict[str, Any], expected: str | None) -> None:
    given = {"exp": 1300, "iat": 1000, **changed}
    found = {name: value for name, value in given.items() if value is not None}
    if expected is None:
        claims.check_time(found, 1000, leeway=60, longest=600, age=300)
        return
    with pytest.raises(JoseError) as caught:
        claims.check_time(found, 1000, leeway=60, longest=600, age=300)
    assert caught.value.reason == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("a", ("a",)),
        (["a", "b"], ("a", "b")),
        ([], None),
        ("", None),
        ([""], None),
        (["a"] * 11, None),
        ({}, None),
        (1, None),
    ],
)
def test_audiences(value: Any, expected: tuple[str, ...] | None) -> None:
    if expected is None:
        with pytest.raises(JoseError, match="aud"):
            claims.audiences(json.loads(json.dumps({"aud": value})))
    else:
        assert claims.audiences({"aud": value}) == expected


def test_no_name_of_a_key_looks_like_an_option() -> None:
    assert {key.kid[0] for key in (PrivateKey.generate(EDDSA) for _ in range(1000))}.isdisjoint("-")
