"""Promises about documents: acknowledged writes are there, whole, and in order."""

from __future__ import annotations

import math
from collections import defaultdict
from dataclasses import dataclass, field
from typing import NamedTuple

from dev.proof.apps import COLLECTION
from dev.proof.history import History, Op
from dev.proof.verdict import Found

Name = tuple[str, str, str]
"""Person, app and document."""


class Read(NamedTuple):
    """A document as a client saw it: its version, or None if there was none; in a list, without its content."""

    op: Op
    etag: int | None
    digest: str | None


@dataclass
class Story:
    """All operations on one document that may have been carried out, and what was seen of it."""

    writes: list[Op] = field(default_factory=list)
    deletes: list[Op] = field(default_factory=list)
    reads: list[Read] = field(default_factory=list)

    @property
    def versions(self) -> dict[int, Op]:
        """The acknowledged writes by ETag."""
        return {op.result["etag"]: op for op in self.writes if op.acked}


def stories(history: History) -> dict[Name, Story]:
    """The operations on every document."""
    found: dict[Name, Story] = defaultdict(Story)
    names = {op.args["name"] for op in history.of("put", "get", "delete")}
    for op in history.of("put", "get", "delete"):
        story = found[(*op.pair, op.args["name"])]
        if op.kind == "put" and not op.refused:
            story.writes.append(op)
        elif op.kind == "delete" and op.acked and op.result["absent"]:
            story.reads.append(Read(op, None, None))
        elif op.kind == "delete" and not op.refused:
            story.deletes.append(op)
        elif op.kind == "get" and op.acked:
            story.reads.append(Read(op, op.result.get("etag"), op.result.get("digest")))
    for op in history.of("list"):
        if op.acked:
            for name in names:
                found[(*op.pair, name)].reads.append(Read(op, op.result["items"].get(name), None))
    return found


def not_lost(history: History) -> Found:
    """An acknowledged write stays until a later one, and a deleted document stays away."""
    found = Found()
    for (person, _, name), story in stories(history).items():
        versions = story.versions
        found.checked += len(story.reads)
        for read in story.reads:
            before = [op for op in versions.values() if op.end < read.op.start]
            last = max(before, key=lambda op: op.result["etag"], default=None)
            if read.etag is None:
                if last is not None and not any(_may_follow(gone, last, read.op) for gone in story.deletes):
                    found.wrong(f"{name} is gone: {read.op}; written by {last}", person, last)
                continue
            if last is not None and read.etag < last.result["etag"]:
                found.wrong(f"{name} is an older version: {read.op}; written by {last}", person, last)
            seen = versions.get(read.etag)
            for gone in story.deletes:
                if seen is not None and gone.acked and seen.end < gone.start and gone.end < read.op.start:
                    found.wrong(f"{name} is back: {read.op}; deleted by {gone}", person, gone)
    return found


def _may_follow(delete: Op, write: Op, read: Op) -> bool:
    """Whether a deletion may have been carried out after the write and before the read."""
    over = math.inf if delete.unknown else delete.end
    return delete.start < read.end and over > write.start


def not_torn(history: History) -> Found:
    """Content is read exactly as it was sent in one request, and is always the same under one ETag."""
    found = Found()
    for (person, _, name), story in stories(history).items():
        sent = {op.args["digest"]: op for op in story.writes}
        versions = story.versions
        seen: dict[int, Read] = {}
        for read in story.reads:
            if read.digest is None or read.etag is None:
                continue
            found.checked += 1
            write = sent.get(read.digest)
            if write is None or write.start > read.op.end:
                found.wrong(f"{name} has a content that nobody sent: {read.op}", person)
                continue
            other = versions.get(read.etag)
            if other is not None and other.args["digest"] != read.digest:
                found.wrong(f"{name} has another content than its version: {read.op}; {other}", person, other)
            first = seen.setdefault(read.etag, read)
            if first.digest != read.digest:
                found.wrong(f"{name} has two contents under one ETag: {first.op}; {read.op}", person, *_known(write))
    return found


def _known(op: Op) -> list[Op]:
    return [op] if op.acked else []


def versions_once(history: History) -> Found:
    """Each ETag is given once across all documents of an app and a person, and each version is replaced once."""
    found = Found()
    given: dict[tuple[str, str, int], Op] = {}
    replaced: dict[tuple[str, str, str, str], Op] = {}
    for op in history.of("put"):
        if not op.acked:
            continue
        found.checked += 1
        first = given.setdefault((*op.pair, op.result["etag"]), op)
        if first is not op:
            found.wrong(f"one ETag was given twice: {first}; {op}", op.person, first)
        over = op.args["if_match"]
        if over.isdecimal():
            if op.result["etag"] <= int(over):
                found.wrong(f"the ETag did not rise: {op}", op.person)
            first = replaced.setdefault((*op.pair, op.args["name"], over), op)
            if first is not op:
                found.wrong(f"one version was replaced twice: {first}; {op}", op.person, first)
    return found


def usage_is_recount(history: History) -> Found:
    """An app's reported usage equals the documents in its list."""
    found = Found()
    for hosted in history.hosted:
        found.checked += 1
        documents, size = len(hosted.listed), sum(item["size"] for item in hosted.listed)
        reported = (hosted.usage["documents"]["used"], hosted.usage["bytes"]["used"])
        collections = [{"name": COLLECTION, "documents": documents, "bytes": size}] if documents else []
        if reported != (documents, size) or hosted.usage["collections"] != collections:
            found.wrong(
                f"{hosted.client} gets the usage {hosted.usage} and lists {documents} with {size} bytes", hosted.person
            )
    return found
