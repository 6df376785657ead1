"""Checks answers of passkeys in a thread, a bounded number for each person."""

from __future__ import annotations

from store.accounts.signin.passkeys import NewPasskey, PasskeyResponse, RelyingParty
from store.threads import SharedThreads


class PasskeyThread:
    """Checks answers of passkeys. Both methods raise Refused: "access_denied" for an answer that fails its check,
    "temporarily_unavailable" if the queue is full, "rate_limited" if it holds too many answers of this person."""

    def __init__(self, threads: SharedThreads) -> None:
        self._threads = threads

    async def check_new(
        self, person: str, relying_party: RelyingParty, challenge: str, answer: PasskeyResponse, name: str
    ) -> NewPasskey:
        """The passkey that the browser made."""
        return await self._threads.run(person, _check_new, relying_party, challenge, answer, name)

    async def check_use(
        self, person: str, relying_party: RelyingParty, challenge: str, answer: PasskeyResponse, facts: bytes
    ) -> int:
        """The counter of the passkey with these facts, which signed the challenge."""
        return await self._threads.run(person, _check_use, relying_party, challenge, answer, facts)


def load() -> None:
    """Loads the library that checks answers. A server loads it at its start: no request waits for it, and workers
    share its memory."""
    from store.accounts.signin import passkey_checks  # noqa: F401  # the import loads it


def _check_new(relying_party: RelyingParty, challenge: str, answer: PasskeyResponse, name: str) -> NewPasskey:
    from store.accounts.signin.passkey_checks import check_new

    return check_new(relying_party, challenge, answer, name)


def _check_use(relying_party: RelyingParty, challenge: str, answer: PasskeyResponse, facts: bytes) -> int:
    from store.accounts.signin.passkey_checks import check_use

    return check_use(relying_party, challenge, answer, facts)
