"""Creates the APIs, apps and people of the seed file that are missing. `store/seed/reading.py` describes the file."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from store.apps.api_scopes import ApiScopeName, parse_qualified
from store.apps.client_ids import check_new_client_id
from store.crypto.passwords import check_password
from store.errors import StartupError
from store.lifetimes import EMAIL_RESERVATION, SECOND
from store.refused import Refused
from store.results import Visitor, unheard
from store.seed.fields import Invalid
from store.seed.reading import SeedApi, SeedApp, SeedUser, read_seed
from store.wiring import Store

log = logging.getLogger("latchkey.seed")

PATIENCE = EMAIL_RESERVATION / SECOND + 5
"""Seconds to wait for an e-mail address that an unfinished account still reserves."""

_POLL = 0.1
CREDITS_REASON = "First credits"


@dataclass(frozen=True, slots=True)
class SeedReport:
    """The created apps, people and APIs: client ids, e-mail addresses and identifiers in the order of the file.
    `credited` has the addresses of the people who got credits."""

    apps: tuple[str, ...]
    users: tuple[str, ...]
    credited: tuple[str, ...] = ()
    apis: tuple[str, ...] = ()


async def seed(
    store: Store,
    path: Path,
    *,
    base_url: str = "",
    patience: float = PATIENCE,
    progress: Callable[[int, int], None] = unheard,
) -> SeedReport:
    """Creates the file's missing APIs, apps and people; several servers may do so at once. Calls `progress` with the
    number of entries checked so far and their total. `base_url`: this server's own address, where no API can be.

    Raises StartupError, which names the place in the file: for a mistake in the file, with nothing written, and after
    `patience` seconds for an e-mail address that an unfinished account reserves. Raises StoreError.
    """
    try:
        apis, apps, users = read_seed(path, base_url)
        for user in users:
            await _refuse_guessable(store, user)
        for app in apps:
            await _refuse_peoples_ids(store, app)
        looked_at, size = count(1), len(apis) + len(apps) + len(users)

        def step() -> bool:
            progress(next(looked_at), size)
            return True

        # Apps register for scopes of the APIs.
        identifiers = tuple([api.registration.identifier for api in apis if step() and await _create_api(store, api)])
        ids = {api.registration.client_id: await _present_id(store, api) for api in apis}
        report = SeedReport(
            tuple([app.registration.client_id for app in apps if step() and await _create_app(store, app, ids)]),
            tuple([user.email for user in users if step() and await _create_user(store, user, patience)]),
            tuple([user.email for user in users if await _credit(store, user)]),
            identifiers,
        )
    except Invalid as error:
        raise StartupError(f"the seed file {path}: {error}") from None
    log.info("seed file: %d apps and %d people were missing", len(report.apps), len(report.users))
    if report.apis:
        log.info("seed file: %d APIs were missing", len(report.apis))
    if report.credited:
        log.info("seed file: %d people got their first credits", len(report.credited))
    return report


async def _refuse_guessable(store: Store, user: SeedUser) -> None:
    """Checks the password of a missing account only: a file older than a stricter rule must not prevent a start."""
    try:
        check_password(user.password, user.email, user.name)
    except ValueError as error:
        if not await _exists(store, user.email):
            raise Invalid(f"{user.place}.password", str(error)) from None


async def _refuse_peoples_ids(store: Store, app: SeedApp) -> None:
    """Checks the client id of a missing app only, for the same reason."""
    try:
        check_new_client_id(app.registration.client_id)
    except ValueError as error:
        if not await store.apps.find(app.registration.client_id):
            raise Invalid(f"{app.place}.client_id", str(error)) from None


async def _create_api(store: Store, api: SeedApi) -> bool:
    identifier = api.registration.identifier
    if await store.apis.at(identifier):
        return False
    try:
        await store.apis.create(api.registration, api.secret)
    except Refused:  # another server was quicker
        return False
    if api.secret is None:
        log.info("seed file: %s has no client_secret; the command `api rotate-secret` makes one", identifier)
    return True


async def _present_id(store: Store, api: SeedApi) -> str:
    """The client id of the API. It has another one than in the file if an earlier one with its identifier was
    deleted."""
    present = await store.apis.at(api.registration.identifier)
    return present.client_id if present else api.registration.client_id


async def _create_app(store: Store, app: SeedApp, ids: Mapping[str, str]) -> bool:
    client_id = app.registration.client_id
    if await store.apps.find(client_id):
        return False
    named = (parse_qualified(scope) for scope in app.registration.api_scopes)
    scopes = tuple(ApiScopeName(ids[scope.api], scope.name).qualified for scope in named)
    try:
        begun = store.webhooks.begun(replace(app.registration, api_scopes=scopes), app.webhook_secret)
        await store.apps.create(begun.registration, app.secret)
    except Refused:  # another server was quicker
        return False
    if begun.secret and app.webhook_secret is None:
        log.info("seed file: %s has no webhook_secret; the command `app rotate-webhook-secret` makes one", client_id)
    if app.secret is None and app.registration.has_secret:
        log.info("seed file: %s has no client_secret; the command `app rotate-secret` makes one", client_id)
    return True


async def _create_user(store: Store, user: SeedUser, patience: float) -> bool:
    deadline = asyncio.get_running_loop().time() + patience
    while not await _exists(store, user.email):
        try:
            await store.people.create(
                user.email,
                user.name,
                user.password,
                verified=True,
                event="created_by_operator",
                visitor=Visitor(),
                groups=user.groups,
            )
        except Refused:
            # The address is reserved without an account: another server is half-way, or one was killed there.
            if asyncio.get_running_loop().time() >= deadline:
                raise Invalid(
                    f"{user.place}.email", "is held by an account that is being made; start again in a minute"
                ) from None
            await asyncio.sleep(_POLL)
        else:
            return True
    return False


async def _credit(store: Store, user: SeedUser) -> bool:
    """Gives first credits, to an older account too: an interrupted start may have left it without any."""
    if not user.credits:
        return False
    try:
        person = await store.operator.find(user.email)
        granted = await store.credits.begin(person.user, user.credits, reason=CREDITS_REASON)
    except Refused:  # deleted meanwhile
        return False
    return not granted.replayed


async def _exists(store: Store, email: str) -> bool:
    try:
        await store.operator.find(email)
    except Refused:
        return False
    return True
