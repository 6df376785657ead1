"""What an account that its person took back does to their apps and APIs."""

from __future__ import annotations

from dataclasses import replace

from store.apps.client_secrets import told
from store.apps.owners.members import role_of, without_given
from store.apps.owners.roles import may
from store.apps.registration import Registration
from store.lifetimes import UNDO_LINK
from store.phrases import Phrase


def taken_back(app: Registration, user: str, since: int) -> Registration:
    """The registration after somebody in its team takes back an account that somebody else had from `since` on (epoch
    ms). Members whose role may come from this account are out, as `without_given`, also if they got it in the 7 days
    before: a thief may invite first, and change the address later. If the account could change the app, secrets made
    from `since` on have ended, and an app registered or changed from then on, or without a secret left, is switched
    off: nobody knows which member changed it."""
    app = without_given(app, user, since - UNDO_LINK)
    stepped_down = any((one.user, one.by) == (user, user) and one.since >= since for one in app.members)
    if not (may(role_of(app, user), "change") or stepped_down):
        return app
    doubtful = max(app.created_at, app.changed_at) >= since
    kept = [(one, at) for one, at in app.made_at().items() if max(at, app.created_at) < since]
    if len(kept) == len(app.secrets) and not doubtful:
        return app
    off = app.active and (doubtful or not kept)
    secrets, secrets_at = tuple(one for one, _ in kept), told([at for _, at in kept])
    return replace(app, secrets=secrets, secrets_at=secrets_at, status="off" if off else app.status)


def taken_back_phrase(*, off: bool, ended: bool, parted: bool = False) -> Phrase:
    """The end of a line that names the app. `off`: it was switched off; `ended`: newer client secrets were ended;
    `parted`: newer members of its team were removed."""
    if parted:
        if off or ended:
            return Phrase("newer team members removed; %(what)s", what=taken_back_phrase(off=off, ended=ended))
        return Phrase("newer team members removed")
    if off and ended:
        return Phrase("switched off because it was changed; newer client secrets no longer work")
    return Phrase("switched off because it was changed") if off else Phrase("newer client secrets no longer work")
