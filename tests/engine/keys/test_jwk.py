"""Public keys of clients as JSON: what is read, what is refused, thumbprints."""

from __future__ import annotations

import json
import time
from typing import Any, cast

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from store.crypto.jose import base64url, jwk
from store.crypto.jose.jwk import UnknownKey, parse_key, parse_keys, read_keys
from store.crypto.jose.private import OURS, PrivateKey
from store.crypto.jose.refusal import JoseError

RFC7638 = {
    "kty": "RSA",
    "n": "0vx7agoebGcQSuuPiLJXZptN9nndrQmbXEps2aiAFbWhM78LhWx4cbbfAAtVT86zwu1RK7aPFFxuhDR1L6tSoc_BJECPebWKRXjB"
    "ZCiFV4n3oknjhMstn64tZ_2W-5JsGY4Hc5n9yBXArwl93lqt7_RN5w6Cf0h4QyQ5v-65YGjQR0_FDW2QvzqY368QQMicAtaSqzs8"
    "KJZgnYb9c7d0zgdAZHzu6qMQvRL5hajrn1n91CbOpbISD08qNLyrdkt-bFTWhAI4vMQFh6WeZu0fM4lFd2NcRwr3XPksINHaQ-G_"
    "xBniIqbw0Ls1jF44-csFCur-kEgU8awapJzKnqDKgw",
    "e": "AQAB",
    "alg": "RS256",
    "kid": "2011-04-29",
}
RFC7515_EC = {
    "kty": "EC",
    "crv": "P-256",
    "x": "f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU",
    "y": "x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0",
}
RFC8037 = {"kty": "OKP", "crv": "Ed25519", "x": "11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo"}


def reason(value: Any) -> str:
    """The word that a key is refused with."""
    with pytest.raises(JoseError) as caught:
        parse_key(value)
    return caught.value.reason


@pytest.mark.parametrize(
    ("key", "thumbprint"),
    [
        pytest.param(RFC7638, "NzbLsXh8uDCcd-6MNwXF4W_7noWXFZAfHkxZsRGC9Xs", id="RFC 7638 3.1"),
        pytest.param(RFC8037, "kPrK_qmxVWaYVA9wwBF6Iuo3vVzz7TxHCTwXBygrS4k", id="RFC 8037 A.3"),
    ],
)
def test_thumbprints_are_those_of_the_standards(key: dict[str, str], thumbprint: str) -> None:
    assert parse_key(key).thumbprint == thumbprint


@pytest.mark.parametrize("algorithm", OURS)
def test_our_own_public_key_reads_as_the_same_key(algorithm: str) -> None:
    ours = PrivateKey.generate(algorithm).public
    written = ours.to_jwk(algorithm)
    read = parse_key(json.loads(json.dumps(written)))
    assert read == ours
    assert read.algorithms == (algorithm,)
    assert (written["use"], written["kid"], written["alg"]) == ("sig", ours.thumbprint, algorithm)


@pytest.mark.parametrize("algorithm", OURS)
def test_a_private_key_survives_its_bytes(algorithm: str) -> None:
    key = PrivateKey.generate(algorithm)
    assert PrivateKey.load(algorithm, key.to_bytes()) == key
    for other in set(OURS) - {algorithm}:
        with pytest.raises(ValueError, match="another algorithm"):
            PrivateKey.load(other, key.to_bytes())


@pytest.mark.fapi("5.4.1-2 RSA")
@pytest.mark.fapi("5.4.1-3 curves")
@pytest.mark.trap(44)
@pytest.mark.parametrize(
    ("key", "expected"),
    [
        pytest.param({**RFC7515_EC, "d": "jpsQnnGQmL-YBIffH1136cspYG6-0iY7X1fCE9-E9LI"}, "private_key", id="private"),
        pytest.param({**RFC7638, "p": "AQAB"}, "private_key", id="factor of RSA"),
        pytest.param({"kty": "oct", "k": "AAAA"}, "private_key", id="symmetric"),
        pytest.param({"kty": "oct"}, "private_key", id="symmetric without its key"),
        pytest.param([RFC7515_EC], "jwk", id="a list"),
        pytest.param(None, "jwk", id="nothing"),
        pytest.param({**RFC7515_EC, "x": RFC7515_EC["y"]}, "jwk", id="not on the curve"),
        pytest.param({**RFC7515_EC, "x": 5}, "jwk", id="a number"),
        pytest.param({**RFC7515_EC, "x": RFC7515_EC["x"] + "="}, "jwk", id="padding"),
        pytest.param({**RFC7515_EC, "x": RFC7515_EC["x"][:-1]}, "jwk", id="too short"),
        pytest.param({**RFC7515_EC, "x": "A" + RFC7515_EC["x"]}, "jwk", id="too long"),
        pytest.param({**RFC7515_EC, "x": RFC7515_EC["x"][:-1] + "V"}, "base64", id="spare bits"),
        pytest.param({**RFC7515_EC, "x": "+" + RFC7515_EC["x"][1:]}, "base64", id="other alphabet"),
        pytest.param({**RFC7515_EC, "kid": "a" * 300}, "jwk", id="long name"),
        pytest.param({**RFC7515_EC, "kid": 1}, "jwk", id="name that is a number"),
        pytest.param({**RFC7515_EC, **{f"m{n}": 1 for n in range(30)}}, "jwk", id="many members"),
        pytest.param({**RFC7638, "e": "AQ"}, "weak_key", id="exponent 1"),
        pytest.param({**RFC7638, "e": "Aw"}, "weak_key", id="exponent 3"),
        pytest.param({**RFC7638, "e": "AQAA"}, "weak_key", id="even exponent"),
        pytest.param({**RFC7638, "e": "A" * 100_000}, "weak_key", id="endless exponent"),
        pytest.param({**RFC7638, "n": "A" * 100_000}, "weak_key", id="endless modulus"),
        pytest.param({**RFC7638, "n": RFC7638["n"][:172]}, "weak_key", id="1032 bits"),
        pytest.param({**RFC7638, "n": RFC7638["n"][:-1] + "A"}, "weak_key", id="even modulus"),
        pytest.param({**RFC7638, "n": "AA" + RFC7638["n"]}, "jwk", id="leading zero"),
        pytest.param({"kty": "RSA", "e": "AQAB"}, "jwk", id="no modulus"),
        pytest.param({"kty": "EC", "crv": "P-521", "x": "", "y": ""}, "key_type", id="another curve"),
        pytest.param({**RFC8037, "crv": "X25519"}, "key_type", id="a curve that signs nothing"),
        pytest.param({"kty": "EC", "crv": "secp256k1", "x": "", "y": ""}, "key_type", id="a curve of coins"),
        pytest.param({"kty": ["RSA"]}, "key_type", id="type that is a list"),
        pytest.param({**RFC7515_EC, "use": "enc"}, "key_use", id="for encryption"),
        pytest.param({**RFC7515_EC, "key_ops": ["sign"]}, "key_use", id="operations"),
        pytest.param({**RFC7515_EC, "alg": "ECDH-ES"}, "key_alg", id="another algorithm"),
        pytest.param({**RFC7638, "alg": "HS256"}, "key_alg", id="HMAC with a public key"),
        pytest.param({**RFC7638, "alg": "RSA1_5"}, "key_alg", id="encryption with RSA"),
    ],
)
def test_a_key_that_could_do_harm_is_refused(key: Any, expected: str) -> None:
    assert reason(key) == expected


