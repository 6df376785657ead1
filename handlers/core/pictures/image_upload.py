"""Uploaded pictures and logos: decoded, cut or fitted, and re-encoded, so that no byte of the file is published.

Every file may be hostile. The size in pixels is read before anything is decoded. A thread decodes one file at a time,
and every error in it means that the file is no picture.
"""

from __future__ import annotations

import asyncio
import warnings
from concurrent.futures import ThreadPoolExecutor
from io import BytesIO

from PIL import Image, ImageOps, PngImagePlugin, WebPImagePlugin  # noqa: F401  # else Pillow loads all to read WebP

from store.phrases import Phrase
from store.refused import Refused

SIDE = 256
"""Width and height of a finished picture, in pixels."""
MOST_BYTES = 64 * 1024
MOST_UPLOAD = 5 * 2**20
LOGO_SIDE = 192
"""The same for a finished logo of an app. It is shown at a quarter of that, and twice as large on dense screens."""
MOST_LOGO_BYTES = 32 * 1024
MOST_LOGO = 2**20
LOGO_FORMS = ("JPEG", "PNG", "WEBP")
ROOM = 4
"""Uploads in progress in one process, from the first byte to the finished picture."""

# Decoding these takes up to about 150 MB. A JPEG is decoded at a fraction of its size, so it may be as large as phones
# make them. 9 million pixels are a screenshot of a 4K display.
MOST_PIXELS = {"JPEG": 50_000_000, "PNG": 9_000_000, "WEBP": 9_000_000, "GIF": 9_000_000}
MOST_SIDE = 20_000
"""Pixels in width or height, enough for a panorama. Rows of one pixel take more time than their number suggests."""
# Decoding time grows with the inflated and the decoded bytes, some 5 ns for each. A file of few colours inflates to
# thousands of times its size, so only a small inflated size is allowed for any file. A logo of 2000 by 2000 pixels with
# transparency fits, and 64 KiB are decoded in less than 200 ms. Screenshots and photographs inflate 4 to 120 times.
WORK_IN_ANY = 2**25
WORK_PER_BYTE = 128
# Pillow reads the parts of a file one by one, in Python. Cameras write some 30 segments before the first scan of a
# JPEG, and encoders put at least 8 KiB of pixels into each chunk of a PNG.
MOST_SEGMENTS = 1000
MOST_CHUNKS = 2000
MOST_EXIF = 2**16
"""Bytes of the camera's metadata, the most that a JPEG can hold. Larger metadata is ignored."""
# A very wide or very high JPEG is decoded at a larger fraction of its size.
MOST_DRAFTED = 9_000_000
# A JPEG with several scans is held in memory at full size, two bytes for each coefficient. There are as many
# coefficients for a pixel as colours, or fewer if colours are sampled more coarsely. Each scan is a pass over the
# picture. Programs that make such files use about ten.
MOST_COEFFICIENTS = 48_000_000
MOST_SCANS = 100
MOST_PASSED = 500_000_000
PASSED_IN_ANY = 40_000_000
PASSED_PER_BYTE = 256
"""The limits on pixels times scans: in all, for any file, and for each byte of a larger file."""
_START_OF_SCAN = b"\xff\xda"
_FRAMES = {0xC0, 0xC1, 0xC2, 0xC3, 0xC5, 0xC6, 0xC7, 0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF}
_PROGRESSIVE = {0xC2, 0xC6, 0xCA, 0xCE}
_ORIENTATION = 0x0112
_TURNS = {
    2: (Image.Transpose.FLIP_LEFT_RIGHT,),
    3: (Image.Transpose.ROTATE_180,),
    4: (Image.Transpose.FLIP_TOP_BOTTOM,),
    5: (Image.Transpose.TRANSPOSE,),
    6: (Image.Transpose.ROTATE_270,),
    7: (Image.Transpose.TRANSVERSE,),
    8: (Image.Transpose.ROTATE_90,),
}
_SIDEWAYS = frozenset(turn for number in (5, 6, 7, 8) for turn in _TURNS[number])

# Odd files must not fill our log with warnings.
warnings.filterwarnings("ignore", module=r"PIL\b")
# Pillow's own limit warns, and refuses at twice that size. Ours applies before Pillow decodes.
Image.MAX_IMAGE_PIXELS = None
# Compressed text in a PNG, which nobody reads. By default Pillow inflates 64 MiB of it.
PngImagePlugin.MAX_TEXT_MEMORY = 2 * 2**20


