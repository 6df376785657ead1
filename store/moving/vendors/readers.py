"""Exports of Keycloak, Auth0, Django, Firebase and Supabase, read as lines of an import."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator, Mapping
from typing import Any, BinaryIO, Final

import orjson

from store.crypto.foreign.texts import firebase_hash, text_of
from store.moving.import_lines import MAX_LINE, ImportLine
from store.moving.vendors.json_pieces import objects_in
from store.moving.vendors.records import Brought, from_ms, is_ahead, named, objects, text

RecordReader = Callable[[dict[str, Any], Brought], dict[str, Any] | None]
"""Turns a record into a line; None for a record that is no person. Raises ValueError."""
OTHER_CODES = "The authenticator app has other codes than six digits of SHA-1 for 30 seconds."


def lines_from(vendor: str, file: BinaryIO, brought: Brought) -> Iterator[ImportLine]:
    """Yields a line for each record of an export: empty for one that is no person. Raises ValueError for a file that is
    no such export."""
    read = READERS[vendor]
    for raw in objects_in(file, in_users=vendor in ("keycloak", "firebase")):
        yield _line(read, raw, brought)


def _line(read: RecordReader, raw: bytes, brought: Brought) -> ImportLine:
    if not raw:
        return ImportLine(b"", "The record has more than a MiB.")
    try:
        record = orjson.loads(raw)
        if not isinstance(record, dict):
            return ImportLine(b"", "The record is no JSON object.")
        found = read(record, brought)
        line = orjson.dumps(found) if found else b""
    except orjson.JSONDecodeError:
        return ImportLine(b"", "The record is no JSON object.")
    except (TypeError, AttributeError, LookupError, RecursionError):
        return ImportLine(b"", "The record has not the form of such an export.")
    except ValueError as error:
        return ImportLine(b"", str(error))
    return ImportLine(line) if len(line) <= MAX_LINE else ImportLine(b"", "The record is too long.")


def _keycloak(user: dict[str, Any], brought: Brought) -> dict[str, Any] | None:
    """A user of a realm's export."""
    if user.get("serviceAccountClientId"):
        return None
    email = text(user, "email")
    full = " ".join(filter(None, (text(user, "firstName"), text(user, "lastName"))))
    line: dict[str, Any] = {
        "email": email,
        "name": named(full or text(user, "username"), email),
        "email_verified": user.get("emailVerified") is True,
        "created_at": from_ms(user.get("createdTimestamp")),
        "status": "disabled" if user.get("enabled") is False else "active",
        "groups": [one.strip("/") for one in user.get("groups") or ()],
        "links": [
            link
            for one in objects(user.get("federatedIdentities"))
            for link in brought.link(one.get("identityProvider"), one.get("userId"))
        ],
    }
    for credential in objects(user.get("credentials")):
        if credential.get("type") == "password" and "password_hash" not in line:
            line["password_hash"] = _keycloak_password(credential)
        if credential.get("type") in ("otp", "totp") and "totp_secret" not in line:
            line["totp_secret"] = _keycloak_totp(credential)
    return line


def _inner(credential: Mapping[str, Any], member: str) -> dict[str, Any]:
    """An object that Keycloak writes as JSON in a text."""
    value = credential.get(member, "{}")
    found = orjson.loads(value) if isinstance(value, str) else value
    return found if isinstance(found, dict) else {}


def _keycloak_password(credential: Mapping[str, Any]) -> object:
    secret, data = _inner(credential, "secretData"), _inner(credential, "credentialData")
    # Before Keycloak 8, all of it was in the credential.
    value = secret.get("value", credential.get("hashedSaltedValue"))
    salt = secret.get("salt", credential.get("salt"))
    algorithm = data.get("algorithm", credential.get("algorithm"))
    rounds = data.get("hashIterations", credential.get("hashIterations"))
    if isinstance(value, str) and value.startswith("$"):
        return value
    if algorithm == "argon2":
        more = {name: one[0] for name, one in data["additionalParameters"].items()}
        if more.get("version", "1.3") != "1.3":
            return f"argon2 {more['version']}"
        numbers: dict[str, Any] = {"memory": _whole(more["memory"]), "parallelism": _whole(more["parallelism"])}
        numbers |= {"iterations": rounds, "length": _whole(more["hashLength"])}
        return {"algorithm": f"argon2{more['type']}", **numbers, "salt": salt, "value": value}
    return {"algorithm": algorithm, "iterations": rounds, "salt": salt, "value": value}


def _whole(text: str) -> int:
    """A number that Keycloak writes as text. Raises TypeError, whose message nobody reads: it would quote the text."""
    if not text.isascii() or not text.isdigit() or len(text) > 10:
        raise TypeError
    return int(text)


