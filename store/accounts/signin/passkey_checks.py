"""Checks browsers' answers about passkeys (WebAuthn Level 3, 7.1 and 7.2). No I/O.

The `webauthn` library gets only CBOR that `store/accounts/signin/cbor.py` has read. Only `passkey_thread.py` imports
this module, and late: the library takes a tenth of a second to load, and most commands do not need it.
"""

from __future__ import annotations

import msgpack
from webauthn.authentication.verify_authentication_response import verify_authentication_response
from webauthn.helpers.cose import COSEAlgorithmIdentifier
from webauthn.registration.verify_registration_response import verify_registration_response

from store.accounts.signin.cbor import NotCanonical, read_item
from store.accounts.signin.passkey_keys import check_key, check_new_key
from store.accounts.signin.passkeys import (
    ALGORITHMS,
    NewPasskey,
    PasskeyResponse,
    RelyingParty,
    decode,
    encode,
    refused_answer,
)

_ALGORITHMS = [COSEAlgorithmIdentifier(number) for number in ALGORITHMS]
_MOST_KEY = 1024  # bytes
_ATTESTED, _EXTENDED = 0x40, 0x80  # flags, WebAuthn 6.1
_TRANSPORTS = ("ble", "hybrid", "internal", "nfc", "smart-card", "usb")


def check_new(relying_party: RelyingParty, challenge: str, answer: PasskeyResponse, name: str) -> NewPasskey:
    """Checks the answer for a new passkey (WebAuthn 7.1). Ignores the attestation statement: none was requested, and
    learning the maker of the device would mean parsing a stranger's certificates. Raises Refused("access_denied")."""
    try:
        response = answer.sent["response"]
        data = _attested(decode(response["attestationObject"]))
        made = verify_registration_response(
            credential={
                "id": answer.credential,
                "rawId": answer.sent["rawId"],
                "type": answer.sent["type"],
                "response": {
                    "clientDataJSON": response["clientDataJSON"],
                    "attestationObject": encode(_without_statement(data)),
                },
            },
            expected_challenge=challenge.encode(),
            expected_rp_id=relying_party.rp_id,
            expected_origin=relying_party.origin,
            require_user_verification=True,
            supported_pub_key_algs=_ALGORITHMS,
        )
        check_new_key(made.credential_public_key)
        reported = response.get("transports") or ()
        transports = sorted({item for item in reported if item in _TRANSPORTS})
    except Exception:
        # The library has its own exceptions for the errors it expects; other errors escape from its parsers.
        raise refused_answer() from None
    if encode(made.credential_id) != answer.credential or len(made.credential_public_key) > _MOST_KEY:
        raise refused_answer()
    facts = msgpack.packb([made.credential_public_key, name, transports])
    return NewPasskey(answer.credential, facts, made.sign_count)


def check_use(relying_party: RelyingParty, challenge: str, answer: PasskeyResponse, facts: bytes) -> int:
    """Checks the use of a passkey (WebAuthn 7.2) and returns its counter, which the store compares with the previous
    one. Raises Refused("access_denied")."""
    public_key, _, _ = msgpack.unpackb(facts)
    try:
        response = answer.sent["response"]
        _check_data(decode(response["authenticatorData"]))
        check_key(public_key)  # earlier releases stored keys that this one refuses
        found = verify_authentication_response(
            credential={
                "id": answer.credential,
                "rawId": answer.sent["rawId"],
                "type": answer.sent["type"],
                "response": {
                    "clientDataJSON": response["clientDataJSON"],
                    "authenticatorData": response["authenticatorData"],
                    "signature": response["signature"],
                },
            },
            expected_challenge=challenge.encode(),
            expected_rp_id=relying_party.rp_id,
            expected_origin=relying_party.origin,
            credential_public_key=public_key,
            credential_current_sign_count=0,
            require_user_verification=True,
        )
    except Exception:  # as in check_new
        raise refused_answer() from None
    return found.new_sign_count


def _attested(raw: bytes) -> bytes:
    """The authenticator data in an attestation object (WebAuthn 6.5), checked. Raises NotCanonical, KeyError."""
    # Browsers and password managers write this envelope, and some do not use the shortest form.
    found = read_item(raw, shortest=False)
    if found.end != len(raw) or not isinstance(found.value, dict):
        raise NotCanonical("not one map")
    if not isinstance(found.value["fmt"], str) or not isinstance(found.value["attStmt"], dict):
        raise NotCanonical("no attestation")
    data = found.value["authData"]
    if not isinstance(data, bytes):
        raise NotCanonical("authenticator data that is not bytes")
    _check_data(data)
    return data


def _check_data(data: bytes) -> None:
    """Checks authenticator data (WebAuthn 6.1): its CBOR is canonical maps, with nothing after. Raises NotCanonical."""
    at = 37
    if len(data) < at:
        raise NotCanonical("cut off")
    flags = data[32]
    if flags & _ATTESTED:
        at += 18 + int.from_bytes(data[at + 16 : at + 18])
        at = _end_of_map(data, at)
    if flags & _EXTENDED:
        at = _end_of_map(data, at)
    if at != len(data):
        raise NotCanonical("bytes behind the end")


def _end_of_map(data: bytes, at: int) -> int:
    found = read_item(data, at)
    if not isinstance(found.value, dict):
        raise NotCanonical("not a map")
    return found.end


def _without_statement(data: bytes) -> bytes:
    """An attestation object of the format `none` (WebAuthn 8.7) around authenticator data."""
    return b"\xa3cfmtdnonegattStmt\xa0hauthData\x59" + len(data).to_bytes(2) + data
