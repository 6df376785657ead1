"""Calls of a directory that provisions people."""

from __future__ import annotations

from typing import Any

from store.operators.provisioning import AssertedPerson
from store.operators.roles import OperatorActor
from tests.support.calls.prepared import Call, call, drained
from tests.support.store.world import World

DIRECTORY = OperatorActor("key", "k" * 22, "scim", "Tests")


async def known(w: World) -> str:
    """The person's external id."""
    await w.store.provisioning.change(DIRECTORY, w.user, AssertedPerson(external_id=f"id-{w.user}"))
    return f"id-{w.user}"


@call("provisioning.one", "summarise_person")
async def _(w: World) -> Call:
    return lambda: w.store.provisioning.one(w.user)


@call("provisioning.with_email", "summarise_person")
async def _(w: World) -> Call:
    return lambda: w.store.provisioning.with_email(w.email)


@call("provisioning.with_external_id", "summarise_person")
async def _(w: World) -> Call:
    external_id = await known(w)
    return lambda: w.store.provisioning.with_external_id(external_id)


@call("provisioning.page", "summarise_person")
async def _(w: World) -> Call:
    return lambda: w.store.provisioning.page(1, 1)


@call("provisioning.create", "create_user", "confirm_email", "keep_identity")
async def _(w: World) -> Call:
    email = f"provisioned-{w.email}"
    return lambda: w.store.provisioning.create(DIRECTORY, email, "Bea", f"new-{w.user}", active=True)


@call(
    "provisioning.change",
    *("summarise_person", "set_external_id", "keep_identity", "release_identity"),
    *("rename_person", "describe_user", "set_user_status"),
)
async def _(w: World) -> Call:
    await known(w)
    return lambda: w.store.provisioning.change(
        DIRECTORY, w.user, AssertedPerson("Bea", f"other-{w.user}", active=False)
    )


@call("provisioning.delete", "summarise_person", "describe_user", "begin_leaving", "delete_user", "release_email")
async def _(w: World) -> Call:
    return lambda: w.store.provisioning.delete(DIRECTORY, w.user)


@call("provisioning.in_groups", "read_groups")
async def _(w: World) -> Call:
    async def everyone() -> list[Any]:
        return await drained(w.store.provisioning.in_groups())

    return everyone
