"""Wrong codes of the second step: how they count, and the notice to the person."""

from __future__ import annotations

from typing import NamedTuple

from store.accounts.signin.devices import Device
from store.engine.scripts import Reply
from store.lifetimes import DEVICE, FACTOR, FACTOR_LONGEST, FACTOR_MOST
from store.phrases import Phrase
from store.refused import Refused, let_in
from store.results import Warned, warned_of

WRONG = Phrase("That code is wrong or was already used.")
STOPPED = Phrase(
    "You entered too many wrong codes, so codes no longer work. Use a passkey, or set a new password with “Forgot "
    "your password?” and sign in again."
)


class GuessNotice(NamedTuple):
    """A notice to the person: somebody types wrong codes after the right password. `stopped`: no code counts until the
    password changes."""

    warned: Warned
    stopped: bool


class WrongCode(Refused):
    """A code was wrong; `notice` is the notice to mail to the person, if one is due."""

    def __init__(self, text: str, notice: GuessNotice | None = None) -> None:
        super().__init__("access_denied", text)
        self.notice = notice


def guessed_by(device: Device | None, user: str) -> dict[str, str | int]:
    """The arguments of a script that takes a try at a code; the browser may be a known device of the person."""
    known = device if device is not None and device.user == user else None
    return {
        "limit": FACTOR.limit,
        "pause": FACTOR.period,
        "longest": FACTOR_LONGEST,
        "most": FACTOR_MOST,
        "device": known.id if known else "",
        "device_epoch": known.session_epoch if known else "",
        "known_at": known.known_at if known else "",
        "device_lasts": DEVICE,
    }


def refuse_guess(reply: Reply) -> None:
    """Raises WrongCode, or Refused("rate_limited") during a pause, if a script did not accept a code."""
    if reply.word == "rate_limited":
        let_in(FACTOR, reply)
    if reply.word == "stopped":
        raise WrongCode(STOPPED)
    if reply.word == "wrong":
        notice = reply.text("told")
        raise WrongCode(WRONG, GuessNotice(warned_of(reply), notice == "stopped") if notice else None)
