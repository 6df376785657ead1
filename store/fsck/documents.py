"""Checks of a pair's documents: compares index, metadata, ciphertext and usage, and recounts."""

from __future__ import annotations

import re
from collections import Counter

from store import keys
from store.crypto.cipher import OVERHEAD_BYTES
from store.errors import StoreError
from store.fsck.context import FsckContext
from store.fsck.invariants import Finding, Mend, found
from store.fsck.pair import DocumentRow, Pair
from store.fsck.reading import Expected, Read, in_steps, in_words

AT_ONCE = 100
_META = re.compile(rb"([0-9]+) ([0-9]+) [0-9]+ [0-9]+")


async def add_unnamed(context: FsckContext, pair: Pair) -> bool:
    """Adds documents and metadata missing from the index, if counts show any. Returns whether nothing has changed."""
    docs, meta, named = pair.counts
    if docs == sum(row.sealed > 0 for row in pair.rows.values()) and meta == sum(
        row.meta != b"" for row in pair.rows.values()
    ):
        return named == len(pair.rows)
    known = keys.hosted(pair.user, pair.client)
    look = await context.reader.look(known["usage"], ("HKEYS", known["docs"]), ("HKEYS", known["meta"]))
    unnamed = sorted({*(look.seen[0] or []), *(look.seen[1] or [])} - pair.rows.keys())
    for some in in_steps([name for name in unnamed if in_words(name)], AT_ONCE):
        reads: list[Read] = []
        for name in map(in_words, some):
            reads += [("HGET", known["meta"], name), ("HSTRLEN", known["docs"], name), ("ZSCORE", known["index"], name)]
        seen = (await context.reader.look(known["usage"], *reads)).seen
        for place, name in enumerate(some):
            found_meta, sealed, score = seen[3 * place : 3 * place + 3]
            if found_meta is not None or sealed:
                pair.rows[name] = DocumentRow(found_meta or b"", sealed or 0, score)
    counted = tuple(
        sum(one)
        for one in zip(
            *((row.sealed > 0, row.meta != b"", row.score is not None) for row in pair.rows.values()), strict=True
        )
    )
    # Names that are not text are not checked one by one.
    odd = any(not in_words(name) for name in unnamed)
    return odd or counted == pair.counts


async def judge(context: FsckContext, pair: Pair) -> list[Finding]:
    """Checks the documents and their usage. Usage is repaired only when no other repair is left."""
    wrong = _judge_sequence(context, pair)
    for name, row in pair.rows.items():
        wrong += await _judge_row(context, pair, name, row)
    return wrong + _judge_usage(context, pair)


def _judge_sequence(context: FsckContext, pair: Pair) -> list[Finding]:
    known, sequence = keys.hosted(pair.user, pair.client), in_words(pair.usage.get("sequence"))
    newest = max((int(match[1]) for row in pair.rows.values() if (match := _META.fullmatch(row.meta))), default=0)
    if newest <= (int(sequence) if sequence.isdigit() else 0):
        return []
    still: list[Expected] = [(sequence, "HGET", known["usage"], "sequence"), ("1", "EXISTS", known["meta"])]
    mend = context.reader.mend(known["meta"], still, ("HSET", known["usage"], "sequence", str(newest)))
    return [found("etags", known["usage"], f"an ETag is {newest}, but the sequence is {sequence or 'missing'}", mend)]


async def _judge_row(context: FsckContext, pair: Pair, raw: bytes, row: DocumentRow) -> list[Finding]:
    known, name = keys.hosted(pair.user, pair.client), in_words(raw)
    shown = raw.decode("utf-8", "backslashreplace")
    match, size = _META.fullmatch(row.meta), row.sealed - OVERHEAD_BYTES
    if not row.meta and not row.sealed:
        gone: list[Expected] = [("0", "HEXISTS", known["docs"], name), ("0", "HEXISTS", known["meta"], name)]
        mend = context.reader.mend(known["index"], gone, ("ZREM", known["index"], name)) if name else None
        return [found("documents", known["index"], f"{shown} is in the index, but there is no such document", mend)]
    if not row.sealed:
        return [found("documents", known["meta"], f"{shown} has metadata but no content")]
    wrong = []
    if match is None:
        what = f"{shown} has no metadata" if not row.meta else f"{shown} has unreadable metadata"
        mend = await _metadata(context, pair, name, size) if name and not row.meta else None
        return [found("documents", known["docs"], what, mend)]
    still: list[Expected] = [(in_words(row.meta), "HGET", known["meta"], name)]
    if row.score is None or float(row.score) != 0:
        mend = context.reader.mend(known["meta"], still, ("ZADD", known["index"], "0", name))
        what = "is not in the index" if row.score is None else "is in the wrong place in the index"
        wrong.append(found("documents", known["index"], f"{shown} {what}", mend))
    if int(match[2]) != size:
        resized: Mend | None = None
        if await _opens(context, pair, name):
            etag, _, times = in_words(row.meta).split(" ", 2)
            still.append((str(row.sealed), "HSTRLEN", known["docs"], name))
            resized = context.reader.mend(known["meta"], still, ("HSET", known["meta"], name, f"{etag} {size} {times}"))
        what = f"{shown} has {size} bytes, but {int(match[2])} are recorded"
        wrong.append(found("documents", known["meta"], what, resized))
    if context.deep and not await _opens(context, pair, name):
        wrong.append(found("content", known["docs"], f"{shown} cannot be opened: damaged, moved, or its key is gone"))
    return wrong