def test_an_even_modulus_is_weak() -> None:
    number = int.from_bytes(base64url.decode(RFC7638["n"])) - 1
    assert reason({**RFC7638, "n": base64url.encode(number.to_bytes(256))}) == "weak_key"


def test_rsa_is_read_up_to_its_bound() -> None:
    def key(bits: int) -> dict[str, Any]:
        n = rsa.generate_private_key(65537, bits).public_key().public_numbers().n if bits < 4096 else (1 << bits) - 1
        return {"kty": "RSA", "e": "AQAB", "n": base64url.encode(n.to_bytes((n.bit_length() + 7) // 8))}

    assert parse_key(key(2048)).algorithms == ("RS256", "PS256")
    assert cast(rsa.RSAPublicKey, parse_key(key(4096)).key).key_size == 4096
    assert reason(key(4104)) == "weak_key"


def test_alg_of_a_key_binds_it() -> None:
    assert parse_key({**RFC7638, "alg": "PS256"}).algorithms == ("PS256",)


def test_a_set_skips_keys_that_are_not_used_here() -> None:
    keys = parse_keys({"keys": [{**RFC7515_EC, "use": "enc"}, {"kty": "AKP", "alg": "ML-DSA-44"}, RFC7515_EC]})
    assert [key.algorithms for key in keys] == [("ES256",)]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        pytest.param({"keys": []}, "jwks_empty", id="empty"),
        pytest.param({"keys": [{"kty": "AKP"}]}, "jwks_empty", id="none that is used here"),
        pytest.param({"keys": {}}, "jwks", id="no list"),
        pytest.param([], "jwks", id="no object"),
        pytest.param({"keys": [RFC7515_EC, {"kty": "oct", "k": "AA"}]}, "private_key", id="a secret among them"),
        pytest.param({"keys": [RFC7515_EC] * 21}, "jwks_size", id="too many"),
        pytest.param({"keys": [{"keys": [RFC7515_EC]}]}, "jwks_empty", id="nested"),
    ],
)
def test_a_set_that_is_no_good_is_refused(value: Any, expected: str) -> None:
    with pytest.raises(JoseError) as caught:
        parse_keys(value)
    assert caught.value.reason == expected


@pytest.mark.trap(39)
@pytest.mark.parametrize(
    "raw",
    [
        pytest.param(json.dumps({"keys": [RFC7638] * 1_000}).encode(), id="1,000 keys"),
        pytest.param(b'{"keys":' + b"[" * 30_000, id="brackets"),
        pytest.param(b'{"keys":' + b"[" * 15_000 + b"]" * 15_000 + b"}", id="nested"),
        pytest.param(b'{"keys":[' + b"{}," * 10_000 + b"{}]}", id="10,000 empty keys"),
        pytest.param(b'{"keys":[' + b"9" * 30_000 + b"]}", id="a long number"),
        pytest.param(b'{"keys":[], "keys":[]}', id="repeated"),
        pytest.param(b"\xff", id="no text"),
        pytest.param(b"", id="nothing"),
    ],
)
def test_a_hostile_set_costs_nothing(raw: bytes) -> None:
    began = time.process_time()
    with pytest.raises(JoseError):
        read_keys(raw)
    assert time.process_time() - began < 0.02


@pytest.mark.trap(39)
def test_the_largest_set_is_read_quickly() -> None:
    n = base64url.encode(((1 << 4096) - 1).to_bytes(512))
    raw = json.dumps({"keys": [{"kty": "RSA", "e": "AQAB", "n": n, "kid": str(i)} for i in range(20)]}).encode()
    began = time.process_time()
    assert len(read_keys(raw)) == 20
    assert time.process_time() - began < 0.02
    assert len(raw) < jwk.LONGEST_SET


def test_an_unknown_key_is_its_own_error() -> None:
    with pytest.raises(UnknownKey):
        parse_key({"kty": "AKP"})
