"""Uploaded pictures become a small square picture or a refusal; the file itself is never kept."""

from __future__ import annotations

import subprocess
import sys
import zlib
from collections.abc import Callable
from io import BytesIO
from time import process_time

import pytest
from PIL import Image, ImageDraw, PngImagePlugin

from dev.fuzz.cost import THREADS
from handlers.core.pictures.image_upload import (
    MOST_BYTES,
    MOST_PIXELS,
    MOST_UPLOAD,
    ROOM,
    SIDE,
    ImageUpload,
    picture_of,
)
from store.refused import Refused
from tests.support.browser import pictures
from tests.support.browser.pages import ROOT
from tests.support.browser.pictures import BLUE, RED, drawn
from tests.support.lists.offenders import each

# As the server has it.
pytestmark = pytest.mark.filterwarnings(r"ignore:::PIL\b")


def opened(image: bytes) -> Image.Image:
    made = Image.open(BytesIO(image), formats=("WEBP",))
    made.load()
    return made


def logo(form: str, side: int) -> bytes:
    """A ring and a bar in flat colours on a transparent background."""
    image = Image.new("RGBA", (side, side))
    pen = ImageDraw.Draw(image)
    pen.ellipse((side // 10, side // 10, side - side // 10, side - side // 10), outline=RED, width=side // 12)
    pen.rectangle((side // 3, side // 2, side - side // 3, side // 2 + side // 8), fill=BLUE)
    return pictures.saved(image, form, **({"lossless": True} if form == "WEBP" else {}))


def close(pixel: object, colour: tuple[int, ...]) -> bool:
    """Whether a pixel has roughly this colour: encoders lose a little."""
    assert isinstance(pixel, tuple)
    return all(abs(a - b) < 30 for a, b in zip(pixel, colour, strict=False))


@each("form", MOST_PIXELS)
@each("size", [(1, 1), (256, 256), (3000, 20), (40, 900)], ids=str)
def test_a_picture_is_cropped_to_a_small_square(form: str, size: tuple[int, int]) -> None:
    image = picture_of(drawn(form, size))
    assert len(image) <= MOST_BYTES
    made = opened(image)
    assert (made.format, made.size, getattr(made, "n_frames", 1)) == ("WEBP", (SIDE, SIDE), 1)
    assert close(made.convert("RGB").getpixel((128, 128)), RED)


@each("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_every_pixel_format_is_accepted(mode: str) -> None:
    assert opened(picture_of(pictures.saved(Image.new(mode, (30, 30)), "PNG"))).size == (SIDE, SIDE)


def test_cmyk_pictures_are_accepted() -> None:
    assert opened(picture_of(pictures.saved(Image.new("CMYK", (30, 30)), "JPEG"))).mode == "RGB"


def test_the_first_picture_of_a_multi_picture_file_is_kept() -> None:
    second = Image.new("RGB", (40, 40), BLUE)
    file = pictures.saved(Image.new("RGB", (40, 40), RED), "MPO", save_all=True, append_images=[second])
    assert close(opened(picture_of(file)).getpixel((128, 128)), RED)


def test_transparency_is_kept() -> None:
    made = opened(picture_of(drawn(colour=(0, 0, 0, 0))))
    pixel = made.getpixel((9, 9))
    assert isinstance(pixel, tuple)
    assert (made.mode, pixel[3]) == ("RGBA", 0)


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"])
def test_the_first_frame_of_an_animation_is_kept(form: str) -> None:
    made = opened(picture_of(pictures.animated(form)))
    assert close(made.convert("RGB").getpixel((128, 128)), RED)


@each(
    ("orientation", "red"),
    [
        (1, (20, 128)),
        (2, (236, 128)),
        (3, (236, 128)),
        (5, (128, 20)),
        (6, (128, 20)),
        (7, (128, 236)),
        (8, (128, 236)),
    ],
)
def test_a_photograph_is_rotated_by_its_orientation(orientation: int, red: tuple[int, int]) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    made = opened(picture_of(pictures.halves(exif=exif)))
    assert close(made.getpixel(red), RED)
    assert close(made.getpixel((255 - red[0], 255 - red[1])), BLUE)


def test_a_broken_orientation_is_ignored() -> None:
    assert opened(picture_of(pictures.halves(exif=b"Exif\0\0II*\0\xff\xff\xff\xff"))).size == (SIDE, SIDE)


def test_only_the_pixels_of_a_file_are_kept() -> None:
    secret = b"<script>alert('where it was taken')</script>"
    exif = Image.Exif()
    exif[0x010E] = secret.decode()
    text = PngImagePlugin.PngInfo()
    text.add_text("Comment", secret.decode())
    files = [
        drawn("JPEG", exif=exif, comment=secret, icc_profile=secret * 9),
        drawn("PNG", pnginfo=text, exif=exif),
        drawn("WEBP", exif=exif, xmp=secret),
        drawn("GIF", comment=secret),
    ]
    for file in files:
        image = picture_of(file + secret)
        assert secret in file
        assert secret not in image
        assert not {"exif", "icc_profile", "xmp", "comment"} & set(opened(image).info)


def test_an_incompressible_picture_loses_quality_until_it_fits() -> None:
    assert len(picture_of(pictures.saved(pictures.noise(), "PNG"))) <= MOST_BYTES


SVG = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'


@each(
    "made",
    [
        pytest.param(lambda: b"", id="nothing"),
        pytest.param(lambda: b"not a picture at all", id="words"),
        pytest.param(lambda: SVG, id="an SVG"),
        pytest.param(lambda: drawn("BMP"), id="another format"),
        pytest.param(lambda: drawn("TIFF"), id="yet another format"),
        pytest.param(lambda: drawn("PNG", (300, 300))[:-60], id="a PNG that ends early"),
        pytest.param(lambda: pictures.halves()[:-200], id="a JPEG that ends early"),
        pytest.param(lambda: drawn("WEBP")[:40], id="a WebP that ends early"),
        pytest.param(lambda: drawn("GIF")[:20], id="a GIF that ends early"),
        pytest.param(lambda: b"\x89PNG\r\n\x1a\n" + SVG, id="a signature alone"),
        pytest.param(lambda: pictures.png_bomb(50_000, 50_000), id="a PNG bomb"),
        pytest.param(lambda: pictures.png_bomb(2**31 - 1, 2**31 - 1), id="a PNG beyond all measure"),
        pytest.param(lambda: pictures.webp_bomb(), id="a WebP bomb"),
        pytest.param(lambda: pictures.many_scans(200), id="a JPEG of endless scans"),
        pytest.param(lambda: b"GIF89a" + b"\xff" * 400, id="a GIF of nonsense"),
        pytest.param(lambda: b"RIFF\xff\xff\xff\xffWEBPVP8 " + bytes(30), id="a WebP of nonsense"),
    ],
)
def test_a_refused_picture_gets_an_explanation(made: Callable[[], bytes]) -> None:
    file = made()
    with pytest.raises(Refused) as refused:
        picture_of(file)
    assert refused.value.code == "invalid_request"
    assert refused.value.description.endswith(".")


@pytest.mark.parametrize(
    ("form", "size"),
    [("PNG", (3001, 3000)), ("GIF", (3001, 3000)), ("WEBP", (3001, 3000)), ("JPEG", (8000, 6251))],
)
def test_a_large_file_too_has_a_bound_in_pixels(form: str, size: tuple[int, int]) -> None:
    with pytest.raises(Refused) as refused:
        picture_of(drawn(form, size) + bytes(2**21))
    assert "too many pixels" in refused.value.description


TOO_LARGE: dict[str, Callable[[], bytes]] = {
    "a progressive JPEG": lambda: drawn("JPEG", (4100, 4000), progressive=True, subsampling=0),
    "one that is sampled coarsely": lambda: drawn("JPEG", (8200, 4000), progressive=True, subsampling=2),
    "a progressive print": lambda: pictures.saved(Image.new("CMYK", (4100, 3000)), "JPEG", progressive=True),
    "colour by colour": lambda: pictures.apart((4100, 4000)),
    "as wide as can be": lambda: drawn("JPEG", (65_000, 760)),
}


@pytest.mark.parametrize("kind", TOO_LARGE)
def test_a_jpeg_that_would_take_much_memory_is_refused(kind: str) -> None:
    with pytest.raises(Refused, match="invalid_request") as refused:
        picture_of(TOO_LARGE[kind]())
    assert "too many pixels" in refused.value.description


def test_a_jpeg_that_would_take_much_time_is_refused() -> None:
    with pytest.raises(Refused) as refused:
        picture_of(pictures.many_scans(30, (4000, 4000)) + bytes(2**21))
    assert "Save it again" in refused.value.description


SMALL: dict[str, Callable[[], bytes]] = {
    "a PNG of one colour": lambda: drawn("PNG", (2600, 2600)),
    "a transparent WebP of one colour": lambda: drawn("WEBP", (2600, 2600), (0, 0, 0, 0), lossless=True),
    "a GIF of one colour": lambda: drawn("GIF", (2950, 2950)),
    "a JPEG of many scans": lambda: pictures.many_scans(60, (1400, 1400)),
    "a PNG of 16 bits": lambda: pictures.png((1700, 1700), 16, 6),
    "a PNG in seven passes": lambda: pictures.png((2100, 2100), 8, 6, interlaced=True),
}


@pytest.mark.trap(39)
@pytest.mark.parametrize("kind", SMALL)
def test_a_small_file_with_huge_dimensions_is_refused(kind: str) -> None:
    file = SMALL[kind]()
    assert len(file) < 2**16
    with pytest.raises(Refused):
        picture_of(file)
    # An upload of a normal size for such a picture is accepted.
    assert len(picture_of(file + bytes(2**19))) <= MOST_BYTES


@each("side", [1200, 1500, 2000])
@each("form", ["PNG", "WEBP", "GIF"])
def test_a_large_flat_logo_with_transparency_is_accepted(form: str, side: int) -> None:
    file = logo(form, side)
    assert len(file) < 2**16
    assert opened(picture_of(file)).mode == "RGBA"


def test_a_smaller_16_bit_logo_is_accepted() -> None:
    assert opened(picture_of(pictures.png((1670, 1670), 16, 6))).mode == "RGBA"


def with_chunks(chunks: bytes) -> bytes:
    file = drawn("PNG")
    return file[:33] + chunks + file[33:]


def with_segments(segments: bytes) -> bytes:
    file = drawn("JPEG")
    return file[:2] + segments + file[2:]


PROFILE = pictures.chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(2**20)))


@pytest.mark.trap(39)
@pytest.mark.parametrize(
    "file",
    [
        pytest.param(with_chunks(PROFILE * 60), id="profiles"),
        pytest.param(with_chunks(pictures.chunk(b"prVt", b"") * 5000), id="chunks"),
        pytest.param(with_segments(b"\xff\xe5\0\2" * 15_000), id="segments"),
    ],
)
def test_the_parts_of_a_picture_are_bounded(file: bytes) -> None:
    with pytest.raises(Refused) as refused:
        picture_of(file)
    assert "Save it again" in refused.value.description


@pytest.mark.slow
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda: pictures.png((1670, 1670), 16, 6, interlaced=True), id="16 bits, in seven passes"),
        pytest.param(
            lambda: pictures.png((2040, 2040), 8, 6, interlaced=True), id="a transparent logo in seven passes"
        ),
        pytest.param(lambda: pictures.png((2360, 2360), 8, 4, interlaced=True), id="grey, in seven passes"),
        pytest.param(lambda: pictures.many_scans(39, (900, 900)), id="a JPEG of many scans"),
        pytest.param(lambda: with_segments(b"\xff\xe5\0\2" * 900), id="many segments"),
        pytest.param(lambda: drawn("GIF", (2590, 2590), transparency=0), id="a GIF"),
        pytest.param(lambda: logo("WEBP", 2000), id="a WebP"),
    ],
)
def test_the_costliest_64_kib_pictures_take_little_time(make: Callable[[], bytes]) -> None:
    file = make()
    assert len(file) < 2**16
    spent = []
    for _ in range(3):
        began = process_time()
        picture_of(file)
        spent.append(process_time() - began)
    assert min(spent) < THREADS


