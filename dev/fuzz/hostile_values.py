"""Texts, JSON, CBOR, pictures and header fields that are made to cost their reader time. Each is under 64 KiB."""

from __future__ import annotations

import base64
import struct
import zlib

import cbor2

from dev.fuzz.corpus import BOUNDARY, XSRF

MOST = 60_000
"""Bytes of a text; leaves room for the rest of a request."""
SMALL = 12_000
"""The same for percent-encoded text."""

TEXTS: dict[str, str] = {
    "marks that are put in order": "a" + "\u0344" * 15_000 + "\u0323" * 14_000,
    "ligatures of 18 letters": "\ufdfa" * 20_000,
    "letters of Hangul": "\u1112\u1161\u11ab" * 6_600,
    "labels": "\u00fc." * 20_000,
    "an address of labels": "a@" + "\u00fc." * 20_000,
    "an address with a long name": "a" * 59_000 + "@example.com",
    "digits": "9" * MOST,
    "spaces": " " * MOST + "x",
    "a dollar and spaces": "$" + " " * MOST + "x",
    "lines": "\n" * MOST,
    "lines of addresses": "https://a.example/cb\n" * 2_800,
    "long paths": "".join(f"https://a.example/{number}/{'a/' * 950}\n" for number in range(20)),
    "long queries": "".join(f"https://a.example/{number}/?{'%2520&' * 49}{'a' * 1700}\n" for number in range(20)),
    "words": "a " * (MOST // 2),
    "dots": "a." * (MOST // 2),
    "segments": "/a" * (MOST // 2),
    "up and down": "/../a" * (MOST // 5),
    "backslashes": "\\" * MOST,
    "quotes": '"' * MOST,
    "angles": "<" * MOST,
    "hyphens": "-" * MOST,
    "slashes and quotes": "\\u0041" * (MOST // 6),
    "brackets": "[" * MOST,
    "objects": '{"a":' * (MOST // 5),
    "commas": "," * MOST,
    "an address in brackets": "https://[" + "0:" * (MOST // 2) + "]",
    "a scheme": "a." * (MOST // 2) + ":/x",
    "a token": "lk_at_" + "A" * MOST,
    "base64": "A" * MOST + "=",
    "scopes": "profile " * (MOST // 8) + "x",
}

DOCUMENTS: dict[str, bytes] = {
    "deep arrays": b"[" * 30_000 + b"]" * 30_000,
    "deep objects": b'{"a":' * 9_000 + b"1" + b"}" * 9_000,
    "shallow arrays": b"[" + b"[]," * 19_000 + b"[]]",
    "brackets in text": b'["' + b"[{" * 29_000 + b'"]',
    "a string without an end": b'["' + b"\\" * 59_999,
    "a string of escapes": b'["' + b"\\ud83d\\ude00" * 4_900 + b'"]',
    "surrogates": b'["' + b"\\ud83d" * 9_900 + b'"]',
    "a long number": b"9" * MOST,
    "a long fraction": b"0." + b"9" * MOST,
    "a large exponent": b"1e" + b"9" * MOST,
    "many numbers": b"[" + b"1e308," * 9_900 + b"1]",
    "many names": b"{" + b",".join(b'"%d":1' % number for number in range(6_000)) + b"}",
    "one name many times": b"{" + b'"a":1,' * 9_900 + b'"a":1}',
    "spaces": b" " * MOST + b"1",
}

WHOLE = 2**18
"""Bytes of a document, at most."""
_NESTED = (b'{"":[' * 95 + b"]}" * 95 + b",") * (WHOLE // 666 - 1)

LARGE: dict[str, bytes] = {
    "deep arrays": b"[" + (b"[" * 190 + b"]" * 190 + b",") * (WHOLE // 381 - 1) + b"1]",
    "a pair of surrogates": b"[" + _NESTED + b'"\\ud83d\\ude00"]',
    "half a pair": b"[" + _NESTED + b'"\\ud800"]',
    "objects and a large number": b"[" + b'{"":1},' * (WHOLE // 7 - 2) + b"1e999]",
    "many numbers": b"[" + b"1," * (WHOLE // 2 - 10) + b"1e999]",
    # The page of a document lays out half as much.
    "half as many numbers": b"[" + b"1," * (WHOLE // 4 - 10) + b"1]",
    "many empty lists": b"[" + b"[]," * (WHOLE // 7) + b"[]]",
    "many signs": b'["' + b"<" * (WHOLE // 2 - 10) + b'"]',
}


def cbor() -> dict[str, bytes]:
    """CBOR values that a passkey could send."""
    pattern = "".join(f"[{chr(0x100 + number)}-{chr(0x3000 + number)}\\d\\W]" for number in range(1_300))
    tagged = cbor2.CBORTag(35, pattern)
    return {
        "a regular expression": cbor2.dumps(tagged),
        "one next to the statement": cbor2.dumps({"fmt": "none", "attStmt": {}, "authData": bytes(37), "x": tagged}),
        "a large number": b"\xc2\x59\x7f\xff" + b"\xff" * 0x7FFF,
        "a fraction": cbor2.dumps(cbor2.CBORTag(30, [1, 2**20_000])),
        "a date": cbor2.dumps(cbor2.CBORTag(0, "2" * 20_000)),
        "deep tags": b"\xd8\x1c" * 15_000,
        "deep arrays": b"\x81" * 30_000,
        "many keys": b"\xb9\x20\x00" + b"".join(b"\x19" + struct.pack(">H", key) + b"\x00" for key in range(0x2000)),
        "an endless array": b"\x9f" + b"\x00" * 30_000,
        "certificates": cbor2.dumps({"fmt": "packed", "attStmt": {"x5c": [bytes(900)] * 30}, "authData": bytes(37)}),
    }


def uploads() -> dict[str, bytes]:
    """Forms with a picture or other parts."""
    files = {
        "a large PNG": png(4_000, 4_000),
        "a PNG as large as may be": png(2_040, 2_040),
        "text in a PNG": png(60, 60, [chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(10**6)))] * 40),
        "a profile in a PNG": png(60, 60, [chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(10**7)))]),
        "many chunks in a PNG": png(60, 60, [chunk(b"tEXt", b"a\0b")] * 3_000),
        "facts in a PNG": png(60, 60, [chunk(b"eXIf", _facts(4_000))]),
        "comments in a GIF": b"GIF89a\x3c\0\x3c\0\0\0\0" + b"!\xfe\x01a\0" * 11_000,
        "markers in a JPEG": b"\xff\xd8" + b"\xff\xfe\0\3a" * 11_000,
        "filling in a JPEG": b"\xff\xd8" + b"\xff" * 55_000,
        "nothing": b"x" * 55_000,
    }
    part = b'--%s\r\nContent-Disposition: form-data; name="%s"\r\n\r\n%s\r\n'
    edge = BOUNDARY.encode()
    end = b"--" + edge + b"--\r\n"
    token = part % (edge, b"_xsrf", XSRF.encode())
    return {what: token + _file(file) + end for what, file in files.items()} | {
        "many parts": token + part % (edge, b"a", b"") * 700 + end,
        "many edges": token + (b"--" + edge + b"\r\n") * 3_000 + end,
        "many fields in a part": token + b"--" + edge + b"\r\n" + b"A: b\r\n" * 9_000 + b"\r\nx\r\n" + end,
        "a long field in a part": part % (edge, b"a;" * 27_000, b"x") + end,
        "a long name of a file": part % (edge, b'a"; filename*="' + b"utf-8''%41" * 5_000, b"x") + end,
        "quotes in a name": part % (edge, b'\\"' * 27_000, b"x") + end,
    }


def fields() -> dict[str, dict[str, str]]:
    """Values of request fields, by field name."""
    basic = base64.b64encode(b"a:" + b"%41" * 14_000).decode()
    return {
        "Cookie": {
            "many": "; ".join(f"a{number}=b" for number in range(5_000)),
            "one name many times": "latchkey_session=a; " * 3_000,
            "a long one": "latchkey_session=" + "a" * MOST,
            "quoted": 'latchkey_session="' + "\\303\\251" * 7_000 + '"',
            "backslashes": 'latchkey_session="' + "\\" * 55_000 + '"',
            "semicolons": ";" * MOST,
            "equals": "=" * MOST,
            "a token of Tornado's": "latchkey_xsrf=2|" + "f" * 55_000 + "|" + "f" * 4_000 + "|1",
            "digits": "latchkey_xsrf=2|1|" + "f" * 32 + "|" + "9" * 50_000,
            "what was done": "latchkey_done=" + "a" * MOST,
        },
        "Accept": {"many": "text/html;q=0.1," * 3_500, "stars": "*" * MOST},
        "Accept-Language": {
            "many": "de;q=0.1," * 6_500,
            "digits": "de;q=" + "9" * MOST,
            "hyphens": "de" + "-a" * 25_000,
        },
        "Accept-Encoding": {"many": "gzip;q=0.1," * 5_000},
        "User-Agent": {
            "brackets": "Mozilla/5.0 (" + "(" * MOST,
            "words": "Edg OPR Chrom " * 4_000,
            "spaces": "a" + " " * MOST + "b",
        },
        "Authorization": {
            "a bearer": "Bearer lk_at_" + "A" * MOST,
            "a session": "Bearer lk_se_" + "-" * MOST,
            "Basic": f"Basic {basic}",
            "equals": "Basic " + "=" * MOST,
            "spaces": "Bearer" + " " * MOST + "a",
        },
        "DPoP": {"dots": "." * MOST, "three parts": "a" * 18_000 + "." + "a" * 18_000 + "." + "a" * 18_000},
        "Content-Type": {
            "parameters": "application/x-www-form-urlencoded;" + "a=b;" * 13_000,
            "an edge": "multipart/form-data; boundary=" + "-" * 55_000,
            "edges": "multipart/form-data;" + " boundary=;" * 5_000,
        },
        "If-Match": {"many": '"1",' * 14_000, "commas": "," * MOST, "digits": '"' + "9" * MOST + '"'},
        "If-None-Match": {"many": '"1",' * 14_000},
        "If-Modified-Since": {"digits": "9" * MOST, "words": "Mon, " * 12_000},
        "Range": {"many": "bytes=" + "0-0," * 14_000, "digits": "bytes=" + "9" * 55_000 + "-"},
        "Host": {"dots": "a." * 29_000, "digits": "a:" + "9" * MOST, "brackets": "[" + "0:" * 29_000 + "]"},
        "Origin": {"dots": "http://" + "a." * 29_000},
        "Referer": {"segments": "http://a/" + "a/" * 29_000},
        "X-Forwarded-For": {"many": "10.0.0.1, " * 5_500, "proxies": "::1" + ",::1" * 14_900, "colons": ":" * MOST},
        "X-Request-Id": {"long": "a" * MOST},
        "Traceparent": {"long": "00-" + "0" * MOST, "zeros": f"00-{'0' * 31}1-{'0' * 15}1-01" + "-" + "a" * 50_000},
        "Tracestate": {"many": "a=b," * 14_000, "long": "a=" + "b" * MOST},
        "Idempotency-Key": {"long": "a" * MOST},
        "Content-Length": {"digits": "1" * 4_000},
        "X-Xsrftoken": {"long": "2|" + "f" * 55_000 + "|1|1"},
        "A": {"lines that end in LF alone": "a\nA:" * 14_000},
        "Sec-Fetch-Site": {"long": "a" * MOST},
    }


def chunk(kind: bytes, data: bytes) -> bytes:
    """A PNG chunk."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, more: list[bytes] | None = None) -> bytes:
    """A transparent PNG of one colour, with extra chunks at its beginning."""
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 6, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes((1 + 4 * width) * height), 9))
    return b"\x89PNG\r\n\x1a\n" + head + b"".join(more or []) + pixels + chunk(b"IEND", b"")


def _facts(entries: int) -> bytes:
    """An Exif directory whose entries all have the same bytes."""
    one = [struct.pack("<HHII", number, 7, 8_000, 8) for number in range(entries)]
    return b"II*\0\x08\0\0\0" + struct.pack("<H", entries) + b"".join(one) + bytes(4)


def _file(file: bytes) -> bytes:
    head = b'Content-Disposition: form-data; name="picture"; filename="a.png"\r\nContent-Type: image/png\r\n\r\n'
    return b"--" + BOUNDARY.encode() + b"\r\n" + head + file + b"\r\n"
