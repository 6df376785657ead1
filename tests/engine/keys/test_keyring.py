"""Secret keys: their format, what is refused, and the key file that several processes may open at once."""

from __future__ import annotations

import base64
import hmac
import os
import stat
import subprocess
import sys
import traceback
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store.crypto.keyring import KeyFile, KeyRing, KeyRingError, Keys, SecretKey
from tests.support.lists.offenders import each

ROOT = Path(__file__).parent.parent.parent.parent
MATERIAL = bytes(range(32))
ENCODED = base64.urlsafe_b64encode(MATERIAL).decode()


def ring(*key_ids: int) -> KeyRing:
    return KeyRing.parse(",".join(KeyRing.generate(key_id) for key_id in key_ids))


def test_derived_keys_are_hkdf_sha256_as_rfc_5869_defines_it() -> None:
    extracted = hmac.digest(bytes(32), MATERIAL, "sha256")
    first = hmac.digest(extracted, b"seal\x01", "sha256")
    second = hmac.digest(extracted, first + b"seal\x02", "sha256")
    assert SecretKey(1, MATERIAL).derive(b"seal", 64) == first + second


def test_purposes_keys_and_check_values_are_all_different() -> None:
    one, other = SecretKey(1, MATERIAL), SecretKey(1, MATERIAL[::-1])
    values = {one.derive(b"a", 32), one.derive(b"b", 32), other.derive(b"a", 32), other.derive(b"b", 32)}
    assert len(values) == 4
    assert one.check_value != other.check_value
    assert len(bytes.fromhex(one.check_value)) == 16
    assert one.check_value == SecretKey(2, MATERIAL).check_value


@pytest.mark.trap(24)
def test_no_representation_shows_the_material() -> None:
    key = SecretKey(7, b"correct horse battery staple 1234")
    shown = f"{key!r} {key} {KeyRing((key,))!r} {[key]}"
    assert "horse" not in shown
    assert "SecretKey(id=7)" in shown


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(f"3:{ENCODED}", id="base64url with padding"),
        pytest.param(f"3:{ENCODED.rstrip('=')}", id="base64url without padding"),
        pytest.param(f"3:{base64.b64encode(MATERIAL).decode()}", id="plain base64"),
        pytest.param(f"  3:{ENCODED}\n", id="with space around it"),
    ],
)
def test_a_key_is_read_in_any_base64(text: str) -> None:
    assert KeyRing.parse(text).keys == (SecretKey(3, MATERIAL),)


def test_both_base64_alphabets_are_accepted() -> None:
    material = b"\xfb\xff\xfe" * 11
    for encode in (base64.b64encode, base64.urlsafe_b64encode):
        assert KeyRing.parse(f"1:{encode(material).decode()}").front.material == material


@given(st.lists(st.integers(1, 255), min_size=1, max_size=6, unique=True), st.data())
def test_a_key_ring_round_trips(key_ids: list[int], data: st.DataObject) -> None:
    material = data.draw(st.lists(st.binary(min_size=32, max_size=80), min_size=6, max_size=6, unique=True))
    written = KeyRing(tuple(SecretKey(key_id, key) for key_id, key in zip(key_ids, material, strict=False)))
    read = KeyRing.parse(written.render())
    assert read == written
    assert read.front.id == key_ids[0]


def test_keys_are_found_by_id() -> None:
    keys = ring(5, 2)
    assert keys.front is keys.by_id(5)
    assert keys.by_id(2) is keys.keys[1]
    assert keys.by_id(1) is None


def test_generated_keys_are_32_random_bytes() -> None:
    texts = {KeyRing.generate(9) for _ in range(20)}
    assert len(texts) == 20
    assert all(len(KeyRing.parse(text).front.material) == 32 for text in texts)


@pytest.mark.trap(24)
@each(
    ("text", "reason"),
    [
        pytest.param("", "no secret key", id="nothing"),
        pytest.param("  ", "no secret key", id="only space"),
        pytest.param(ENCODED, "number 1: a key is written id:key", id="a key without an id"),
        pytest.param(f"{ENCODED}:1", "from 1 to 255", id="key and id the wrong way round"),
        pytest.param(f"0:{ENCODED}", "from 1 to 255", id="id zero"),
        pytest.param(f"256:{ENCODED}", "from 1 to 255", id="id above a byte"),
        pytest.param(f"01:{ENCODED}", "from 1 to 255", id="id with a leading zero"),
        pytest.param(f"-1:{ENCODED}", "from 1 to 255", id="negative id"),
        pytest.param(f"٣:{ENCODED}", "from 1 to 255", id="id in other digits"),
        pytest.param("1:", "not base64", id="empty key"),
        pytest.param(f"1:{ENCODED[:20]} {ENCODED[20:]}", "not base64", id="space inside a key"),
        pytest.param(f"1:{ENCODED[:41]}", "not base64", id="a length that base64 cannot have"),
        pytest.param("1:" + ENCODED[:40], "between 32 and", id="30 bytes"),
        pytest.param("1:" + "A" * 4000, "between 32 and", id="far too long"),
        pytest.param(f"1:{ENCODED},", "number 2", id="trailing comma"),
        pytest.param(f"1:{ENCODED},1:{ENCODED[::-1].strip('=')}A", "same id", id="one id twice"),
        pytest.param(f"1:{ENCODED},2:{ENCODED}", "two ids", id="one key twice"),
    ],
)
def test_an_invalid_ring_is_refused_without_showing_a_key(text: str, reason: str) -> None:
    with pytest.raises(KeyRingError, match=reason) as caught:
        KeyRing.parse(text)
    shown = "".join(traceback.format_exception(caught.value))
    assert ENCODED[:12] not in shown
    assert ENCODED[::-1][:12] not in shown


