"""Exports of other servers, in the shapes that they have, become people."""

from __future__ import annotations

import base64
import hashlib
import json
import time
from collections.abc import Iterable
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from store.crypto.foreign.hashes import ForeignHash
from store.moving.import_lines import ImportLine, Mover, read_mover
from store.moving.vendors.json_pieces import CHUNK, MOST, objects_in
from store.moving.vendors.readers import OTHER_CODES, lines_from
from store.moving.vendors.records import Brought, read_hash_config, read_passwords
from tests.accounts.moving.test_foreign_hashes import SEALED, SIGNER
from tests.support.lists.offenders import each
from tests.support.moving.movers import HASH, PASSWORD
from tests.support.processes.operator_commands import Home

NOW = 1_800_000_000_000
SALT = b"0123456789abcdef"
ADA = "ada@example.com"


def _b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def _pbkdf2(name: str, length: int) -> str:
    return _b64(hashlib.pbkdf2_hmac(name, PASSWORD.encode(), SALT, 1000, length))


def _argon2() -> str:
    from cryptography.hazmat.primitives.kdf.argon2 import Argon2id

    return _b64(Argon2id(salt=SALT, length=32, iterations=5, lanes=1, memory_cost=7168).derive(PASSWORD.encode()))


def people(vendor: str, content: bytes, brought: Brought | None = None) -> list[Mover | str]:
    """The people of an export, or why their records are refused; records of nobody are left out."""
    found: list[Mover | str] = []
    for line in lines_from(vendor, BytesIO(content), brought or Brought()):
        if line.raw:
            found.append(read_mover(line.raw, NOW))
        elif line.wrong:
            found.append(line.wrong)
    return found


def one(vendor: str, content: bytes, brought: Brought | None = None) -> Mover:
    (found,) = people(vendor, content, brought)
    assert isinstance(found, Mover), found
    return found


def opens(found: ForeignHash | None, password: str = PASSWORD) -> bool:
    return found is not None and found.matches(password.encode()) and not found.matches(b"another")


def keycloak_user(**more: Any) -> dict[str, Any]:
    return {
        "id": "2a117809-8285-4718-a131-bd61fb57cd1f",
        "createdTimestamp": 1740654221121,
        "username": "ada",
        "enabled": True,
        "totp": True,
        "emailVerified": True,
        "firstName": "Ada",
        "lastName": "Lovelace",
        "email": ADA,
        "credentials": [
            {
                "id": "4e67ce9c-1ddc-45db-b36e-db50ee1f4d9e",
                "type": "password",
                "createdDate": 1740654903754,
                "secretData": json.dumps(
                    {"value": _pbkdf2("sha512", 64), "salt": _b64(SALT), "additionalParameters": {}}
                ),
                "credentialData": json.dumps(
                    {"hashIterations": 1000, "algorithm": "pbkdf2-sha512", "additionalParameters": {}}
                ),
            },
            {
                "type": "otp",
                "secretData": json.dumps({"value": "bDbKVsTVNpMNxf7z5BLI"}),
                "credentialData": json.dumps(
                    {"subType": "totp", "period": 30, "digits": 6, "algorithm": "HmacSHA1", "counter": 0}
                ),
            },
        ],
        "federatedIdentities": [
            {"identityProvider": "google", "userId": "1122", "userName": ADA},
            {"identityProvider": "corp", "userId": "77", "userName": "ada"},
        ],
        "requiredActions": [],
        "realmRoles": ["default-roles-main"],
        "groups": ["/staff", "/company/engineers"],
        **more,
    }


def realm(*users: dict[str, Any]) -> bytes:
    whole = {"id": "x", "realm": "main", "roles": {"realm": [{"users": [1]}]}, "users": users, "clients": [{"a": "}"}]}
    return json.dumps(whole, indent=2).encode()


def testkeycloak_user_comes_with_password_app_groups_and_links() -> None:
    brought = Brought(issuers={"corp": "https://sso.corp.example"})
    ada = one("keycloak", realm(keycloak_user()), brought)
    assert (ada.email, ada.name, ada.verified, ada.active) == (ADA, "Ada Lovelace", True, True)
    assert ada.created_at == 1740654221121
    assert opens(ada.password)
    assert ada.totp_secret == b"bDbKVsTVNpMNxf7z5BLI"
    assert ada.groups == ("company/engineers", "staff")
    assert [*ada.identities] == [("https://accounts.google.com", "1122"), ("https://sso.corp.example", "77")]


