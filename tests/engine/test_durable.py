"""Durable scripts: each writing script is durable, or says here why a failover may undo it."""

from __future__ import annotations

import contextlib
import re
from typing import Any

import pytest

from store.crypto.keyring import Keys
from store.engine.connect import connect
from store.engine.script_source import include_files
from store.errors import StoreError
from store.refused import Refused, SignedOut, UnknownUser, Unproved
from tests.engine.test_scripts import code_of, own_body
from tests.support.calls.every import CALLS
from tests.support.processes.engines import Engine
from tests.support.store.lost_answers import SCRIPTS, store_on
from tests.support.store.world import World

WRITES = re.compile(
    r"redis\.call\('(SET|DEL|UNLINK|HSET|HSETNX|HDEL|HINCRBY|SADD|SREM|ZADD|ZREM|XADD|RENAME|PERSIST|INCRBY|LPUSH"
    r"|ZREMRANGEBYSCORE|XACK|XDEL|XAUTOCLAIM|XREADGROUP|PEXPIRE|PEXPIREAT|APPEND|SETRANGE)'"
)
PASSING = {
    "take_window": "a window: a few requests more",
    "give_back": "a window: a few requests fewer",
    "take_guess": "a window of guesses, and the note that it is full",
    "admit": "a window, and when the grant was last used",
    "count_proof": "a proof that may count again within its minute",
    "live_session": "when the session was last seen",
    "held_of": "drops what has ended",
}
LOSABLE = {
    "announce_ended": "what has ended is on the list as before, and told of under the same id",
    "claim_deletion": "found due again",
    "claim_deliveries": "an attempt that is made again",
    "drop_events": "moved again, under the same id",
    "forget_deliveries": "what is left ends in 30 days",
    "put_back_delivery": "an attempt that is made again",
    "prepare_operator_job": "the dry run is made again",
    "begin_operator_job": "begun again; each act of it is durable",
    "note_operator_job": "people who were done are done again",
    "replay_delivery": "sent off again by hand",
    "replay_failed_deliveries": "sent off again by hand",
    "settle_delivery": "an attempt that is made again",
    "take_events": "taken again",
    "count_activity": "figures are approximate by design",
    "hold_audit_export": "the events are sent once more",
    "append_trail": "the log of the process that sent them has them too",
    "add_hosted": "a sum that is about right, and counted again",
    "add_numbers": "numbers are approximate by design",
    "add_refusals": "a log that helps an owner; the request happens again",
    "begin_leaving": "a note for who goes on; the deletion, which follows, is waited for, and fsck adds a lost plan",
    "begin_authorization": "the person comes again, and so does the code",
    "change_section": "entries of the index of people; fsck finds a missing one, and a rebuild adds it",
    "begin_rebuild": "begun again by command; fsck says who is missing",
    "mark_people": "as change_section",
    "settle_changed": "as change_section",
    "take_changed": "taken again",
    "check_keys": "the next start notes it again",
    "claim_app": "an app that was not registered; the form is sent again",
    "claim_client": "an app that was not registered, and a token that can be used once more",
    "drop_client": "an app that nobody has allowed, which is dropped again",
    "note_client_use": "the order in which unused apps make room",
    "confirm_address": "the address is confirmed again, by another mail",
    "confirm_email": "an account that was not made, or a change of address that is done again",
    "create_user": "an account that is made again; until then nothing is kept there",
    "delete_document": "an app's own write, as write_document: its ETag says what is there",
    "export_holdings": "a line of the activity",
    "give_app": "the operator's command is given again",
    "hold_email": "the entry of an old address, which then counts for nothing and gives way",
    "end_pushed": "the browser that was answered could get a second answer, for as long as the request waits",
    "choose_credit_mails": "a mail that somebody does not want",
    "hide_passkey_offer": "an offer that is shown again",
    "invite_member": "an invitation that leads nowhere; another is mailed",
    "join_app": "an entry of a list, which the registration confirms; fsck adds a missing one",
    "list_app": "as join_app",
    "issue_change": "a link that leads nowhere; another is mailed",
    "issue_link": "a link that leads nowhere; another is mailed",
    "issue_app_token": "the app asks for another token",
    "note_mistyped": "a line of the activity",
    "list_grants": "drops names of apps that are gone",
    "list_sessions": "drops what is left of sessions that ended",
    "note_app": "a line of the activity",
    "note_sealing": "noted again within the hour; a key is retired after a month",
    "read_credentials": "the end of a suspension whose time has come: the next sign-in ends it again",
    "read_passkey": "the same",
    "record_event": "a line of the activity",
    "record_own_event": "a line of the activity",
    "drop_identity": "an entry of a list that leads nowhere, until fsck",
    "keep_identity": "an entry that the person's list names: fsck makes it permanent",
    "release_identity": "an entry that no list names counts for nothing and gives way",
    "sign_in_with_identity": "a session that is begun again",
    "drop_signing_key": "the next process that reads the keys drops it again",
    "record_reencryption": "without it no key is retired: the walk is done again",
    "open_pushed": "the request is open for another browser again",
    "reopen_pushed": "the person begins again at the app",
    "begin_device_request": "the device begins again",
    "claim_device_request": "the next decision claims it, and the first one is not written",
    "poll_device_request": "a poll that was early counts as the first",
    "reopen_device_request": "the person enters the code again a minute later",
    "push_request": "the app pushes its request again",
    "release_email": "an entry that the row does not bear out counts for nothing",
    "rename_passkey": "a name",
    "rename_user": "a name",
    "rename_person": "a name",
    "claim_operator_reply": "a write that is done again if its request is sent again; the write itself is waited for",
    "keep_operator_reply": "a reply; the write that it tells of was waited for",
    "note_key_use": "when an operator key was last used",
    "retire_key": "a key that is known a little longer",
    "save_picture": "a picture",
    "save_preferences": "a language and a zone",
    "start_session": "a session that is begun again",
    "use_dpop_proof": "a proof that may count again within its minute",
    "write_document": "an app's own write: a later one of the same version says that it is not there",
}
DENIALS = {
    *("dead", "signed_out", "not_found", "rate_limited", "invalid_scope", "scope_withdrawn", "mismatch", "too_much"),
    *("insufficient_credits", "app_spend_limit", "gone", "stale", "over", "unproved", "used", "full", "present"),
    *("absent", "wrong", "regressed", "unknown", "conflict", "changed", "owned", "running", "reply_gone"),
    *("invalid_token", "insufficient_scope", "redirect_mismatch", "verifier_mismatch"),
    *("key_mismatch", "other_key", "proof_used", "elsewhere", "refused", "last"),
}
"""Answers that promise nothing."""


