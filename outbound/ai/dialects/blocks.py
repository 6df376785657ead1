"""Blocks of an answer of the Messages API, read from a whole message or from the events of a stream."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from outbound.ai.dialects.content import Joiner
from outbound.ai.events import BrokenStream, compact

MOST_BLOCKS = 10_000
MOST_TEXT = 32 * 2**20
"""Characters of one answer, over all its blocks."""


@dataclass(slots=True)
class Block:
    """A block. `text` is its text, its thinking, or the arguments of a tool as JSON; `signature` seals thinking."""

    index: int
    kind: str
    id: str = ""
    name: str = ""
    signature: str = ""
    data: str = ""
    done: bool = False
    parts: list[str] = field(default_factory=list)
    joiner: Joiner = field(default_factory=Joiner)

    @property
    def text(self) -> str:
        """What was received until now."""
        return "".join(self.parts)

    @property
    def thinking(self) -> dict[str, Any]:
        """The block of thinking, as the upstream wrote it."""
        if self.kind == "redacted_thinking":
            return {"type": self.kind, "data": self.data}
        return {"type": self.kind, "thinking": self.text, "signature": self.signature}


@dataclass(frozen=True, slots=True)
class BlockStep:
    """What an event changed: a block began, got a `piece` of text, or ended."""

    block: Block
    piece: str = ""
    began: bool = False
    ended: bool = False


class BlockReader:
    """Reads the blocks of a stream. Raises BrokenStream for a stream that belongs to no block, or without bound."""

    def __init__(self) -> None:
        self._blocks: dict[int, Block] = {}
        self._size = 0

    @classmethod
    def of_message(cls, message: Mapping[str, Any]) -> list[Block]:
        """The blocks of a whole message; what is no block is left out."""
        reader, content = cls(), message.get("content")
        for index, block in enumerate(content if isinstance(content, list) else []):
            if isinstance(block, dict):
                reader.feed({"type": "content_block_start", "index": index, "content_block": block})
                reader.feed({"type": "content_block_stop", "index": index})
        return list(reader._blocks.values())

    def feed(self, event: Mapping[str, Any]) -> BlockStep | None:
        """What the event changes; None for an event that concerns no block."""
        kind = event.get("type")
        if kind == "content_block_start":
            return self._begin(event)
        if kind == "content_block_delta":
            return self._grow(self._open(event), event.get("delta"))
        if kind == "content_block_stop":
            return self._end(self._open(event))
        return None

    def _begin(self, event: Mapping[str, Any]) -> BlockStep:
        index, given = event.get("index"), event.get("content_block")
        if not isinstance(index, int) or index in self._blocks or not isinstance(given, dict):
            raise BrokenStream("a block began twice, or is none")
        if len(self._blocks) >= MOST_BLOCKS:
            raise BrokenStream("an answer has too many blocks")
        kind = _text(given, "type")
        block = Block(index, kind, _text(given, "id"), _text(given, "name"))
        self._blocks[index] = block
        self._add_seal(block, given)
        arguments = given.get("input")
        begun = compact(arguments) if kind == "tool_use" and isinstance(arguments, dict) and arguments else ""
        return BlockStep(
            block, self._take(block, begun or _text(given, "thinking" if kind == "thinking" else "text")), True
        )

    def _grow(self, block: Block, delta: object) -> BlockStep:
        if not isinstance(delta, dict):
            raise BrokenStream("a delta is none")
        self._add_seal(block, delta)
        names = {"text": "text", "thinking": "thinking", "tool_use": "partial_json"}
        name = names.get(block.kind)
        return BlockStep(block, self._take(block, _text(delta, name)) if name else "")

    def _end(self, block: Block) -> BlockStep:
        block.done = True
        rest = block.joiner.end()
        if block.kind == "tool_use" and not block.parts:
            rest = "{}"
        if rest:
            block.parts.append(rest)
        return BlockStep(block, rest, ended=True)

    def _open(self, event: Mapping[str, Any]) -> Block:
        index = event.get("index")
        block = self._blocks.get(index) if isinstance(index, int) else None
        if block is None or block.done:
            raise BrokenStream("an event is about no open block")
        return block

    def _add_seal(self, block: Block, part: Mapping[str, Any]) -> None:
        signature, data = _text(part, "signature"), _text(part, "data")
        self._count(len(signature) + len(data))
        block.signature += signature
        block.data += data

    def _take(self, block: Block, piece: str) -> str:
        piece = block.joiner.feed(piece)
        self._count(len(piece))
        if piece:
            block.parts.append(piece)
        return piece

    def _count(self, size: int) -> None:
        self._size += size
        if self._size > MOST_TEXT:
            raise BrokenStream("an answer is too large")


def _text(part: Mapping[str, Any], name: str) -> str:
    value = part.get(name)
    return value if isinstance(value, str) else ""