def test_keycloak_hashes_of_every_release_and_what_is_no_person() -> None:
    argon2 = {
        "type": "password",
        "secretData": json.dumps({"value": _argon2(), "salt": _b64(SALT), "additionalParameters": {}}),
        "credentialData": '{"hashIterations":5,"algorithm":"argon2","additionalParameters":{"hashLength":["32"],'
        '"memory":["7168"],"type":["id"],"version":["1.3"],"parallelism":["1"]}}',
    }
    old = {
        "type": "password",
        "hashedSaltedValue": _pbkdf2("sha1", 20),
        "salt": _b64(SALT),
        "hashIterations": 1000,
        "algorithm": "pbkdf2",
    }
    bcrypted = {"type": "password", "secretData": json.dumps({"value": HASH}), "credentialData": "{}"}
    for credential in (argon2, old, bcrypted):
        assert opens(one("keycloak", realm(keycloak_user(credentials=[credential]))).password)
    eight = {"type": "otp", "secretData": '{"value":"x"}', "credentialData": '{"subType":"totp","digits":8}'}
    found = people(
        "keycloak",
        realm(
            keycloak_user(serviceAccountClientId="client", email=None),
            keycloak_user(credentials=[eight]),
            keycloak_user(credentials=5, enabled=False),
        ),
    )
    assert found[0] == OTHER_CODES
    assert isinstance(found[1], Mover)
    assert (found[1].active, found[1].password) == (False, None)


def test_auth0_user_comes_with_the_hash_of_the_second_file() -> None:
    user = {
        "user_id": "auth0|60425dc43519d90068f82973",
        "email": ADA,
        "email_verified": True,
        "name": "Ada Lovelace",
        "created_at": "2021-03-05T16:35:16.775Z",
        "app_metadata": {"groups": ["staff"]},
        "identities": [
            {"connection": "Users", "provider": "auth0", "user_id": "60425dc43519d90068f82973", "isSocial": False},
            {"connection": "google-oauth2", "provider": "google-oauth2", "user_id": "1122", "isSocial": True},
            {"connection": "win", "provider": "windowslive", "user_id": "99", "isSocial": True},
        ],
    }
    hashes = {
        "_id": {"$oid": "60425dc43519d90068f82973"},
        "email": ADA,
        "emailVerified": True,
        "passwordHash": HASH,
        "tenant": "t",
        "connection": "Users",
    }
    brought = Brought(passwords=read_passwords(BytesIO(json.dumps(hashes).encode() + b"\n\n")))
    other = {**user, "user_id": "auth0|1", "email": "bob@example.com", "blocked": True}
    content = b"\n".join(json.dumps(each_one).encode() for each_one in (user, other))
    ada, bob = people("auth0", content, brought)
    assert isinstance(ada, Mover)
    assert isinstance(bob, Mover)
    assert opens(ada.password)
    assert (ada.verified, ada.groups, bob.active, bob.password) == (True, ("staff",), False, None)
    assert [*ada.identities] == [("https://accounts.google.com", "1122")]
    assert brought.left == {"windowslive": 2}
    custom = {"email": ADA, "custom_password_hash": {"algorithm": "bcrypt", "hash": {"value": HASH}}}
    assert opens(one("auth0", json.dumps([custom]).encode()).password)
    assert one("auth0", json.dumps([custom]).encode()).name == "ada"