@pytest.mark.trap(39)
@pytest.mark.parametrize("form", ["PNG", "JPEG", "GIF"])
def test_the_sides_of_a_picture_are_bounded(form: str) -> None:
    for size in ((20_001, 1), (1, 20_001)):
        with pytest.raises(Refused) as refused:
            picture_of(drawn(form, size))
        assert "too many pixels" in refused.value.description
        assert len(picture_of(drawn(form, (min(size[0], 20_000), min(size[1], 20_000))))) <= MOST_BYTES


@pytest.mark.trap(40)
def test_decompression_of_text_chunks_is_bounded() -> None:
    text = pictures.chunk(b"zTXt", b"words\0\0" + zlib.compress(bytes(2**20 - 1)))
    plain = drawn("PNG")
    assert picture_of(plain[:33] + text + plain[33:])
    with pytest.raises(Refused):
        picture_of(plain[:33] + 3 * text + plain[33:])


LARGEST: dict[str, Callable[[], bytes]] = {
    "a photograph": lambda: drawn("JPEG", (7900, 6300), subsampling=0),
    "a progressive JPEG": lambda: drawn("JPEG", (4000, 4000), progressive=True, subsampling=0),
    "a progressive print": lambda: pictures.saved(Image.new("CMYK", (4000, 3000)), "JPEG", progressive=True),
    "a wide progressive print": lambda: pictures.saved(Image.new("CMYK", (17_000, 520)), "JPEG", progressive=True),
    "a JPEG of many scans": lambda: pictures.many_scans(15, (4000, 4000)),
    "a transparent PNG": lambda: drawn("PNG", (3000, 3000), (0, 0, 0, 0)),
    "a WebP": lambda: drawn("WEBP", (3000, 3000), (0, 0, 0, 0), quality=50),
}