def _keycloak_totp(credential: Mapping[str, Any]) -> str:
    secret, data = _inner(credential, "secretData"), _inner(credential, "credentialData")
    shape = [data.get(name, usual) for name, usual in (("subType", "totp"), ("digits", 6), ("period", 30))]
    if shape != ["totp", 6, 30] or data.get("algorithm", "HmacSHA1") != "HmacSHA1":
        raise ValueError(OTHER_CODES)
    value = text(secret, "value")
    # The characters are the secret, unless they say otherwise.
    return value if data.get("secretEncoding") == "BASE32" else base64.b32encode(value.encode()).decode()


def _auth0(user: dict[str, Any], brought: Brought) -> dict[str, Any]:
    """A user of a users-exports job, or of a file for its bulk import."""
    email, own = text(user, "email"), text(user, "user_id")
    metadata = user.get("app_metadata")
    groups = metadata.get("groups") if isinstance(metadata, dict) else None
    custom = user.get("custom_password_hash")
    inner = custom.get("hash") if isinstance(custom, dict) else None
    hashed = text(user, "password_hash", "passwordHash") or (text(inner, "value") if isinstance(inner, dict) else "")
    return {
        "email": email,
        "name": named(text(user, "name", "nickname", "username"), email),
        "email_verified": user.get("email_verified") is True,
        "created_at": text(user, "created_at") or None,
        "status": "disabled" if user.get("blocked") is True else "active",
        "password_hash": hashed or brought.passwords.get(own) or brought.passwords.get(email.lower()),
        "groups": [one for one in groups if isinstance(one, str)] if isinstance(groups, list) else [],
        "links": [
            link
            for one in objects(user.get("identities"))
            for link in brought.link(one.get("provider"), one.get("user_id"))
        ],
    }


def _django(entry: dict[str, Any], brought: Brought) -> dict[str, Any] | None:
    """An entry of dumpdata: a user of any model with an address and a password, or a group."""
    fields = entry.get("fields")
    if not isinstance(fields, dict):
        raise TypeError
    if entry.get("model") == "auth.group":
        brought.groups[str(entry.get("pk"))] = text(fields, "name")
        return None
    if not {"email", "password"} <= fields.keys():
        return None
    email, password = text(fields, "email"), text(fields, "password")
    full = " ".join(filter(None, (text(fields, "first_name"), text(fields, "last_name"))))
    groups = [one[0] if isinstance(one, list) else brought.groups.get(str(one)) for one in fields.get("groups") or ()]
    if None in groups:
        raise ValueError("The file doesn't name a group of this person: dump auth.group before the users.")
    return {
        "email": email,
        "name": named(full or text(fields, "name", "username"), email),
        "created_at": text(fields, "date_joined") or None,
        "status": "disabled" if fields.get("is_active") is False else "active",
        "password_hash": None if password.startswith("!") else password or None,
        "groups": groups,
    }


def _firebase(user: dict[str, Any], brought: Brought) -> dict[str, Any]:
    """A user of `firebase auth:export` as JSON."""
    email, hashed, config = text(user, "email"), text(user, "passwordHash"), brought.hash_config
    if hashed and not config:
        raise ValueError("A password of Firebase needs the hash config of its project.")
    found = None
    if hashed:
        cost = int(config["mem_cost"]), int(config["rounds"])
        separator = config.get("base64_salt_separator", "")
        found = firebase_hash(hashed, text(user, "salt"), config["base64_signer_key"], separator, *cost)
    return {
        "email": email,
        "name": named(text(user, "displayName"), email),
        "email_verified": user.get("emailVerified") is True,
        "created_at": from_ms(user.get("createdAt")),
        "status": "disabled" if user.get("disabled") is True else "active",
        "password_hash": text_of(found) if found else None,
        "links": [
            link
            for one in objects(user.get("providerUserInfo"))
            for link in brought.link(one.get("providerId"), one.get("rawId"))
        ],
    }


def _supabase(row: dict[str, Any], brought: Brought) -> dict[str, Any] | None:
    """A row of auth.users, with those of auth.identities in `identities`."""
    if row.get("deleted_at") or row.get("is_anonymous") is True:
        return None
    email, metadata = text(row, "email"), row.get("raw_user_meta_data")
    name = text(metadata, "full_name", "name", "user_name") if isinstance(metadata, dict) else ""
    return {
        "email": email,
        "name": named(name, email),
        "email_verified": bool(text(row, "email_confirmed_at", "confirmed_at")),
        "created_at": text(row, "created_at") or None,
        "status": "disabled" if is_ahead(text(row, "banned_until")) else "active",
        "password_hash": text(row, "encrypted_password") or None,
        "links": [
            link
            for one in objects(row.get("identities"))
            for link in brought.link(one.get("provider"), one.get("provider_id", one.get("id")))
        ],
    }


READERS: Final[Mapping[str, RecordReader]] = {
    "keycloak": _keycloak,
    "auth0": _auth0,
    "django": _django,
    "firebase": _firebase,
    "supabase": _supabase,
}