async def _opens(context: FsckContext, pair: Pair, name: str) -> bool:
    """Whether a document opens, or has gone meanwhile."""
    docs = keys.hosted(pair.user, pair.client)["docs"]
    sealed = await context.reader.command("HGET", docs, name)
    try:
        if sealed is not None:
            context.cipher.open(pair.user, pair.client, name, sealed)
    except StoreError:
        return False
    return True


async def _metadata(context: FsckContext, pair: Pair, name: str, size: int) -> Mend | None:
    """A repair that writes new metadata for a document that opens: next ETag, real size, present time."""
    known = keys.hosted(pair.user, pair.client)
    sequence = in_words(pair.usage.get("sequence"))
    if size < 0 or not sequence.isdigit() or not await _opens(context, pair, name):
        return None
    etag = str(int(sequence) + 1)
    still: list[Expected] = [("0", "HEXISTS", known["meta"], name), (sequence, "HGET", known["usage"], "sequence")]
    still.append((str(size + OVERHEAD_BYTES), "HSTRLEN", known["docs"], name))
    return context.reader.mend(
        known["docs"],
        still,
        ("HSET", known["meta"], name, f"{etag} {size} {pair.now} {pair.now}"),
        ("HSET", known["usage"], "sequence", etag),
        ("ZADD", known["index"], "0", name),
    )


def recount(pair: Pair) -> dict[str, int]:
    """The usage, counted from the metadata."""
    counted: Counter[str] = Counter()
    for raw, row in pair.rows.items():
        match = _META.fullmatch(row.meta)
        if match is None:
            continue
        collection = in_words(raw).partition("/")[0]
        counted.update({"documents": 1, "bytes": int(match[2])})
        counted.update({f"n:{collection}": 1, f"b:{collection}": int(match[2])})
    counted["collections"] = sum(field.startswith("n:") for field in counted)
    return dict(counted)


def _judge_usage(context: FsckContext, pair: Pair) -> list[Finding]:
    usage, counted = {name: in_words(value) for name, value in pair.usage.items()}, recount(pair)
    sequence = usage.pop("sequence", "")
    # For totals, a zero and a missing field are equal; a collection must not have a zero.
    recorded = {name: value for name, value in usage.items() if value != "0" or name[1:2] == ":"}
    if recorded == {name: str(value) for name, value in counted.items() if value or name[1:2] == ":"}:
        return []
    known = keys.hosted(pair.user, pair.client)
    differ = sorted(name for name in {*recorded, *counted} if recorded.get(name, "0") != str(counted.get(name, 0)))
    still: list[Expected] = [
        (sequence, "HGET", known["usage"], "sequence"),
        (str(pair.counts[1]), "HLEN", known["meta"]),
    ]
    still.append((in_words(pair.usage.get("documents")), "HGET", known["usage"], "documents"))
    over = [name for name in usage if name not in counted]
    writes: list[Read] = [("HDEL", known["usage"], *some) for some in in_steps(over, AT_ONCE)]
    for some in in_steps(list(counted), AT_ONCE):
        writes.append(("HSET", known["usage"], *(word for name in some for word in (name, str(counted[name])))))
    writes.append(("HDEL", keys.person(pair.user)["user"], "stored"))  # makes the next write count it again
    anchor = known["usage"]
    shown = ", ".join(f"{name} {recorded.get(name, 'none')} instead of {counted.get(name, 0)}" for name in differ[:3])
    return [found("usage", anchor, f"it says {shown}", context.reader.mend(anchor, still, *writes))]
