"""Pictures as people upload them, harmless and hostile."""

from __future__ import annotations

import random
import struct
import zlib
from io import BytesIO
from typing import Any

from PIL import Image

RED, BLUE = (200, 30, 30), (30, 30, 200)


def drawn(form: str = "PNG", size: tuple[int, int] = (60, 40), colour: tuple[int, ...] = RED, **options: Any) -> bytes:
    """A picture of one colour."""
    return saved(Image.new("RGBA" if len(colour) == 4 else "RGB", size, colour), form, **options)


def saved(image: Image.Image, form: str, **options: Any) -> bytes:
    out = BytesIO()
    image.save(out, form, **options)
    return out.getvalue()


def halves(form: str = "JPEG", **options: Any) -> bytes:
    """A picture that is red on the left and blue on the right."""
    image = Image.new("RGB", (100, 100), RED)
    image.paste(BLUE, (50, 0, 100, 100))
    return saved(image, form, **options)


def noise(side: int = 512) -> Image.Image:
    """A picture that no encoder makes small."""
    return Image.frombytes("RGBA", (side, side), random.Random(7).randbytes(4 * side * side))


def animated(form: str) -> bytes:
    """Two frames: a red one, then a blue one."""
    frames = [Image.new("RGB", (40, 40), colour) for colour in (RED, BLUE)]
    return saved(frames[0], form, save_all=True, append_images=frames[1:], duration=100)


def chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">L", len(data)) + kind + data + struct.pack(">L", zlib.crc32(kind + data))


def png(size: tuple[int, int], depth: int, colour: int, *, interlaced: bool = False) -> bytes:
    """A PNG of one colour, `depth` bits per channel, with the slowest filter (Paeth) on every row."""
    bits = depth * {0: 1, 2: 3, 4: 2, 6: 4}[colour]
    passes = ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2))
    rows = b""
    for left, top, across, down in passes if interlaced else ((0, 0, 1, 1),):
        width, height = -(-(size[0] - left) // across), -(-(size[1] - top) // down)
        rows += (b"\4" + bytes(-(-width * bits // 8))) * height
    head = chunk(b"IHDR", struct.pack(">LLBBBBB", *size, depth, colour, 0, 0, interlaced))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(rows, 9)) + chunk(b"IEND", b"")


def png_bomb(width: int, height: int) -> bytes:
    """A small valid file that declares these dimensions."""
    head = chunk(b"IHDR", struct.pack(">LLBBBBB", width, height, 8, 6, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", zlib.compress(bytes(2**20))) + chunk(b"IEND", b"")


def webp_bomb(width: int = 16383, height: int = 16383) -> bytes:
    """A WebP with a canvas larger than any use needs."""
    body = b"VP8X" + struct.pack("<L", 10) + bytes(4)
    body += (width - 1).to_bytes(3, "little") + (height - 1).to_bytes(3, "little")
    body += drawn("WEBP", (8, 8))[12:]
    return b"RIFF" + struct.pack("<L", len(body) + 4) + b"WEBP" + body


def apart(size: tuple[int, int]) -> bytes:
    """A baseline JPEG whose first scan claims to hold only one colour."""
    file = drawn("JPEG", size, subsampling=0)
    at = file.index(b"\xff\xda")
    return file[: at + 4] + b"\x01\x01\x00\x00\x3f\x00" + file[at + 14 :]


def many_scans(scans: int, size: tuple[int, int] = (64, 64)) -> bytes:
    """A progressive JPEG that repeats its last scan again and again."""
    file = drawn("JPEG", size, progressive=True)
    last = file.rindex(b"\xff\xda")
    return file[:last] + file[last:-2] * scans + b"\xff\xd9"
