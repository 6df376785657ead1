"""Hostile directories, and what a directory must not lose."""

from __future__ import annotations

import itertools
import string
import time
from datetime import timedelta

import pytest

from handlers.admin.scim.base import Selection
from handlers.core.params import Params
from store.clock import wall
from store.operations import Suspension
from store.refused import Suspended
from tests.operators.scim.conftest import Provisioner
from tests.support.processes.engines import FakeClock

pytestmark = pytest.mark.gen_test

OFF = {"op": "replace", "path": "active", "value": False}


async def test_the_end_of_a_suspension_lets_nobody_in_who_is_inactive(scim: Provisioner, clock: FakeClock) -> None:
    ada, until = scim.desk.ada, wall.utc() + timedelta(days=1)
    await scim.store.operator.suspend(ada, Suspension("Unpaid", "Ticket 1", until))
    assert (await scim.patch(ada, OFF)).code == 200
    clock.advance(2 * 86_400)
    with pytest.raises(Suspended):
        await scim.desk.sign_in()
    assert (await scim.store.operator.find(ada)).suspension == Suspension("Unpaid", "Ticket 1")


async def test_a_planned_deletion_that_is_cancelled_lets_nobody_in_unnoticed(scim: Provisioner) -> None:
    made = await scim.make()
    await scim.store.planned_deletions.plan(made["id"], 7)
    assert "deleted" in await scim.refused(await scim.patch(made["id"], OFF), 403)


def test_thousands_of_chosen_attributes_are_read_once() -> None:
    names = ",".join(map("".join, itertools.product(string.ascii_lowercase, repeat=3)))[:60_000]
    record = dict.fromkeys(("id", "userName", "displayName", "emails", "groups", "meta"), "x")
    begun = time.process_time()
    selection = Selection(Params({"attributes": names}))
    assert [selection.of(record) for _ in range(200)] == [{"id": "x"}] * 200
    assert time.process_time() - begun < 1