class ImageUpload:
    """Makes pictures from uploads, in one thread."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(1, "latchkey-picture")
        self._inside: set[str] = set()

    def enter(self, user: str) -> None:
        """Takes a place for a person; each person may have one. Raises Refused("temporarily_unavailable")."""
        if user in self._inside:
            raise Refused(
                "temporarily_unavailable",
                Phrase("Your previous picture is still uploading. Try again in a moment."),
                retry_after=5,
            )
        if len(self._inside) >= ROOM:
            raise Refused(
                "temporarily_unavailable",
                Phrase("Too many pictures are uploading right now. Try again in a moment."),
                retry_after=5,
            )
        self._inside.add(user)

    def leave(self, user: str) -> None:
        """Frees the person's place."""
        self._inside.remove(user)

    async def make(self, file: bytes) -> bytes:
        """The picture as WebP, at most MOST_BYTES. Raises Refused("invalid_request") with a reason for people."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, picture_of, file)

    async def make_logo(self, file: bytes) -> bytes:
        """The logo of an app, as `app_logo_of`."""
        return await asyncio.get_running_loop().run_in_executor(self._executor, app_logo_of, file)


def picture_of(file: bytes) -> bytes:
    """Does the work of `ImageUpload.make`, in this thread."""
    return _encoded(decoded(file, (SIDE, SIDE), cut=True))


def app_logo_of(file: bytes) -> bytes:
    """The logo of an app as WebP, at most MOST_LOGO_BYTES, without losses if it is small enough. Raises
    Refused("invalid_request") with a reason for people."""
    image = decoded(file, (LOGO_SIDE, LOGO_SIDE), cut=True, forms=LOGO_FORMS)
    out = BytesIO()
    image.save(out, "WEBP", lossless=True)
    return out.getvalue() if out.tell() <= MOST_LOGO_BYTES else _encoded(image, MOST_LOGO_BYTES)


def decoded(
    file: bytes, box: tuple[int, int], *, cut: bool = False, forms: tuple[str, ...] = tuple(MOST_PIXELS)
) -> Image.Image:
    """The pixels of the first frame, right way up: with `cut` its middle, which fills the box of this width and height;
    else all of it, made smaller until it fits. `forms`: the formats that are read. Raises Refused("invalid_request")
    with a reason for people."""
    try:
        return _decoded(file, box, cut, forms)
    except Refused:
        raise
    except Exception:  # decoders raise any exception for a broken file
        raise Refused("invalid_request", _UNREADABLE if "GIF" in forms else _NO_LOGO) from None


def _shaped(image: Image.Image, box: tuple[int, int], cut: bool) -> Image.Image:
    if cut:
        return ImageOps.fit(image, box, Image.Resampling.LANCZOS)
    share = min(1.0, box[0] / image.width, box[1] / image.height)
    width, height = (max(1, round(side * share)) for side in image.size)
    return image if share == 1.0 else image.resize((width, height), Image.Resampling.LANCZOS)


def _decoded(file: bytes, box: tuple[int, int], cut: bool, forms: tuple[str, ...]) -> Image.Image:
    if file[8:12] == b"WEBP" and _canvas(file) > MOST_PIXELS["WEBP"]:  # Pillow allocates memory when it opens one
        raise Refused("invalid_request", _TOO_LARGE)
    if _parts(file):
        raise Refused("invalid_request", _STRANGE)
    with Image.open(BytesIO(file), formats=forms) as image:
        # Many phones append a second picture to the first, which Pillow calls MPO.
        form = "JPEG" if image.format == "MPO" else image.format or ""
        if max(image.size) > MOST_SIDE or image.width * image.height > MOST_PIXELS[form]:
            raise Refused("invalid_request", _TOO_LARGE)
        if form == "JPEG":
            _check_scans(file, image.width * image.height)
        elif _work(file, form, image) > max(WORK_IN_ANY, WORK_PER_BYTE * len(file)):
            raise Refused("invalid_request", _TOO_LARGE)
        turns = _TURNS.get(_orientation(image), ())
        image.draft("RGB", (2 * max(box), 2 * max(box)))
        if form == "JPEG" and image.width * image.height > MOST_DRAFTED:
            raise Refused("invalid_request", _TOO_LARGE)
        mode = "RGBA" if _transparent(image) else "RGB"
        pixels = image if image.mode == mode else image.convert(mode)  # convert() always copies
        # Reduce by whole steps first, which takes a tenth of the time.
        pixels = pixels.reduce(max(1, min(pixels.size) // (2 * max(box))))
        pixels = _shaped(pixels, box[::-1] if _SIDEWAYS.intersection(turns) else box, cut)
    for turn in turns:
        pixels = pixels.transpose(turn)
    # Save only the pixels: no profile, comment or location is kept.
    return Image.frombytes(pixels.mode, pixels.size, pixels.tobytes())


def _parts(file: bytes) -> bool:
    """Whether a JPEG or PNG has too many parts, or more than two colour profiles, because each is inflated."""
    parts, profiles = 0, 0
    if file[:2] == b"\xff\xd8":
        at = 2
        while at + 4 <= len(file) and file[at + 1] != 0xDA and parts <= MOST_SEGMENTS:
            between = file[at] != 0xFF or file[at + 1] == 0xFF
            bare = file[at + 1] in (0x00, 0x01) or 0xD0 <= file[at + 1] <= 0xD8
            at += 1 if between else 2 if bare else 2 + int.from_bytes(file[at + 2 : at + 4], "big")
            parts += 1
        return parts > MOST_SEGMENTS
    if file[:4] == b"\x89PNG":
        at = 8
        while file[at + 4 : at + 8] not in (b"", b"IEND") and parts <= MOST_CHUNKS:
            parts, profiles = parts + 1, profiles + (file[at + 4 : at + 8] == b"iCCP")
            at += 12 + int.from_bytes(file[at : at + 4], "big")
    return parts > MOST_CHUNKS or profiles > 2


def _transparent(image: Image.Image) -> bool:
    return image.mode in ("RGBA", "LA", "PA") or "transparency" in image.info


def _work(file: bytes, form: str, image: Image.Image) -> int:
    """The inflated and the decoded bytes of a picture that is no JPEG."""
    bits = {"GIF": 8, "WEBP": 32}.get(form, 0)
    if form == "PNG":  # PNG, third edition, 11.2.1: bits a channel, and channels of a colour type
        bits = file[24] * {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[file[25]]
    return image.width * image.height * (bits + 8 * (4 if _transparent(image) else 3)) // 8


def _check_scans(file: bytes, pixels: int) -> None:
    """Refuses a JPEG whose scans take too much memory or time. (ITU T.81 B.2)"""
    scans = file.count(_START_OF_SCAN)
    coefficients, several = _frame(file, pixels)
    if several and coefficients > MOST_COEFFICIENTS:
        raise Refused("invalid_request", _TOO_LARGE)
    most = min(MOST_PASSED, max(PASSED_IN_ANY, PASSED_PER_BYTE * len(file)))
    if scans > MOST_SCANS or (several and scans * pixels > most):
        raise Refused("invalid_request", _STRANGE)


def _frame(file: bytes, pixels: int) -> tuple[int, bool]:
    """The coefficients of a JPEG, and whether it has several scans: it is progressive, or the first scan lacks a
    colour."""
    at, coefficients, colours, progressive = 2, 0, 0, False
    while at + 4 <= len(file):
        marker, length = file[at + 1], int.from_bytes(file[at + 2 : at + 4], "big")
        if file[at] != 0xFF or marker == 0xFF:  # skips bytes between segments, as decoders do
            at += 1
        elif marker == 0xDA:
            return coefficients, progressive or file[at + 4] < colours
        elif marker in _FRAMES:
            colours = file[at + 9]
            factors = [divmod(file[at + 11 + 3 * colour], 16) for colour in range(colours)]
            widest, highest = max(h for h, _ in factors), max(v for _, v in factors)
            coefficients = pixels * sum(h * v for h, v in factors) // (widest * highest)
            progressive = marker in _PROGRESSIVE
            at += 2 + length
        elif marker in (0x00, 0x01) or 0xD0 <= marker <= 0xD8:
            at += 2
        else:
            at += 2 + length
    return coefficients, progressive


def _orientation(image: Image.Image) -> int:
    """How the picture is rotated (Exif 2.3, 4.6.4); 1, upright, if that cannot be read."""
    try:
        return 1 if len(image.info.get("exif", b"")) > MOST_EXIF else int(image.getexif().get(_ORIENTATION, 1))
    except Exception:  # as above
        return 1


def _canvas(file: bytes) -> int:
    """The pixels of a WebP, from its first chunk; 0 if that has no size. RFC 9649 2.5 to 2.7."""
    kind, head = file[12:16], file[20:30]
    if len(head) < 10:
        return 0
    if kind == b"VP8X":
        return (int.from_bytes(head[4:7], "little") + 1) * (int.from_bytes(head[7:10], "little") + 1)
    if kind == b"VP8L":
        bits = int.from_bytes(head[1:5], "little")
        return ((bits & 0x3FFF) + 1) * ((bits >> 14 & 0x3FFF) + 1)
    return (int.from_bytes(head[6:8], "little") & 0x3FFF) * (int.from_bytes(head[8:10], "little") & 0x3FFF)


def _encoded(image: Image.Image, most: int = MOST_BYTES) -> bytes:
    """The picture as WebP, at the best quality that is small enough."""
    for quality in (82, 60, 30, 5):
        out = BytesIO()
        image.save(out, "WEBP", quality=quality, alpha_quality=quality)
        if out.tell() <= most:
            break
    return out.getvalue()


_UNREADABLE = Phrase("We can't read that file as a picture. Choose a JPEG, PNG, WebP or GIF.")
_NO_LOGO = Phrase("We can't read that file as a picture. Choose a PNG, JPEG or WebP.")
_STRANGE = Phrase("We couldn’t read that picture. Save it again as JPEG or PNG and retry.")
_TOO_LARGE = Phrase("That picture has too many pixels. Make it smaller and try again.")
