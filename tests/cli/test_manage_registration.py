"""`app registration-token`, and commands about apps that registered themselves."""

from __future__ import annotations

from store import keys
from store.wiring import Store
from tests.support.calls.self_registered import registered
from tests.support.processes.operator_commands import Home
from tests.support.store.world import World

TOKEN = ("app", "registration-token")


def test_a_registration_token_is_made_listed_and_revoked(home: Home) -> None:
    made = home.json(*TOKEN, "create", "--uses", "2", "--expires", "30d", "--name", "For Bea")
    assert made["token"].startswith("lk_ri_")
    assert (made["uses"], made["name"]) == (2, "For Bea")
    lasting = home.json(*TOKEN, "create")
    assert (lasting["uses"], lasting["expiresAt"]) == (None, None)
    listed = home.json(*TOKEN, "list")["tokens"]
    assert [one["id"] for one in listed] == [made["id"], lasting["id"]]
    assert "token" not in listed[0]
    assert home.json(*TOKEN, "revoke", made["id"], "--yes") == {"id": made["id"], "revoked": True}
    assert home.error(*TOKEN, "revoke", made["id"], "--yes")[1] == "not_found"
    events = [event["event"] for event in home.json("audit")["events"]]
    assert events.count("registration_token_made_by_operator") == 2
    assert "registration_token_revoked_by_operator" in events


def test_mistyped_ends_of_a_registration_token_are_refused(home: Home) -> None:
    for text, words in (("soon", "--expires takes"), ("2020-01-01", "--expires has passed")):
        status, _, description = home.error(*TOKEN, "create", "--expires", text)
        assert (status, words in description) == (1, True)


def test_apps_that_registered_themselves_are_listed_changed_and_deleted(home: Home) -> None:
    async def fill(store: Store) -> tuple[str, str]:
        world = await World.make(store)
        app = await registered(world)
        return app.client_id, world.email

    client_id, email = home.with_store(fill)
    listed = {one["client_id"]: one for one in home.json("app", "list")["apps"]}
    assert (listed[client_id]["origin"], listed[client_id]["refreshLifetimeDays"]) == ("dynamic", 0)
    assert listed[client_id]["scopes"] == ["openid", "profile", "email"]
    verified = home.error("app", "update", client_id, "--verified")
    assert "nobody owns or vouches" in verified[2]
    home.json("token", "mint", "--user", email, "--client-id", client_id, "--scopes", "profile")
    assert home.with_store(lambda store: store.client.pttl(keys.app(client_id))) == -1
    assert home.json("app", "update", client_id, "--disable")["status"] == "disabled"
    assert home.json("app", "delete", client_id, "--yes")["deleted"]
