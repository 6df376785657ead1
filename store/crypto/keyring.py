"""The secret keys: their form, their text, and the file that holds them for an embedded store.

A key is never used directly; each use derives its own key from it (HKDF, RFC 5869). So one secret protects tokens,
documents and future data, and no use weakens another.
"""

from __future__ import annotations

import base64
import binascii
import hmac
import os
import re
import secrets
import stat
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

MIN_KEY_BYTES = 32
MAX_KEY_BYTES = 1024
_MAX_FILE_BYTES = 1 << 20
_KEY_ID = re.compile(r"[1-9][0-9]{0,2}")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]+={0,2}")


class KeyRingError(ValueError):
    """The secret keys cannot be used. The message is for the operator and never holds key material."""


@dataclass(frozen=True, slots=True, repr=False)
class SecretKey:
    """One secret key with its id (1 to 255), which is in front of everything sealed under the key."""

    id: int
    material: bytes
    _extracted: bytes = field(init=False, compare=False)

    def __post_init__(self) -> None:
        if not 1 <= self.id <= 255:
            raise KeyRingError("a key id is a number from 1 to 255")
        if not MIN_KEY_BYTES <= len(self.material) <= MAX_KEY_BYTES:
            raise KeyRingError(f"key {self.id} is not between {MIN_KEY_BYTES} and {MAX_KEY_BYTES} bytes long")
        # The first half of HKDF is the same for every purpose (RFC 5869 2.2).
        object.__setattr__(self, "_extracted", hmac.digest(bytes(32), self.material, "sha256"))

    def __repr__(self) -> str:
        return f"SecretKey(id={self.id})"

    def derive(self, purpose: bytes, length: int) -> bytes:
        """Return `length` bytes for one `purpose` (HKDF-SHA256, RFC 5869, no salt).

        A purpose has one length: two lengths of the same purpose share their first bytes.
        """
        return HKDFExpand(SHA256(), length, purpose).derive(self._extracted)

    @property
    def check_value(self) -> str:
        """32 hex digits to compare keys of two holders; they reveal nothing about the key, so they may be stored."""
        return self.derive(b"check", 16).hex()

    def render(self) -> str:
        """Return `id:key` with the key in base64url. This IS the secret."""
        return f"{self.id}:{base64.urlsafe_b64encode(self.material).rstrip(b'=').decode()}"

    @classmethod
    def parse(cls, text: str) -> SecretKey:
        """Read `id:key`, the key in base64 or base64url, padded or not. Raises KeyRingError."""
        key_id, colon, encoded = text.strip().partition(":")
        if not colon:
            raise KeyRingError("a key is written id:key")
        if not _KEY_ID.fullmatch(key_id) or int(key_id) > 255:
            raise KeyRingError("a key id is a number from 1 to 255")
        if not _BASE64.fullmatch(encoded):
            raise KeyRingError(f"key {key_id} is not base64")
        return cls(int(key_id), _decode_material(key_id, encoded.rstrip("=")))


def _decode_material(key_id: str, encoded: str) -> bytes:
    try:
        return base64.urlsafe_b64decode(encoded.replace("+", "-").replace("/", "_") + "=" * (-len(encoded) % 4))
    except binascii.Error:
        raise KeyRingError(f"key {key_id} is not base64") from None


@dataclass(frozen=True, slots=True)
class KeyRing:
    """The keys in use. The front one seals; every one of them opens. Raises KeyRingError for no key or a duplicate."""

    keys: tuple[SecretKey, ...]

    def __post_init__(self) -> None:
        if not self.keys:
            raise KeyRingError("no secret key is given")
        if len({key.id for key in self.keys}) < len(self.keys):
            raise KeyRingError("two secret keys have the same id")
        if len({key.material for key in self.keys}) < len(self.keys):
            raise KeyRingError("one secret key is given under two ids")

    @property
    def front(self) -> SecretKey:
        """The key that seals from now on."""
        return self.keys[0]

    def by_id(self, key_id: int) -> SecretKey | None:
        """Return the key of that id, or None."""
        for key in self.keys:  # a generator would cost more than the rest of opening a document
            if key.id == key_id:
                return key
        return None

    @classmethod
    def parse(cls, text: str) -> KeyRing:
        """Read `id:key,id:key`, front first. Raises KeyRingError, which names a wrong key by its position."""
        return cls.from_entries(text.split(",") if text.strip() else ())

    def render(self) -> str:
        """Return what `parse` reads. This IS the secret."""
        return ",".join(key.render() for key in self.keys)

    @staticmethod
    def generate(key_id: int) -> str:
        """Return a new key of 32 random bytes as `id:key`. Raises KeyRingError for an id outside 1 to 255."""
        return SecretKey(key_id, secrets.token_bytes(MIN_KEY_BYTES)).render()

    @classmethod
    def from_entries(cls, entries: Iterable[str]) -> KeyRing:
        """Read `id:key` entries, front first. Raises KeyRingError as `parse` does."""
        keys = []
        for position, entry in enumerate(entries, start=1):
            try:
                keys.append(SecretKey.parse(entry))
            except KeyRingError as error:
                raise KeyRingError(f"secret key number {position}: {error}") from None
        return cls(tuple(keys))


