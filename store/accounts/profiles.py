"""Profiles of people: the name, and an uploaded picture or one generated from the initials.

A picture has a sealed address that names the person and the picture. Nobody can guess the address or read the user id
from it, and it changes with the picture.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from store import keys
from store.accounts.signin.sessions import Session
from store.crypto.keyring import SecretKey
from store.crypto.seal import Sealer, Token, TokenKind, new_id
from store.engine.memory import Headroom
from store.engine.scripts import Scripts
from store.lifetimes import RENAME
from store.refused import let_in, refuse_signed_out
from store.results import Preferences, Profile, Visitor

GENERATED = "A" * 22
"""The id of a generated picture in sealed addresses."""
MOST_ADDRESSES = 16_384
"""Addresses of pictures that a process remembers, in at most some 9 MB. Apps ask about the same people again and again,
and sealing an address takes a tenth of a call of userinfo."""


@dataclass(frozen=True, slots=True)
class Picture:
    """A picture. `image` is WebP; if empty, a picture is generated from `letters`, in a colour derived from `user`."""

    user: str
    image: bytes
    letters: str


class Profiles:
    """Names and pictures. `idle` is the idle lifetime of a session in ms."""

    def __init__(self, scripts: Scripts, sealer: Sealer, idle: int, headroom: Headroom) -> None:
        self._scripts = scripts
        self._sealer = sealer
        self._idle = idle
        self._headroom = headroom
        self._address = lru_cache(maxsize=MOST_ADDRESSES)(self._sealed_address)

    async def rename(self, session: Session, name: str, visitor: Visitor) -> None:
        """Changes the name, already checked by `check_person_name`. Raises SignedOut, Refused("rate_limited")."""
        reply = await self._scripts.run(
            "rename_user",
            {**session.keys(), **keys.changed(session.user), "window": keys.limit(session.user, RENAME.name)},
            name=name,
            member=keys.member(session.user),
            limit=RENAME.limit,
            period=RENAME.period,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "rate_limited":
            let_in(RENAME, reply)

    async def prefer(self, session: Session, preferences: Preferences, visitor: Visitor) -> None:
        """Keeps how pages and mails read, already checked. Raises SignedOut, Refused("rate_limited")."""
        reply = await self._scripts.run(
            "save_preferences",
            {**session.keys(), "window": keys.limit(session.user, RENAME.name)},
            language=preferences.language,
            zone=preferences.zone,
            limit=RENAME.limit,
            period=RENAME.period,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)
        if reply.word == "rate_limited":
            let_in(RENAME, reply)

    async def hide_passkey_offer(self, session: Session) -> None:
        """Never offers the person a passkey on the account page again. Raises SignedOut."""
        refuse_signed_out(await self._scripts.run("hide_passkey_offer", session.keys(), idle=self._idle))

    async def save_picture(self, session: Session, image: bytes, visitor: Visitor) -> None:
        """Replaces the picture with an encoded one; an empty image removes the picture. Raises SignedOut, StoreFull."""
        if image:
            self._headroom.require()
        reply = await self._scripts.run(
            "save_picture",
            session.keys(),
            picture_id=new_id() if image else "",
            image=image,
            idle=self._idle,
            **visitor.fields(),
        )
        refuse_signed_out(reply)

    def address(self, profile: Profile) -> str:
        """The address of the person's picture: sealed text and an extension. No I/O."""
        return self._address(self._sealer.front, profile.user, profile.picture, profile.name)

    def _sealed_address(self, _front: SecretKey, user: str, picture: str, name: str) -> str:
        """`_front`: the key that seals. An address that another key sealed is not remembered for this one."""
        letters = "" if picture else initials(name)
        token = Token(TokenKind.PICTURE, user, letters, picture or GENERATED, 0)
        return f"{self._sealer.seal(token)}.{'webp' if picture else 'svg'}"

    async def picture(self, address: str) -> Picture | None:
        """The picture at this address; None if the picture was replaced or never existed, or if the person is gone or
        disabled. A forged address costs no I/O."""
        sealed, _, extension = address.rpartition(".")
        token = self._sealer.open(TokenKind.PICTURE, sealed)
        if token is None or extension != ("svg" if token.id == GENERATED else "webp"):
            return None
        own = "" if token.id == GENERATED else token.id
        image, name = await self._read(token.user, own)
        if name is None or (own and not image) or (not own and initials(name) != token.client):
            return None
        return Picture(token.user, image, token.client)

    async def image(self, user: str, picture_id: str) -> bytes:
        """An uploaded picture in its stored form; empty if there is none with this id."""
        return (await self._read(user, picture_id))[0] if picture_id else b""

    async def _read(self, user: str, picture_id: str) -> tuple[bytes, str | None]:
        reply = await self._scripts.run("read_picture", keys.person(user), picture_id=picture_id)
        if reply.word != "ok":
            return b"", None
        return reply.raw("image"), reply.text("name")


def initials(name: str) -> str:
    """The letters on a generated picture: the first letters of the first and last word with a letter; may be empty."""
    first = [letter for word in name.split() if (letter := next(filter(str.isalnum, word), ""))]
    # Some letters have a capital of two letters; a picture has room for one each.
    return "".join(letter.upper()[:1] for letter in (first[:1] + first[1:][-1:]))
