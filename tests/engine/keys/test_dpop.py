"""DPoP proofs: the vectors of RFC 9449, every wrong proof, and addresses that are the same."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import pytest

from dev.fuzz.jwts import b64, signed, wrong_jwts, wrong_proofs
from store.crypto import dpop
from store.crypto.dpop import LEEWAY, LONGEST, check_proof, normal_uri
from store.crypto.jose.algorithms import sign
from store.crypto.jose.private import OURS, PrivateKey
from store.crypto.jose.refusal import JoseError

NOW = 1_562_262_616
TOKEN = "Kz~8mXK1EalYznwH-LC-1fBAo.4Ljp~zsPE_NeO.gxU"
KEYS = {algorithm: PrivateKey.generate(algorithm) for algorithm in OURS}

# RFC 9449, figures 2 and 13: the texts of the parts, and the signatures.
RFC_HEAD = (
    '{"typ":"dpop+jwt","alg":"ES256","jwk":{"kty":"EC","x":"l8tFrhx-34tV3hRICRDY9zCkDlpBhF42UQUfWVAWBFs",'
    '"y":"9VE4jf_Ok_o64zbTTlcuNJajHmt6v9TDVrU0CdvGRDA","crv":"P-256"}}'
)
RFC_AT_TOKEN = (
    '{"jti":"-BwC3ESc6acc2lTc","htm":"POST","htu":"https://server.example.com/token","iat":1562262616}',
    "2-GxA6T8lP4vfrg8v-FdWP0A0zdrj8igiMLvqRMUvwnQg4PtFLbdLXiOSsX0x7NVY-FNyJK70nfbV37xRZT3Lg",
)
RFC_AT_RESOURCE = (
    '{"jti":"e1j3V_bKic8-LAEB","htm":"GET","htu":"https://resource.example.org/protectedresource","iat":1562262618,'
    '"ath":"fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo"}',
    "2oW9RP35yRqzhrtNP86L-Ey71EOptxRimPPToA1plemAgR6pxHF8y6-yqyVnmcw6Fy1dqd-jfxSYoMxhAJpLjA",
)
RFC_JKT = "0ZcOCORZNYy-DWpqq30jZyJGHTN0d2HglBV3uiguA4I"

CLAIMS: Mapping[str, Any] = {"jti": "one", "htm": "GET", "htu": "https://id.example/api/x", "iat": NOW}


def proof_of(key: PrivateKey = KEYS["ES256"], *, header: Mapping[str, Any] | None = None, **changes: Any) -> str:
    """A proof; a change to None leaves a claim out."""
    head = {"typ": "dpop+jwt", "alg": key.algorithm, "jwk": key.public.to_jwk(), **(header or {})}
    return signed(key, head, {name: value for name, value in {**CLAIMS, **changes}.items() if value is not None})


def check(text: str, *, token: str = "", method: str = "GET", uri: str = "https://id.example/api/x") -> dpop.DpopProof:
    """Checks a proof at a fixed time."""
    return check_proof(text, method=method, uri=uri, now=NOW, access_token=token)


def reason(text: str, **more: Any) -> str:
    """The word that a proof is refused with."""
    with pytest.raises(JoseError) as caught:
        check(text, **more)
    return caught.value.reason


def test_the_proofs_of_the_standard_are_accepted() -> None:
    claims, signature = RFC_AT_TOKEN
    text = f"{b64(RFC_HEAD)}.{b64(claims)}.{signature}"
    found = check_proof(text, method="POST", uri="https://server.example.com/token", now=NOW)
    assert (found.jkt, found.nonce) == (RFC_JKT, None)
    claims, signature = RFC_AT_RESOURCE
    text = f"{b64(RFC_HEAD)}.{b64(claims)}.{signature}"
    at: dict[str, Any] = {"method": "GET", "uri": "https://resource.example.org/protectedresource", "now": NOW}
    assert check_proof(text, **at, access_token=TOKEN).jkt == RFC_JKT
    with pytest.raises(JoseError, match="ath"):
        check_proof(text, **at, access_token=f"{TOKEN}x")


@pytest.mark.parametrize("algorithm", OURS)
def test_a_proof_of_each_kind_of_key_is_accepted(algorithm: str) -> None:
    key = KEYS[algorithm]
    assert check(proof_of(key, nonce="n")) == dpop.DpopProof(key.kid, check(proof_of(key)).mark, "n")


def test_an_rsa_key_also_signs_proofs_with_pss() -> None:
    key = KEYS["RS256"]
    text = f"{b64({'typ': 'dpop+jwt', 'alg': 'PS256', 'jwk': key.public.to_jwk()})}.{b64(CLAIMS)}"
    assert check(f"{text}.{b64(sign('PS256', key.key, text.encode()))}").jkt == key.kid


@pytest.mark.rfc("9449 4.2 typ")
@pytest.mark.rfc("9449 4.2 alg")
@pytest.mark.rfc("9449 4.2 jwk")
@pytest.mark.rfc("9449 4.3-4 typ")
@pytest.mark.rfc("9449 4.3-5 alg")
@pytest.mark.rfc("9449 4.3-6 signature")
@pytest.mark.rfc("9449 4.3-7 private")
@pytest.mark.rfc("9449 11.5 typ")
@pytest.mark.rfc("9449 11.6 algorithms")
@pytest.mark.trap(44)
@pytest.mark.trap(39)
@pytest.mark.parametrize("algorithm", OURS)
def test_no_wrong_proof_is_accepted(algorithm: str) -> None:
    key = KEYS[algorithm]
    header = {"typ": "dpop+jwt", "alg": algorithm, "jwk": key.public.to_jwk()}
    wrong = {
        what: text
        for what, text in wrong_jwts(key, header, CLAIMS).items()
        if not what.startswith(("key of the sender", "kid '", 'kid "'))  # a name chooses nothing
    }
    for what, text in {**wrong, **wrong_proofs(key, CLAIMS)}.items():
        began = time.process_time()
        with pytest.raises(JoseError):
            pytest.fail(f"accepted: {what} {check(text)}")
        assert time.process_time() - began < 0.02, what


@pytest.mark.rfc("9449 4.2 claims")
@pytest.mark.rfc("9449 11.1 large")
@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param({"htm": "POST"}, "htm", id="another method"),
        pytest.param({"htm": "get"}, "htm", id="the method in lower case"),
        pytest.param({"htm": None}, "htm", id="no method"),
        pytest.param({"htu": "https://id.example/api/y"}, "htu", id="another path"),
        pytest.param({"htu": "http://id.example/api/x"}, "htu", id="another scheme"),
        pytest.param({"htu": "https://evil.example/api/x"}, "htu", id="another host"),
        pytest.param({"htu": "https://id.example:8443/api/x"}, "htu", id="another port"),
        pytest.param({"htu": "https://u@id.example/api/x"}, "htu", id="with a user"),
        pytest.param({"htu": "/api/x"}, "htu", id="a path alone"),
        pytest.param({"htu": ["https://id.example/api/x"]}, "htu", id="a list"),
        pytest.param({"htu": None}, "htu", id="no address"),
        pytest.param({"iat": NOW - LEEWAY - 1}, "iat", id="too old"),
        pytest.param({"iat": NOW + LEEWAY + 1}, "not_yet", id="too new"),
        pytest.param({"iat": None}, "iat", id="no time"),
        pytest.param({"exp": NOW - LEEWAY}, "expired", id="expired by its own word"),
        pytest.param({"jti": None}, "jti", id="no id"),
        pytest.param({"jti": ""}, "jti", id="an empty id"),
        pytest.param({"jti": "j" * 257}, "jti", id="a long id"),
        pytest.param({"jti": 1}, "jti", id="an id that is a number"),
        pytest.param({"nonce": 1}, "nonce", id="a nonce that is a number"),
        pytest.param({"nonce": "n" * 257}, "nonce", id="a long nonce"),
    ],
)
def test_a_claim_that_does_not_fit_the_request_is_refused(changes: dict[str, Any], expected: str) -> None:
    assert reason(proof_of(**changes)) == expected


@pytest.mark.rfc("9449 4.3-11 time")
def test_a_proof_is_fresh_for_a_minute_either_way() -> None:
    for iat in (NOW - LEEWAY, NOW + LEEWAY, NOW - LEEWAY + 0.5):
        assert check(proof_of(iat=iat))


@pytest.mark.rfc("9449 4.2 ath")
@pytest.mark.rfc("9449 4.3-12 ath")
def test_with_an_access_token_the_proof_names_it() -> None:
    assert reason(proof_of(), token=TOKEN) == "ath"
    assert reason(proof_of(ath="fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEA"), token=TOKEN) == "ath"
    right = proof_of(ath="fUHyO2r2Z3DZ53EsNrWBb0xWXoaNy59IiKCAqksmQEo")
    assert check(right, token=TOKEN)
    assert check(right), "the token endpoint has no use for it"


@pytest.mark.trap(39)
def test_length_is_the_first_check() -> None:
    assert reason(proof_of(more="a" * LONGEST)) == "too_long"
    # The longest address that is ours, the longest key, and all optional claims.
    longest: dict[str, Any] = {
        "htu": f"https://{'h' * 250}/{'%41' * 400}",
        "ath": "a" * 43,
        "nonce": "n" * 128,
        "jti": "j" * 64,
    }
    assert reason(proof_of(KEYS["RS256"], **longest)) == "htu"


def test_the_mark_of_a_proof_is_that_of_key_method_address_and_id() -> None:
    marks = {
        check(proof_of()).mark,
        check(proof_of(KEYS["EdDSA"])).mark,
        check(proof_of(jti="two")).mark,
        check(proof_of(htm="PUT"), method="PUT").mark,
        check(proof_of(htu="https://id.example/api/y"), uri="https://id.example/api/y").mark,
    }
    assert len(marks) == 5
    # A copy is the same proof, whatever else changed and however the address is spelt.
    again = check(proof_of(iat=NOW + 1, nonce="n", htu="HTTPS://ID.example:443/api/%78"))
    assert again.mark in marks


@pytest.mark.rfc("9449 4.3 normal")
@pytest.mark.parametrize(
    ("written", "normal"),
    [
        pytest.param("HTTPS://ID.Example/Api", "https://id.example/Api", id="case of scheme and host"),
        pytest.param("https://id.example:443/a", "https://id.example/a", id="the default port"),
        pytest.param("http://id.example:80/a", "http://id.example/a", id="the default port without TLS"),
        pytest.param("https://id.example:/a", "https://id.example/a", id="an empty port"),
        pytest.param("http://id.example:443/a", "http://id.example:443/a", id="a port of the other scheme"),
        pytest.param("http://[::1]:80/a", "http://[::1]/a", id="an IPv6 address"),
        pytest.param("https://id.example", "https://id.example/", id="no path"),
        pytest.param("https://id.example?a=/b#c", "https://id.example/", id="no path but a query"),
        pytest.param("https://id.example/a?b=c#d", "https://id.example/a", id="query and fragment are ignored"),
        pytest.param("https://id.example/a#b?c", "https://id.example/a", id="a fragment with a question mark"),
        pytest.param("https://id.example/%7e%3a%2F", "https://id.example/~%3A%2F", id="escapes"),
        pytest.param("https://id.example/a/./b/../c", "https://id.example/a/c", id="dots"),
        pytest.param("https://id.example/../..", "https://id.example/", id="more dots than path"),
        pytest.param("https://id.example/a/%2e%2e/b", "https://id.example/b", id="escaped dots"),
        pytest.param("https://id.example/a//b/", "https://id.example/a//b/", id="empty segments stay"),
        pytest.param("https://id.example/a b", "", id="a space"),
        pytest.param("https://id.example/\u00e9", "", id="beyond ASCII"),
        pytest.param("https://id.example/a\n", "", id="a line break"),
        pytest.param("id.example/a", "", id="no scheme"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_addresses_are_normalised(written: str, normal: str) -> None:
    assert normal_uri(written) == normal


@pytest.mark.trap(39)
def test_a_long_address_is_normalised_in_linear_time() -> None:
    for part in ("/.", "/..", "/a/..", "%41", "%zz", ":", ":0", "/", "a", "?", "#"):
        for head in ("https://id.example/", "https://"):
            for tail in ("", " ", "\u00e9"):
                began = time.process_time()
                normal_uri(head + part * (LONGEST // len(part)) + tail)
                assert time.process_time() - began < 0.02, (head, part, tail)
