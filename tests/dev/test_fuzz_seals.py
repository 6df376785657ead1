"""Sealed tokens with a flipped bit, cut, or spelled differently are refused without asking the store."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from dev.fuzz.seals import flipped, one_of_each, openers, presented, rewritten, statuses, tampered, try_way
from dev.fuzz.target import Target
from dev.fuzz.tokens import Cast
from dev.fuzz.wire import Wrong
from store.crypto.seal import TokenKind
from tests.support.http import http_servers

WAYS = (
    *("as bearer", "for a document", "for a refresh", "for an exchange", "for a poll"),
    *(
        "access token to revoke",
        "refresh token to revoke",
        "session",
        "decision",
        "pushed request",
        "invitation",
        "second step",
    ),
    *("confirmation", "reset", "change", "team", "undo", "picture"),
)
REVOCATIONS = ("access token to revoke", "refresh token to revoke")


class Stage:
    """A target with a live token of each kind."""

    def __init__(self, target: Target) -> None:
        self.target = target
        self.cast = target.run(Cast.make(target))
        self.tokens = target.run(one_of_each(self.cast))
        self.openers = openers(self.cast)
        self.ways = presented(self.cast)


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    with Target(http_servers.CHOSEN, signup="open") as target:
        yield Stage(target)


def test_every_kind_of_token_is_tried(stage: Stage) -> None:
    assert set(stage.tokens) == set(stage.openers) == set(TokenKind)
    assert tuple(stage.ways) == WAYS
    # A challenge comes with the answer of a passkey: what is wrong with it is seen behind a window of the address.
    # The cookie of a known device comes with a password: tests/runtime/test_same_work.py has it.
    # A wrong mark of a request's progress leads to the same pages as none: tests/oauth/openid/test_prompts.py has it.
    # A browser with an invented cookie counts as another browser: tests/oauth/pushed/test_pushed.py has it.
    # A nonce comes in a signed proof: tests/oauth/dpop/test_proofs.py has it.
    # An entry of the list of accounts that is not ours is left out: tests/accounts/signin/test_chooser.py has it.
    others = {TokenKind.CHALLENGE, TokenKind.DEVICE, TokenKind.PROGRESS, TokenKind.BROWSER, TokenKind.DPOP_NONCE}
    # A cursor comes with the key of an operator: tests/operators/test_people.py has it.
    # The request to an identity provider comes with an answer of the provider: tests/accounts/elsewhere has it.
    others |= {TokenKind.LISTED, TokenKind.CURSOR, TokenKind.UPSTREAM}
    assert {kind for kind, _ in stage.ways.values()} == set(TokenKind) - others


@pytest.mark.trap(5)
@pytest.mark.parametrize("kind", TokenKind)
def test_a_tampered_token_opens_nowhere_and_costs_no_call(stage: Stage, kind: TokenKind) -> None:
    text, opens = stage.tokens[kind], stage.openers[kind]
    variants = tampered(text)
    assert len(list(flipped(text))) >= 8 * (1 + 16 + 36)
    assert len(list(rewritten(text))) > len(text)
    content, commands = stage.target.content(), stage.target.commands()

    async def taken() -> list[str]:
        return [one for one in variants if await opens(one)]

    assert stage.target.run(taken()) == []
    assert stage.target.commands() == commands
    assert stage.target.content() == content


@pytest.mark.slow
@pytest.mark.trap(5)
@pytest.mark.trap(36)
@pytest.mark.parametrize("name", WAYS)
def test_a_tampered_token_is_refused_over_http_without_a_store_call(stage: Stage, name: str) -> None:
    kind, way = stage.ways[name]
    content = stage.target.content()
    try_way(stage.target, way, stage.tokens[kind])
    assert stage.target.content() == content
    assert stage.target.log.heard == []


@pytest.mark.parametrize("name", [name for name in WAYS if name not in REVOCATIONS])
def test_the_untampered_token_is_accepted(stage: Stage, name: str) -> None:
    """Otherwise a refusal would prove nothing. Runs last, since it uses some tokens up."""
    kind, way = stage.ways[name]
    before = sum(stage.target.commands().values())
    (status,) = stage.target.run(statuses(stage.target.port, [way.sent(stage.tokens[kind])]))
    assert status != way.status
    assert sum(stage.target.commands().values()) > before


def test_an_accepted_tampered_token_is_detected(stage: Stage) -> None:
    """The fuzzer detects it."""
    _, way = stage.ways["as bearer"]
    other = stage.ways["session"][1]
    with pytest.raises(Wrong, match="answered otherwise"):
        try_way(stage.target, type(way)(way.sent, other.status), stage.tokens[TokenKind.ACCESS])
    with pytest.raises(Wrong, match="calls of scripts"):
        try_way(stage.target, type(way)(way.sent, way.status, 1), stage.tokens[TokenKind.ACCESS])
