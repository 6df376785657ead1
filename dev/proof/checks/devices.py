"""Promises about devices without a browser: one decision counts, and gives tokens once."""

from __future__ import annotations

from collections import defaultdict

from dev.proof.history import History, Op
from dev.proof.verdict import Found

NOT_ALLOWED = ("access_denied", "authorization_pending", "expired_token")
"""What no device hears of a request that its person has allowed."""


def decisions_once(history: History) -> Found:
    """Of all decisions on a device's request one counts. A decision that nobody confirmed leaves the request open again
    a minute later. An allowed device gets tokens once, and a denied one none."""
    found = Found()
    decisions, polls = _by_device(history, "device_decide"), _by_device(history, "device_poll")
    for device, ops in decisions.items():
        acked = [op for op in ops if op.acked]
        found.checked += len(acked)
        if len(acked) > 1:
            found.wrong(f"two decisions on one request counted: {acked[0]}; {acked[1]}", acked[0].person, *acked[:1])
        for op in ops:
            others = [one for one in ops if one is not op and not one.refused and one.start < op.end]
            if op.refused and op.status == 400 and not others:
                found.wrong(f"a decision was refused that was the first: {op}", op.person)
        for poll in polls[device]:
            if acked and acked[0].args["decision"] == "deny" and poll.acked:
                found.wrong(f"a denied device has tokens: {poll}; denied by {acked[0]}", poll.person, acked[0])
            if (
                acked
                and acked[0].args["decision"] == "allow"
                and acked[0].end < poll.start
                and poll.error in NOT_ALLOWED
            ):
                found.wrong(f"an allowed device has none: {poll}; allowed by {acked[0]}", poll.person, acked[0])
    for stuck in history.of("device_stuck"):
        found.wrong(f"nobody could decide on it any more: {stuck}", stuck.person)
    return found


def tokens_once(history: History) -> Found:
    """A device code gives tokens once, after somebody has allowed it, and a used one that comes again ends them."""
    found = Found()
    decisions, polls = _by_device(history, "device_decide"), _by_device(history, "device_poll")
    calls: dict[str, list[Op]] = defaultdict(list)
    for op in history.of("userinfo", "revoke_refresh"):
        calls[op.args["family"]].append(op)
    for device, ops in polls.items():
        acked = [op for op in ops if op.acked]
        found.checked += len(acked)
        if len(acked) > 1:
            found.wrong(f"a device code gave tokens twice: {acked[0]}; {acked[1]}", acked[0].person, *acked[:1])
        for won in acked:
            allowed = [op for op in decisions[device] if op.args["decision"] == "allow" and not op.refused]
            if not any(op.start < won.end for op in allowed):
                found.wrong(f"a device has tokens that nobody allowed: {won}", won.person)
            again = [op for op in ops if op is not won]
            replays = [op for op in again if op.refused and op.error == "invalid_grant"]
            for call in calls[won.result["of"]]:
                if call.kind != "userinfo":
                    continue
                for replay in replays:
                    if call.acked and call.start > max(replay.end, won.end):
                        found.wrong(f"it worked after its code came again: {call}; {replay}", call.person, replay)
                ends = [
                    op for op in (*again, *calls[won.result["of"]]) if op.kind != "userinfo" and op.start < call.end
                ]
                if call.status == 401 and not ends:
                    found.wrong(f"a device's token was refused that nothing had ended: {call}", call.person, won)
    return found


def _by_device(history: History, kind: str) -> dict[str, list[Op]]:
    found: dict[str, list[Op]] = defaultdict(list)
    for op in history.of(kind):
        found[op.args["device"]].append(op)
    return found