class KeyFile:
    """A key ring in a file: one `id:key` a line, front first, mode 0600. For stores private to one host."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises KeyRingError if it is missing, readable by others, or not a key ring."""
        self.path = path
        self.ring, self._signature = _read(path)
        self._unusable: _Signature | None = None

    @classmethod
    def open_or_create(cls, path: Path | str) -> KeyFile:
        """Open the file; if it is missing, create it with one new key.

        Processes that race all get the same key. Raises KeyRingError as the constructor does, OSError if the file
        cannot be written.
        """
        path = Path(path)
        if not path.exists():
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            _create(path, KeyRing.parse(KeyRing.generate(1)))
        return cls(path)

    def write(self, ring: KeyRing) -> None:
        """Replace the ring, atomically and durably. Raises OSError; the old file then stays unchanged.

        The file keeps its owner: if root writes it, a server that is not root must still be able to read it.
        """
        temporary = _write_temporary(self.path, ring)
        try:
            before = self.path.stat()
            if (before.st_uid, before.st_gid) != (temporary.stat().st_uid, temporary.stat().st_gid):
                os.chown(temporary, before.st_uid, before.st_gid)
            os.replace(temporary, self.path)
        except OSError:
            temporary.unlink(missing_ok=True)
            raise
        _sync_directory(self.path.parent)
        self.reload()

    def changed(self) -> bool:
        """Whether the file has changed since it was last read. A file that cannot be accessed counts as unchanged."""
        return self._present() != self._signature

    def renew(self) -> None:
        """Read a changed file again. If the file cannot be used, keeps the present ring, and reads the file only after
        its next change."""
        present = self._present()
        if present in (self._signature, self._unusable):
            return
        try:
            self.reload()
        except KeyRingError:  # `watch_over` logs it
            self._unusable = present

    def _present(self) -> _Signature:
        try:
            return _signature(os.stat(self.path))
        except OSError:
            return self._signature

    def reload(self) -> None:
        """Read the file again. If the file cannot be used, keeps the present ring and raises KeyRingError."""
        self.ring, self._signature = _read(self.path)


class Keys:
    """Gives users of secret keys the present ring, from the configuration or from a file."""

    def __init__(self, source: KeyRing | KeyFile) -> None:
        self._file = source if isinstance(source, KeyFile) else None
        self._ring = source.ring if isinstance(source, KeyFile) else source

    @property
    def ring(self) -> KeyRing:
        """The present ring: the same object until `reload` returns True, so users may cache what they derive."""
        return self._ring

    def replace(self, ring: KeyRing) -> None:
        """Replace the ring with another configured one."""
        assert self._file is None
        self._ring = ring

    def reload(self) -> bool:
        """Read a changed key file again; True if the keys have changed. Only `replace` changes a configured ring.

        Raises KeyRingError if the file cannot be used; the present ring then stays.
        """
        if self._file is None:
            return False
        if self._file.changed():
            self._file.reload()
        return self._take(self._file)

    def renew(self) -> None:
        """Look for newer keys before a value that fits none of the present ones is refused: another process may have
        read a changed key file earlier. Without a change this costs one `stat`, whatever is sent."""
        if self._file is not None:
            self._file.renew()
            self._take(self._file)

    def find(self, key_id: int) -> SecretKey | None:
        """Return the key of that id, or None. Looks for newer keys before it returns None."""
        key = self._ring.by_id(key_id)
        if key is None:
            self.renew()
            key = self._ring.by_id(key_id)
        return key

    def rings(self) -> Iterator[KeyRing]:
        """Yield the present ring, then a newer one if there is one: for comparing values that name no key."""
        ring = self._ring
        yield ring
        self.renew()
        if self._ring is not ring:
            yield self._ring

    def _take(self, file: KeyFile) -> bool:
        if file.ring == self._ring:
            return False
        self._ring = file.ring
        return True


_Signature = tuple[int, int, int]


def _signature(status: os.stat_result) -> _Signature:
    return status.st_mtime_ns, status.st_ino, status.st_size


def _read(path: Path) -> tuple[KeyRing, _Signature]:
    try:
        # O_NONBLOCK: opening a pipe in place of the file must not block the start.
        with open(os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK), "rb") as file:
            status = os.fstat(file.fileno())
            _check_private(path, status)
            content = file.read(_MAX_FILE_BYTES)
    except OSError as error:
        raise KeyRingError(f"the key file {path} cannot be read: {error.strerror}") from None
    try:
        ring = KeyRing.from_entries(line for line in content.decode("ascii").splitlines() if line.strip())
    except UnicodeDecodeError:
        raise KeyRingError(f"the key file {path} is not text") from None
    except KeyRingError as error:
        raise KeyRingError(f"the key file {path}: {error}") from None
    return ring, _signature(status)


def _check_private(path: Path, status: os.stat_result) -> None:
    if not stat.S_ISREG(status.st_mode):
        raise KeyRingError(f"the key file {path} is not a regular file")
    if status.st_mode & 0o077:
        raise KeyRingError(f"the key file {path} is open to other users of this host; run: chmod 600 {path}")


def _create(path: Path, ring: KeyRing) -> None:
    temporary = _write_temporary(path, ring)
    try:
        # A hard link appears complete and never replaces a file: the second process uses the first one's key.
        os.link(temporary, path)
    except FileExistsError:
        return
    finally:
        temporary.unlink()
    _sync_directory(path.parent)


def _write_temporary(path: Path, ring: KeyRing) -> Path:
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(8)}")
    with open(os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:
        os.fchmod(file.fileno(), 0o600)  # regardless of the umask
        file.write("".join(f"{key.render()}\n" for key in ring.keys).encode())
        file.flush()
        os.fsync(file.fileno())
    return temporary


def _sync_directory(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
