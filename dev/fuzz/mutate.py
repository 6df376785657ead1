"""Mutations of a request: its framing, fields, cookies, address and bytes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from dev.fuzz import bodies
from dev.fuzz.messages import Message

Rng = random.Random
Mutation = Callable[[Message, Rng], Message]

LENGTHS = (b"0", b"-1", b"+5", b"5, 5", b"5, 6", b"0x5", b"1e1", b" ", b"", b"99999999999999999999", b"9" * 400, b"1_0")
CODINGS = (
    b"chunked",
    b"Chunked",
    b"gzip",
    b"gzip, chunked",
    b"chunked, chunked",
    b"identity",
    b"",
    b"chunked;q=1",
    b"cow",
)
VERSIONS = (b"HTTP/1.0", b"HTTP/1.2", b"HTTP/2.0", b"HTTP/0.9", b"http/1.1", b"HTTP/1.1 ", b"HTTP/11", b"", b"ICY/1.1")
METHODS = (
    b"GET",
    b"POST",
    b"PUT",
    b"DELETE",
    b"HEAD",
    b"OPTIONS",
    b"PATCH",
    b"TRACE",
    b"CONNECT",
    b"PRI",
    b"get",
    b"",
    b"G\0T",
)
NASTY = (
    b"\0", b"\r", b"\n", b"\r\n", b"\r\n\r\n", b"\t", b"\x0b", b"\x7f", b"\x80", b"\xff", b"\xc0\x80",
    b"\xed\xa0\x80", b"%00", b"%ff", b"%", b"%zz", b"%25", b"\xe2\x80\xae", b"'", b'"', b"\\", b"{", b"}", b"[",
    b"<x>", b"{{1}}", b"../", b";", b",", b"A" * 300, b"=" * 40, b"0", b"-1", b"\xef\xbb\xbf",
)  # fmt: skip
FIELDS = (
    (b"Expect", b"100-continue"),
    (b"Expect", b"a miracle"),
    (b"Upgrade", b"h2c"),
    (b"Connection", b"keep-alive, Upgrade, HTTP2-Settings"),
    (b"Content-Encoding", b"gzip"),
    (b"Accept-Encoding", b"gzip;q=0, *;q=nan"),
    (b"Accept", b"application/json"),
    (b"Accept", b"\xff" * 50),
    (b"Range", b"bytes=0-0,1-1,-1"),
    (b"If-None-Match", b"*"),
    (b"If-Modified-Since", b"Thu, 99 Foo 0000 99:99:99 GMT"),
    (b"X-Forwarded-For", b"::1, 256.1.1.1, \xff"),
    (b"X-Forwarded-Proto", b"gopher"),
    (b"X-Http-Method-Override", b"DELETE"),
    (b"Origin", b"null"),
    (b"Origin", b"http://localhost@evil.test"),
    (b"User-Agent", b"\xff\xfe" * 500),
    (b"User-Agent", b"Mozilla/5.0 (" + b"(" * 3000),
    (b"Accept-Language", b",;q=" * 500),
    (b"Trailer", b"Content-Length"),
    (b"TE", b"trailers"),
    (b"Host", b"evil.test"),
    (b"Host", b"localhost:99999"),
    (b"Host", b"[::1"),
    (b"Authorization", b"Bearer"),
    (b"Authorization", b"DPoP"),
    (b"DPoP", b"a.b.c"),
    (b"DPoP", b"e30.e30.\xff"),
    (b"Authorization", b"Basic =="),
    (b"Authorization", b"Basic \xff"),
    (b"Authorization", b"Bearer " + b"a" * 9000),
    (b"A", b"a\nA:" * 14_000),
    (b"Content-Type", b"application/json; charset=utf-7"),
    (b"Content-Type", b"multipart/form-data; boundary="),
    (b"Content-Type", b'multipart/form-data; boundary="'),
    (b"Content-Type", b"application/x-www-form-urlencoded; boundary=x"),
    (b"Content-Type", b"\xff/\xff"),
    (b"Idempotency-Key", b"k" * 256),
)
COOKIES = (
    b"a=b", b"=", b";;;", b"$Version=1", b'latchkey_session="\\303\\251"', b"latchkey_session=",
    b"latchkey_xsrf=2|0|0|0", b"latchkey_xsrf=2|zz|", b"latchkey_xsrf=9|1|1|1", b"latchkey_done=\xff",
    b"latchkey_session=" + b"A" * 5000, b'"', b"a=" + b"b;" * 2000, b"latchkey_half=lk_hs_AAAA",
    b"latchkey_challenge=\x01", b"latchkey_xsrf=" + b"f" * 32, b"latchkey_try=e30", b"latchkey_xsrf=2|1|1|\xd9\xa1",
)  # fmt: skip


def mutated(message: Message, rng: Rng) -> list[bytes]:
    """The request with one to three mutations, in the pieces to send."""
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        message = rng.choices(MUTATIONS, WEIGHTS)[0](message, rng)
    raw = rng.choices((whole, chunked, bytewise, headwise), (8, 3, 2, 3))[0](message, rng)
    kind = rng.randrange(12)
    if kind == 0:
        raw = raw[: rng.randrange(len(raw) + 1)]
    elif kind == 1:  # pipelined: followed by another, or by itself
        keep = raw.replace(b"Connection: close", b"Connection: keep-alive")
        return [keep * rng.randrange(1, 4) + raw]
    elif kind == 2:
        return pieces(raw, rng)
    elif kind == 3:
        raw += rng.choice((b"\r\n", b"\0", b"GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", b"x" * 5000, rng.randbytes(50)))
    return [raw]


def whole(message: Message, rng: Rng) -> bytes:
    """The message, unchanged."""
    return message.encoded()


def pieces(raw: bytes, rng: Rng) -> list[bytes]:
    """The message cut at random."""
    cuts = sorted(rng.randrange(len(raw) + 1) for _ in range(rng.randrange(1, 8)))
    return [raw[begin:end] for begin, end in zip([0, *cuts], [*cuts, len(raw)], strict=True) if begin < end]


def chunked(message: Message, rng: Rng) -> bytes:
    """The body in chunks, valid or not."""
    fields = tuple(one for one in message.fields if one[0].lower() != b"content-length")
    coded = replace(message, fields=(*fields, (b"Transfer-Encoding", b"chunked")), body=b"")
    sent = [coded.head()]
    for piece in pieces(message.body, rng) if message.body else []:
        size = b"%x" % len(piece)
        wrong = rng.randrange(40)
        if wrong == 0:
            size = rng.choice((b"-1", b"0x5", b"", b"g", b"f" * 16, b"7" * 30, b"5;a=b", b" 5", b"5 ", b"\xff"))
        end = rng.choice((b"\r\n", b"\n", b"", b"\r\n\r\n", b"xx")) if wrong == 1 else b"\r\n"
        sent.append(size + (b"\n" if wrong == 2 else b"\r\n") + piece + end)
    last = (
        b"0\r\n\r\n",
        b"0\r\n\r\n",
        b"0\r\n\r\n",
        b"0\r\nX-Trailer: a\r\n\r\n",
        b"0\r\n",
        b"",
        b"00000\r\n\r\n",
        b"0\n\n",
    )
    return b"".join(sent) + rng.choice(last)


def bytewise(message: Message, rng: Rng) -> bytes:
    """A few bytes changed, removed, inserted or repeated."""
    raw = bytearray(message.encoded())
    for _ in range(rng.randrange(1, 5)):
        at = rng.randrange(len(raw) + 1) if raw else 0
        until = min(len(raw), at + rng.randrange(1, 20))
        match rng.randrange(5):
            case 0 if at < len(raw):
                raw[at] ^= 1 << rng.randrange(8)
            case 1:
                raw[at:at] = rng.choice(NASTY)
            case 2:
                del raw[at:until]
            case 3:
                raw[at:at] = raw[at:until] * rng.randrange(1, 30)
            case _:
                raw[at:until] = rng.choice(NASTY)
    return bytes(raw)


def headwise(message: Message, rng: Rng) -> bytes:
    """The header lines: folded, with other line ends, reordered, or with stray spaces."""
    lines = message.head().split(b"\r\n")[:-2]
    at = rng.randrange(len(lines))
    end = b"\r\n"
    match rng.randrange(9):
        case 0:  # a folded field, RFC 9112 5.2
            middle = rng.randrange(len(lines[at]) + 1)
            lines[at] = lines[at][:middle] + rng.choice((b"\r\n ", b"\r\n\t", b"\n ", b"\r ")) + lines[at][middle:]
        case 1:
            end = rng.choice((b"\n", b"\r", b"\r\r\n", b"\n\r"))
        case 2:
            lines[at] = lines[at].replace(b":", rng.choice((b" :", b"\t:", b"", b"::", b":\0", b"\x0b:")), 1)
        case 3:
            lines.insert(
                at,
                rng.choice((b" ", b"\t", b":", b": x", b"nothing", b"a b: c", b"\xff: x", b"X" * 9000 + b": y", b"")),
            )
        case 4:
            lines += [b"X-%d: y" % number for number in range(rng.choice((90, 150, 250, 3000)))]
        case 5:
            lines += [b"X-Long: " + b"y" * rng.choice((8000, 65_000, 66_000, 200_000))]
        case 6:
            lines.append(lines[at])
        case 7:
            rng.shuffle(lines)
        case _:
            lines[0] = rng.choice((b"\r\n" * 5, b" ", b"\0", b"\x16\x03\x01\x02\0\x01", b"")) + lines[0]
    return end.join([*lines, b"", b""]) + message.body


def _length(message: Message, rng: Rng) -> Message:
    size = len(message.body)
    near = (size - 1, size + 1, size * 2, size + 10**6, 3 * 10**6)
    value = rng.choice(LENGTHS) if rng.randrange(2) else b"%d" % rng.choice(near)
    if rng.randrange(3):
        return message.with_field(b"Content-Length", value)
    return replace(message, fields=(*message.fields, (b"Content-Length", value)))


def _coding(message: Message, rng: Rng) -> Message:
    return replace(message, fields=(*message.fields, (b"Transfer-Encoding", rng.choice(CODINGS))))


def _line(message: Message, rng: Rng) -> Message:
    match rng.randrange(3):
        case 0:
            return replace(message, version=rng.choice(VERSIONS))
        case 1:
            return replace(message, method=rng.choice(METHODS))
        case _:
            prefix = rng.choice(
                (b"http://localhost", b"https://evil.test:0", b"//evil.test", b"*", b"http://[::1", b"\\")
            )
            return replace(message, target=prefix + message.target)


def _field(message: Message, rng: Rng) -> Message:
    fields = list(message.fields)
    at = rng.randrange(len(fields) or 1)
    match rng.randrange(4):
        case 0:
            return replace(message, fields=(*message.fields, rng.choice(FIELDS)))
        case 1:
            name, value = rng.choice(FIELDS)
            return message.with_field(name, value)
        case 2:
            del fields[at : at + 1]
        case _ if fields:
            name, value = fields[at]
            middle = rng.randrange(len(value) + 1)
            fields[at] = (name, value[:middle] + rng.choice(NASTY) + value[middle:])
    return replace(message, fields=tuple(fields))


def _cookie(message: Message, rng: Rng) -> Message:
    had = message.value(b"Cookie")
    crumbs = had.split(b"; ") if had else []
    match rng.randrange(4):
        case 0:
            crumbs.insert(rng.randrange(len(crumbs) + 1), rng.choice(COOKIES))
        case 1:
            crumbs += crumbs
        case 2 if crumbs:
            at = rng.randrange(len(crumbs))
            middle = rng.randrange(len(crumbs[at]) + 1)
            crumbs[at] = crumbs[at][:middle] + rng.choice(NASTY) + crumbs[at][middle:]
        case _:
            rng.shuffle(crumbs)
    return message.with_field(b"Cookie", rng.choice((b"; ", b"; ", b";", b", ", b" ; ")).join(crumbs))


def _target(message: Message, rng: Rng) -> Message:
    path, mark, query = message.target.partition(b"?")
    if query and rng.randrange(2):
        return replace(message, target=path + mark + bodies.form(query, rng))
    middle = rng.randrange(len(path) + 1)
    put = rng.choice(
        (*NASTY, b"/", b"//", b"/.", b"/..", b"%2e%2e%2f", b"%2F", b"?", b"#", b"%c0%af", b"\xc3\xbc", b"a" * 9000)
    )
    return replace(message, target=path[:middle] + put + path[middle:] + mark + query)


def _body(message: Message, rng: Rng) -> Message:
    kind = message.value(b"Content-Type").partition(b";")[0]
    change = bodies.BY_TYPE.get(kind, bodies.raw)
    return message.with_body(change(message.body, rng)) if message.body else _field(message, rng)


MUTATIONS: tuple[Mutation, ...] = (_length, _coding, _line, _field, _cookie, _target, _body)
WEIGHTS = (1, 1, 1, 2, 2, 2, 9)
