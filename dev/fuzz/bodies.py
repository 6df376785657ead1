"""Mutations of a body: JSON, forms, multipart."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from copy import deepcopy
from typing import Any

Rng = random.Random

SCALARS = (
    *(
        b"null",
        b"true",
        b"0",
        b"-0",
        b"-1",
        b"1e999",
        b"-1e-999",
        b"1" * 400,
        b"9" * 5000,
        b"0.1e1",
        b"1E+2",
        b"01",
        b"+1",
    ),
    *(b"NaN", b"-Infinity", b"Infinity", b".5", b"1.", b"0x10", b"9007199254740993", b"18446744073709551616", b"1.0"),
    *(
        b'""',
        b'"\\ud800"',
        b'"\\udc00\\ud800"',
        b'"\\u0000"',
        b'"\x00"',
        b'"\xff"',
        b'"\xed\xa0\x80"',
        b'"\xf5\x80\x80\x80"',
    ),
    *(b'"\\x"', b'"\\u12"', b'"', b"'a'", b'"\t"', b'"' + b"a" * 70_000 + b'"', b'"\xe2\x80\xae"', b"", b"undefined"),
    *(b"[]", b"{}", b"[1,]", b"{,}", b'{"a"}', b'{"a":}', b"[", b"{", b"[[]", b"[]]", b'{"":""}', b'{"a":1,"a":2}'),
    *(b"{1:2}", b'{"__proto__":{}}', b"/**/1", b"1 2", b"\xef\xbb\xbf1"),
)
DEPTHS = (3, 190, 201, 990, 5_000, 30_000)
VALUES: tuple[Any, ...] = (
    None, True, False, 0, -1, 2**31, 2**53 + 1, 2**64, 10**30, 1.5, -0.0, "", "a", "\0", "\ud800", "\u202e",
    "é" * 300, [], {}, [None], {"a": []}, "null", "[]", "{}", "9", "lk_at_", "a b", " ", "\n",
)  # fmt: skip


def json_text(body: bytes, rng: Rng) -> bytes:
    """JSON with another value somewhere, a value spelled differently, or no JSON at all."""
    try:
        value = json.loads(body)
    except (ValueError, RecursionError):
        return raw(body, rng)
    match rng.randrange(6):
        case 0 | 1:
            return json.dumps(_changed(value, rng)).encode("utf-8", "surrogatepass")
        case 2:  # a spelling that no library writes
            marked = json.dumps(_replaced(value, "@@", rng)).encode()
            return marked.replace(b'"@@"', rng.choice(SCALARS), 1)
        case 3:
            opening, closing = rng.choice(((b"[", b"]"), (b'{"a":', b"}"), (b'[{"a":', b"}]")))
            depth = rng.choice(DEPTHS)
            deep = opening * depth + b"1" + closing * rng.choice((depth, depth, depth, depth - 1, 0))
            return (
                json.dumps(_replaced(value, "@@", rng)).encode().replace(b'"@@"', deep, 1) if rng.randrange(2) else deep
            )
        case 4:  # a name twice
            name = rng.choice(list(value)) if isinstance(value, dict) and value else "a"
            inner = json.dumps(value)[1:-1]
            return f"{{{json.dumps(name)}: {json.dumps(rng.choice(VALUES))}, {inner}}}".encode("utf-8", "surrogatepass")
        case _:
            return rng.choice(
                (
                    json.dumps(value).encode("utf-16"),
                    b"\xef\xbb\xbf" + body,
                    body + body,
                    b"",
                    b" " * 70_000,
                    raw(body, rng),
                )
            )


def _places(value: Any, found: list[tuple[Any, Any]]) -> list[tuple[Any, Any]]:
    inside = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in inside:
        found.append((value, key))
        _places(inner, found)
    return found


def _replaced(value: Any, by: Any, rng: Rng) -> Any:
    """The value with another one at a random place."""
    holder = [json.loads(json.dumps(value))]
    inside, key = rng.choice(_places(holder, []))
    inside[key] = by
    return holder[0]


def _changed(value: Any, rng: Rng) -> Any:
    # A copy, since what follows changes it: the values of later mutants stay the same.
    copy = _replaced(value, deepcopy(rng.choice(VALUES)), rng)
    if isinstance(copy, dict) and rng.randrange(3) == 0:
        copy[rng.choice(("x" * 3000, "", "\0", "\ud800", "scope:x", "client_secret", "stream", "spend_limit"))] = (
            rng.choice(VALUES)
        )
    if isinstance(copy, dict) and copy and rng.randrange(3) == 0:
        del copy[rng.choice(list(copy))]
    return copy


PUT = (
    b"%00", b"%ff", b"%", b"%f", b"%zz", b"+", b"%2B", b";", b"&", b"&&&", b"=", b"%26", b"%3D", b"\0", b"\xff",
    b"%ed%a0%80", b"%c0%80", b"%u0041", b"\r\n", b"%0d%0a", b"a" * 70_000, b"%F0%9F%98%80", b"[]", b"%5B%5D",
    b"9" * 400,
)  # fmt: skip


def form(body: bytes, rng: Rng) -> bytes:
    """A form or query with a repeated, nameless, empty or badly encoded field."""
    fields = body.split(b"&")
    at = rng.randrange(len(fields))
    name, _, value = fields[at].partition(b"=")
    match rng.randrange(8):
        case 0:
            fields.insert(rng.randrange(len(fields) + 1), fields[at])
        case 1:
            fields.insert(at, name + b"=" + rng.choice(PUT))
        case 2:
            del fields[at]
        case 3:
            fields[at] = name
        case 4:
            fields[at] = b"=" + value
        case 5:
            fields += [b"f%d=v" % number for number in range(rng.choice((10, 1_000, 9_000)))]
        case _:
            middle = rng.randrange(len(fields[at]) + 1)
            fields[at] = fields[at][:middle] + rng.choice(PUT) + fields[at][middle:]
    return rng.choice((b"&", b"&", b"&", b"&", b";", b"&&")).join(fields)


def multipart(body: bytes, rng: Rng) -> bytes:
    """Parts with changed boundaries, names and headers."""
    boundary = body.split(b"\r\n", 1)[0]
    if not boundary:
        return raw(body, rng)
    parts = body.split(boundary)
    at = rng.randrange(len(parts))
    match rng.randrange(9):
        case 0:
            return body[: rng.randrange(len(body))]
        case 1:
            parts.insert(at, parts[rng.randrange(len(parts))])
        case 2:
            parts[at] = parts[at].replace(b"\r\n", rng.choice((b"\n", b"", b"\r", b"\r\n\r\n", b"\0")))
        case 3:
            names = (
                b'name=""',
                b"name=",
                b'name="\xff\xfe"',
                b'name="a\r\nb"',
                b"name*=utf-8''%ff",
                b'name="_xsrf"',
                b"",
                b'name="' + b"n" * 9000 + b'"',
                b"name=picture; name=x",
                b'filename*=""',
            )
            parts[at] = parts[at].replace(b'name="picture"', rng.choice(names))
        case 4:
            heads = (
                b"Content-Disposition: form-data",
                b"Content-Disposition:",
                b"Content-Disposition: attachment; name=picture",
                b"X" * 20_000,
                b":",
                b"",
                b'Content-Disposition: form-data; name=picture; filename="=?utf-8?b?/w==?="',
                b"Content-Disposition : form-data; name=picture",
            )
            parts[at] = b"\r\n" + rng.choice(heads) + b"\r\n\r\nx\r\n"
        case 5:
            parts[at:at] = [b'\r\nContent-Disposition: form-data; name="p"\r\n\r\nv\r\n'] * rng.choice(
                (5, 90, 150, 3_000)
            )
        case 6:
            return body.replace(boundary, rng.choice((boundary[2:], boundary + b" ", b"--", b"")))
        case 7:
            parts[at] = parts[at].replace(
                b"image/png", rng.choice((b"text/plain; charset=utf-7", b"multipart/mixed; boundary=x", b""))
            )
        case _:
            return raw(body, rng)
    return boundary.join(parts)


def raw(body: bytes, rng: Rng) -> bytes:
    """Bytes of another kind."""
    changed = bytearray(body)
    for _ in range(rng.randrange(1, 6)):
        at = rng.randrange(len(changed) + 1)
        match rng.randrange(4):
            case 0 if at < len(changed):
                changed[at] = rng.randrange(256)
            case 1:
                changed[at:at] = rng.randbytes(rng.randrange(1, 9))
            case 2:
                del changed[at : at + rng.randrange(1, 30)]
            case _:
                changed[at:at] = changed[at : at + 20] * rng.randrange(1, 9)
    return bytes(changed)


BY_TYPE: dict[bytes, Callable[[bytes, Rng], bytes]] = {
    b"application/json": json_text,
    b"application/x-www-form-urlencoded": form,
    b"multipart/form-data": multipart,
}
