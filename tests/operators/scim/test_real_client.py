"""A SCIM client from PyPI and its checks of servers, unmodified, against a running server."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest
from httpx2 import Client

import manage
from tests.support.processes.processes import QUICK, Server

if TYPE_CHECKING:  # every process of a run collects this file, and to load the client takes 3 s
    from scim2_client.engines.httpx2 import SyncSCIMClient
    from scim2_tester import CheckResult


class NewAddresses(list[str]):
    """The examples of a userName, from which the checks take a random one: each is a new address, because the schema
    cannot say that a text is an address."""

    def __init__(self) -> None:
        super().__init__(["p@example.com"])
        self._numbers = itertools.count()

    def __getitem__(self, _place: Any) -> Any:
        return f"p{next(self._numbers)}@example.com"


@pytest.fixture(scope="module")
def scim() -> Iterator[SyncSCIMClient]:
    """The client, which has discovered the server."""
    from scim2_client.engines.httpx2 import SyncSCIMClient

    with Server("--ops-port", "0", *QUICK) as server, pytest.MonkeyPatch.context() as patch:
        server.ready()
        found = re.search(r"operations on (\S+)$", server.log, re.MULTILINE)
        assert found
        printed: list[str] = []
        patch.setattr("builtins.print", lambda text="", **_: printed.append(text))
        assert manage.main(["--data-dir", str(server.data_dir), "operator-key", "create", "--role", "scim"], {}) == 0
        patch.undo()
        [key] = re.findall(r"lk_ok_\S+", " ".join(printed))
        headers = {"Authorization": f"Bearer {key}"}
        with Client(base_url=f"{found[1]}/scim/v2", headers=headers) as http:
            client = SyncSCIMClient(http)
            client.discover()
            yield client


@pytest.fixture(scope="module")
def results(scim: SyncSCIMClient) -> list[CheckResult]:
    """The results of all checks."""
    from scim2_tester import check_server

    user = scim.get_resource_model("User")
    assert user
    user.model_fields["user_name"].examples = NewAddresses()
    return check_server(scim)


def test_all_checks_of_discovery_and_people_succeed(results: list[CheckResult]) -> None:
    from scim2_tester import Status

    ours = [one for one in results if one.resource_type != "Group"]
    assert [one for one in ours if one.status is not Status.SUCCESS and one.title != "search_with_attributes"] == []
    checked = {one.title for one in ours if one.resource_type == "User"}
    assert {"object_creation", "object_replacement", "object_deletion", "check_replace_attribute"} <= checked
    assert len(ours) > 35


def test_checks_of_groups_fail_at_their_creation_alone(results: list[CheckResult]) -> None:
    [*groups] = [one for one in results if one.resource_type == "Group"]
    assert {one.reason for one in groups} == {"Groups are read here. Operators give groups to people."}


def test_the_client_reads_groups_and_errors(scim: SyncSCIMClient) -> None:
    from scim2_models import Error, ListResponse

    group = scim.get_resource_model("Group")
    assert group
    found = scim.query(group)
    assert isinstance(found, ListResponse)
    assert found.total_results == 0
    refused = scim.query(group, "bm9ib2R5", raise_scim_errors=False)
    assert isinstance(refused, Error)
    assert (refused.status, json.loads(refused.model_dump_json())["detail"]) == (404, "Nobody is in such a group.")