DECODE = """
import sys
import zlib
from handlers.core.pictures.image_upload import picture_of
from tests.support.browser import pictures

def most():
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith("VmHWM"))

for form in ("JPEG", "PNG", "WEBP", "GIF"):
    picture_of(pictures.drawn(form))
file = sys.stdin.buffer.read()
before = most()
picture_of(file)
print(most() - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="reads the memory of a process as Linux tells it")
@pytest.mark.parametrize("kind", LARGEST)
def test_the_largest_accepted_pictures_take_bounded_memory(kind: str) -> None:
    file = LARGEST[kind]() + bytes(2**21)  # a small file may have fewer pixels
    assert len(file) <= MOST_UPLOAD
    done = subprocess.run([sys.executable, "-c", DECODE], input=file, stdout=subprocess.PIPE, check=True, cwd=ROOT)
    assert int(done.stdout) < 160 * 1024, "KiB"


@pytest.mark.gen_test
async def test_uploads_in_progress_are_bounded_and_places_are_freed() -> None:
    image_upload = ImageUpload()
    for number in range(ROOM):
        image_upload.enter(f"person {number}")
    with pytest.raises(Refused) as refused:
        image_upload.enter("another")
    assert refused.value.code == "temporarily_unavailable"
    image_upload.leave("person 0")
    with pytest.raises(Refused, match="temporarily_unavailable"):
        image_upload.enter("person 1")
    image_upload.enter("another")
    assert opened(await image_upload.make(drawn())).size == (SIDE, SIDE)