def test_django_users_of_any_model_come_with_their_groups() -> None:
    hashed = f"pbkdf2_sha256$1000${SALT.decode()}${_pbkdf2('sha256', 32)}"
    fields = {
        "password": hashed,
        "last_login": None,
        "is_superuser": False,
        "username": "ada",
        "first_name": "Ada",
        "last_name": "Lovelace",
        "email": ADA,
        "is_staff": False,
        "is_active": True,
        "date_joined": "2024-01-31T08:00:00Z",
        "groups": [3],
        "user_permissions": [],
    }
    group = {"model": "auth.group", "pk": 3, "fields": {"name": "staff", "permissions": []}}
    unusable = {**fields, "email": "b@example.com", "password": "!abc", "is_active": False, "groups": [["admins"]]}
    found = people(
        "django",
        json.dumps(
            [
                {"model": "contenttypes.contenttype", "pk": 1, "fields": {"app_label": "auth"}},
                group,
                {"model": "auth.user", "pk": 1, "fields": fields},
                {"model": "shop.customer", "pk": 2, "fields": unusable},
                {"model": "auth.user", "pk": 3, "fields": {**fields, "groups": [4]}},
            ]
        ).encode(),
    )
    ada, bob, third = found
    assert isinstance(ada, Mover)
    assert isinstance(bob, Mover)
    assert opens(ada.password)
    assert (ada.name, ada.verified, ada.groups, ada.created_at) == ("Ada Lovelace", False, ("staff",), 1706688000000)
    assert (bob.active, bob.password, bob.groups) == (False, None, ("admins",))
    assert isinstance(third, str)
    assert "dump auth.group" in third


def test_firebase_user_comes_with_a_hash_that_needs_no_signer_key() -> None:
    config = read_hash_config(
        f"hash_config {{\n  algorithm: SCRYPT,\n  base64_signer_key: {SIGNER},\n  base64_salt_separator: Bw==,\n"
        "  rounds: 8,\n  mem_cost: 14,\n}\n"
    )
    user = {
        "localId": "ZY1rJK0eYLg",
        "email": ADA,
        "emailVerified": True,
        "passwordHash": SEALED.replace("+", "-").replace("/", "_"),
        "salt": "42xEC+ixf3L2lw==",
        "displayName": "Ada Lovelace",
        "lastSignedInAt": "1484628946000",
        "createdAt": "1484124142000",
        "disabled": True,
        "providerUserInfo": [
            {"providerId": "google.com", "rawId": "1122", "email": ADA, "displayName": "Ada"},
            {"providerId": "password", "rawId": ADA},
        ],
    }
    content = json.dumps({"users": [user, {"localId": "phone", "phoneNumber": "+1"}]}).encode()
    lines = list(lines_from("firebase", BytesIO(content), Brought(hash_config=config)))
    assert SIGNER.encode()[:20] not in lines[0].raw
    ada = read_mover(lines[0].raw, NOW)
    assert opens(ada.password, "user1password")
    assert (ada.verified, ada.active, ada.created_at) == (True, False, 1484124142000)
    assert [*ada.identities] == [("https://accounts.google.com", "1122")]
    with pytest.raises(ValueError, match="`email` is missing"):
        read_mover(lines[1].raw, NOW)
    (without,) = people("firebase", json.dumps({"users": [user]}).encode())
    assert without == "A password of Firebase needs the hash config of its project."
    with pytest.raises(ValueError, match="base64_signer_key"):
        read_hash_config("rounds: 8")


def test_supabase_rows_come_with_their_identities() -> None:
    row = {
        "id": "8b1d2c3e-0000-0000-0000-000000000000",
        "email": ADA,
        "encrypted_password": HASH.replace("$2b$", "$2a$"),
        "email_confirmed_at": "2024-01-31T08:00:00.123456+00:00",
        "created_at": "2024-01-31T08:00:00.123456+00:00",
        "banned_until": None,
        "raw_user_meta_data": {"full_name": "Ada Lovelace"},
        "is_anonymous": False,
        "deleted_at": None,
        "identities": [
            {"provider": "email", "provider_id": "8b1d2c3e", "identity_data": {}},
            {"provider": "github", "provider_id": "583231", "identity_data": {"sub": "583231"}},
        ],
    }
    rows = [
        row,
        {**row, "email": "b@example.com", "banned_until": "2999-01-01T00:00:00+00:00", "encrypted_password": ""},
        {**row, "is_anonymous": True},
        {**row, "deleted_at": "2024-01-31T08:00:00+00:00"},
    ]
    ada, bob = people("supabase", b"\n".join(json.dumps(each_one).encode() for each_one in rows))
    assert isinstance(ada, Mover)
    assert isinstance(bob, Mover)
    assert opens(ada.password)
    assert (ada.name, ada.verified, ada.active) == ("Ada Lovelace", True, True)
    assert [*ada.identities] == [("https://github.com", "583231")]
    assert (bob.active, bob.password) == (False, None)