def writing_functions() -> set[str]:
    """The functions of `lua/include/` that write permanent data."""
    bodies: dict[Any, Any] = {}
    for path in include_files().values():
        bodies.update(re.findall(r"local function (\w+)\([^)]*\)(.*?)\nend", code_of(path.read_text()), re.S))
    found = {name for name, body in bodies.items() if WRITES.search(body)} - set(PASSING)
    while True:
        more = {name for name, body in bodies.items() if calls_any(body, found)} - set(PASSING)
        if more <= found:
            return found
        found |= more


def calls_any(body: str, names: set[str]) -> bool:
    return any(re.search(rf"\b{name}\(", body) for name in names)


def test_every_writing_script_is_durable_or_says_why_not() -> None:
    functions = writing_functions()
    assert {"record", "end_grant", "issue_tokens", "book_entry", "write_session"} <= functions
    writing = {
        name
        for name, script in SCRIPTS.items()
        if WRITES.search(own_body(script)) or calls_any(own_body(script), functions)
    }
    durable = {name for name, script in SCRIPTS.items() if script.durable}
    assert durable & set(LOSABLE) == set()
    assert writing == durable | set(LOSABLE)


class Counting:
    """A client that records each durable script's answer, and whether it wrote."""

    def __init__(self, client: Any, engine: Engine) -> None:
        self._client = client
        self._direct = engine.client()
        self.silent: set[tuple[str, str]] = set()
        self.ran: set[str] = set()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    def close(self) -> None:
        self._direct.close()

    def _changes(self) -> int:
        seen: Any = self._direct.info("persistence")
        return int(seen["rdb_changes_since_last_save"])

    async def evalsha(self, sha: str, numkeys: int, *words: Any) -> Any:
        script = next(script for script in SCRIPTS.values() if script.sha == sha)
        self.ran.add(script.name)
        if not script.durable:
            return await self._client.evalsha(sha, numkeys, *words)
        before = self._changes()
        answer = await self._client.evalsha(sha, numkeys, *words)
        if self._changes() == before:
            self.silent.add((script.name, answer[0].decode()))
        return answer


@pytest.mark.gen_test(timeout=60)
async def test_a_durable_script_writes_something_each_time(valkey_engine: Engine, keys: Keys) -> None:
    """Writes of one connection without a replica's confirmation must not be confirmed by another without asking."""
    valkey_engine.empty()
    with valkey_engine.client() as direct:
        for script in SCRIPTS.values():
            direct.script_load(script.source)
    counting: Any = Counting(await connect(valkey_engine.url), valkey_engine)
    store = store_on(counting, keys)
    for prepared in CALLS.values():
        if any(SCRIPTS[name].durable for name in prepared.scripts):
            ready = await prepared.prepare(await World.make(store))
            await ready()
            # What is refused promised nothing.
            with contextlib.suppress(Refused, SignedOut, Unproved, UnknownUser, StoreError, ValueError, AssertionError):
                await ready()
    assert counting.ran >= {name for name, script in SCRIPTS.items() if script.durable}
    # A settlement of a hold that has ended charged nothing.
    assert {(name, word) for name, word in counting.silent if word not in DENIALS} <= {("settle_hold", "ended")}
    counting.close()
    await store.close()