def test_a_configured_ring_never_reloads() -> None:
    keys = Keys(configured := ring(1))
    assert keys.reload() is False
    assert keys.ring is configured


def test_the_key_file_is_created_once_with_its_directory(tmp_path: Path) -> None:
    path = tmp_path / "data" / "keys"
    first = KeyFile.open_or_create(path)
    assert stat.S_IMODE(path.parent.stat().st_mode) & 0o077 == 0
    assert os.listdir(path.parent) == ["keys"]
    assert path.read_text() == first.ring.front.render() + "\n"
    assert KeyFile.open_or_create(path).ring == first.ring


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o777])
def test_the_key_file_is_private_and_readable_whatever_the_umask(tmp_path: Path, umask: int) -> None:
    path = tmp_path / "keys"
    before = os.umask(umask)
    try:
        file = KeyFile.open_or_create(path)
        made = stat.S_IMODE(path.stat().st_mode)
        file.write(ring(2))
    finally:
        os.umask(before)
    assert (made, stat.S_IMODE(path.stat().st_mode)) == (0o600, 0o600)


def test_racing_processes_end_up_with_one_key(tmp_path: Path) -> None:
    program = (
        "import sys; from store.crypto.keyring import KeyFile; print('ready', flush=True); sys.stdin.readline();"
        "print(KeyFile.open_or_create(sys.argv[1]).ring.front.check_value)"
    )
    racers = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(tmp_path / "keys")],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(4)
    ]
    for racer in racers:
        assert racer.stdout is not None
        assert racer.stdout.readline() == "ready\n"
    for racer in racers:
        assert racer.stdin is not None
        racer.stdin.write("go\n")
        racer.stdin.flush()
    answers = {racer.communicate(timeout=30)[0] for racer in racers}
    assert answers == {KeyFile(tmp_path / "keys").ring.front.check_value + "\n"}
    assert os.listdir(tmp_path) == ["keys"]


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o620, 0o601])
def test_a_key_file_readable_by_others_is_refused_with_a_remedy(tmp_path: Path, mode: int) -> None:
    path = tmp_path / "keys"
    KeyFile.open_or_create(path)
    path.chmod(mode)
    with pytest.raises(KeyRingError, match="chmod 600"):
        KeyFile.open_or_create(path)


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"", "no secret key", id="empty"),
        pytest.param(b"1:short", "number 1", id="a broken line"),
        pytest.param(b"\xff\xfe", "not text", id="not text"),
    ],
)
def test_a_broken_key_file_is_refused_and_never_replaced(tmp_path: Path, content: bytes, reason: str) -> None:
    path = tmp_path / "keys"
    path.write_bytes(content)
    path.chmod(0o600)
    with pytest.raises(KeyRingError, match=reason):
        KeyFile.open_or_create(path)
    assert path.read_bytes() == content


@pytest.mark.parametrize("make", [pytest.param(os.mkfifo, id="a pipe"), pytest.param(os.mkdir, id="a directory")])
def test_anything_but_a_regular_file_is_refused_without_blocking(tmp_path: Path, make: object) -> None:
    path = tmp_path / "keys"
    assert callable(make)
    make(path, 0o600)
    with pytest.raises(KeyRingError):
        KeyFile.open_or_create(path)


def test_a_dangling_link_is_refused(tmp_path: Path) -> None:
    (tmp_path / "keys").symlink_to(tmp_path / "gone")
    with pytest.raises(KeyRingError, match="cannot be read"):
        KeyFile.open_or_create(tmp_path / "keys")


def test_a_new_ring_is_loaded_by_every_user_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    writer = KeyFile.open_or_create(path)
    server = Keys(KeyFile(path))
    own = Keys(writer)
    before = server.ring
    assert server.reload() is False
    assert server.ring is before

    rotated = KeyRing((SecretKey.parse(KeyRing.generate(2)), *before.keys))
    writer.write(rotated)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(tmp_path) == ["keys"]
    assert [line.partition(":")[0] for line in path.read_text().splitlines()] == ["2", "1"]
    assert server.ring is before
    assert server.reload() is True
    assert own.reload() is True
    assert server.ring == own.ring == rotated
    assert server.reload() is False


def test_rewriting_the_same_ring_keeps_derived_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    server = Keys(file := KeyFile.open_or_create(path))
    before = server.ring
    KeyFile(path).write(before)
    assert file.changed()
    assert server.reload() is False
    assert server.ring is before


def test_a_broken_or_missing_file_keeps_the_ring_in_use(tmp_path: Path) -> None:
    path = tmp_path / "keys"
    server = Keys(KeyFile.open_or_create(path))
    before = server.ring
    path.write_text("nonsense that is no key")
    for _ in range(2):
        with pytest.raises(KeyRingError):
            server.reload()
    assert server.ring is before
    path.unlink()
    assert server.reload() is False
    assert server.ring is before


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    file = KeyFile.open_or_create(directory / "keys")
    directory.rename(tmp_path / "moved")
    with pytest.raises(OSError, match="No such file"):
        file.write(ring(4))
    assert KeyFile(tmp_path / "moved" / "keys").ring == file.ring


def test_a_key_file_keeps_its_owner(tmp_path: Path) -> None:
    file = KeyFile.open_or_create(tmp_path / "keys")
    owner = (12_345, 12_345) if os.geteuid() == 0 else (os.geteuid(), os.getegid())
    os.chown(file.path, *owner)
    file.write(KeyRing.parse(KeyRing.generate(2)))
    assert (file.path.stat().st_uid, file.path.stat().st_gid) == owner
