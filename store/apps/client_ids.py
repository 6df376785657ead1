"""Client ids that Latchkey makes."""

from __future__ import annotations

import base64
import hashlib
import re
import secrets
import string

_OF_A_PERSON = re.compile(r"[0-9A-Fa-f]{32}|pw_[A-Za-z0-9_-]{22}")
_OF_A_DOCUMENT = re.compile(r"url_[A-Za-z0-9_-]{22}")
LONGEST_URL = 512
"""Bytes of the URL of a Client ID metadata document."""
_OF_AN_API = re.compile(r"api_[A-Za-z0-9]{15}[0-9]*")


def new_client_id() -> str:
    """A new random client id."""
    return client_id_of(secrets.token_bytes(32))


def client_id_of(seed: bytes) -> str:
    """A client id of 15 letters and digits, 89 bits, from 32 random bytes. It has no hyphens, because a command line
    reads an id with a leading hyphen as an option. It is short, because it is in keys of everybody who connects the
    app. Registration checks whether it is taken."""
    number, digits = int.from_bytes(seed), string.ascii_letters + string.digits
    return "".join(digits[number // len(digits) ** place % len(digits)] for place in range(15))


def check_new_client_id(client_id: str) -> None:
    """Raises ValueError for an app's new client id with the form of a person's `sub`, or of an API's client id. An
    app's own tokens have its client id as `sub`, so an API would take them for that person's; and an app that asks
    about tokens would be taken for the API. Older registrations keep theirs."""
    if _OF_A_PERSON.fullmatch(client_id):
        raise ValueError("A client_id must not look like a person's id: 32 hex digits, or pw_ and 22 characters.")
    if _OF_A_DOCUMENT.fullmatch(client_id):
        raise ValueError("A client_id must not look like that of a metadata document: url_ and 22 characters.")
    if is_api_id(client_id):
        raise ValueError("A client_id must not look like an API's: api_ and 15 letters or digits, perhaps more digits.")


def is_api_id(client_id: str) -> bool:
    """Whether a client id has the form of an API's."""
    return _OF_AN_API.fullmatch(client_id) is not None


def is_document_url(client_id: str) -> bool:
    """Whether a client id is the URL of a Client ID metadata document. `check_document_url` checks its form."""
    return client_id.startswith("https://") and len(client_id) <= LONGEST_URL


def inner_id(client_id: str) -> str:
    """The client id that keys and tokens have for one on the wire: the digest of a document's URL, or the id itself."""
    if not is_document_url(client_id):
        return client_id
    digest = hashlib.sha256(client_id.encode("utf-8", "surrogatepass")).digest()
    return "url_" + base64.urlsafe_b64encode(digest[:16]).decode().rstrip("=")