ODD = [
    {"algorithm": "argon2"},
    {"algorithm": "argon2", "additionalParameters": {"memory": []}},
    {"algorithm": "argon2", "additionalParameters": {}},
    {"algorithm": "argon2", "additionalParameters": {"memory": ["hush"], "parallelism": ["1"]}},
]


def test_parts_of_a_record_that_are_missing_end_no_import() -> None:
    hashes = [{"type": "password", "secretData": "{}", "credentialData": json.dumps(one)} for one in ODD]
    lines = list(
        lines_from("keycloak", BytesIO(realm(*(keycloak_user(credentials=[one]) for one in hashes))), Brought())
    )
    lines += lines_from(
        "django", BytesIO(b'[{"fields":{"email":"a@b.example","password":"","groups":[[]]}}]'), Brought()
    )
    assert [line.wrong for line in lines] == ["The record has not the form of such an export."] * 5


def test_a_long_text_is_read_in_time_that_grows_with_it() -> None:
    content, begun = b'{"x":"' + b"a" * (12 << 20) + b'"}', time.process_time()
    assert list(objects_in(BytesIO(content), in_users=True)) == []
    assert time.process_time() - begun < 5


@each("vendor", ["keycloak", "auth0", "django", "firebase", "supabase"])
def test_odd_records_are_refused_one_by_one(vendor: str) -> None:
    odd: list[Any] = [1, "x", [], {}, {"fields": 1}, {"email": 1}, {"credentials": [{"type": "password"}]}]
    odd += [{"groups": 5}, {"fields": {"email": ADA, "password": "x", "groups": 5}}, {"passwordHash": "x"}]
    for line in lines_from(vendor, BytesIO(json.dumps(odd).encode()), Brought()):
        assert isinstance(line, ImportLine)
        if line.raw:
            with pytest.raises(ValueError, match=r"\w"):
                read_mover(line.raw, NOW)


def _found(content: bytes, *, in_users: bool = False) -> list[bytes]:
    return list(objects_in(BytesIO(content), in_users=in_users))


def test_objects_are_found_in_every_layout_and_across_pieces() -> None:
    text = json.dumps({"a": "x" * (CHUNK - 30) + '\\"]}', "b": [[{"c": "{"}]]}).encode()
    assert _found(b"[" + text + b"," + text + b"]") == [text, text]
    assert _found(text + b"\n" + text) == [text, text]
    assert _found(b'{"q":' + text + b',"users":[' + text + b'],"z":1.5e3}', in_users=True) == [text]
    assert _found(b" [ ] ") == []
    assert _found(b"") == []
    large = json.dumps({"a": "x" * MOST}).encode()
    assert _found(b"[" + large + b"," + text + b"]") == [b"", text]


@each("content", [b"[", b"[{", b'[{"a', b'{"users":[{}', b'{"users"', b'{"users":', b"]", b"}", b'["\\', b"[" * 5000])
def test_a_file_that_is_no_json_is_an_error(content: bytes) -> None:
    with pytest.raises(ValueError, match="The file"):
        _found(content, in_users=True)


def _write(folder: Path, name: str, content: bytes | Iterable[bytes]) -> str:
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else b"\n".join(content))
    return str(path)


def test_the_command_reads_an_export_and_names_links_that_it_left_out(home: Home, tmp_path: Path) -> None:
    path = _write(tmp_path, "realm.json", realm(keycloak_user(), keycloak_user(email="x")))
    dry = home.words("import", path, "--from", "keycloak", "--dry-run")
    assert json.loads(dry.out)["refused"] == [{"line": 2, "reason": "An e-mail address must have one @."}]
    assert "1 links to corp were left out" in dry.err or "2 links to corp were left out" in dry.err
    said = home.words("import", path, "--from", "keycloak", "--issuer", "corp=https://sso.corp.example")
    assert (said.status, json.loads(said.out)["created"], said.err) == (1, 1, "")
    assert home.json("user", "show", ADA)["groups"] == ["company/engineers", "staff"]
    assert home.error("import", path, "--from", "keycloak", "--issuer", "corp")[1] == "invalid_request"
    broken = _write(tmp_path, "broken.json", b'{"users":[{')
    assert "ends in the middle" in home.error("import", broken, "--from", "keycloak")[2]
