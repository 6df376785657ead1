"""Logos and icons of a brand: raster files are encoded again, an SVG has nothing that runs or loads."""

from __future__ import annotations

from io import BytesIO

import pytest
from PIL import Image

from handlers.core.brand.brand import PNG, SVG, WEBP, Asset
from handlers.core.brand.images import ICON, LOGO, MOST_ENCODED, MOST_SVG, WrongImage, icon_of, logo_of
from tests.support.browser import pictures
from tests.support.data.brands import LOGO as DRAWING

NAMESPACES = 'xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" viewBox="0 0 9 9"'


def svg(inner: str = "", attributes: str = NAMESPACES) -> bytes:
    return f"<svg {attributes}>{inner}</svg>".encode()


def opened(asset: Asset) -> Image.Image:
    return Image.open(BytesIO(asset.content))


@pytest.mark.parametrize("form", ["PNG", "JPEG", "WEBP", "GIF"])
def test_a_raster_logo_is_encoded_again(form: str) -> None:
    file = pictures.drawn(form, (900, 300)) + b"<script>"
    logo = logo_of(file)
    assert (logo.kind, logo.width, logo.height) == (WEBP, 480, 160)
    assert opened(logo).size == (480, 160)
    assert b"<script>" not in logo.content


def test_a_small_logo_is_not_made_larger() -> None:
    logo = logo_of(pictures.drawn("PNG", (60, 20)))
    assert (logo.width, logo.height, logo.shown) == (60, 20, (96, 32))


def test_a_logo_keeps_its_transparency() -> None:
    assert opened(logo_of(pictures.drawn("PNG", (60, 20), (200, 30, 30, 0)))).mode == "RGBA"


def test_a_sideways_photograph_is_turned_before_it_is_fitted() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    logo = logo_of(pictures.drawn("JPEG", (300, 900), exif=exif))
    assert (logo.width, logo.height) == (480, 160)


def test_a_logo_of_noise_is_bounded() -> None:
    assert len(logo_of(pictures.saved(pictures.noise(512), "PNG")).content) <= MOST_ENCODED


def test_an_icon_is_a_square() -> None:
    icon = icon_of(pictures.drawn("PNG", (400, 200)))
    assert (icon.kind, icon.width, icon.height) == (PNG, ICON, ICON)
    image = opened(icon)
    assert image.getpixel((ICON // 2, 2)) == (0, 0, 0, 0)
    assert image.getpixel((ICON // 2, ICON // 2)) == (*pictures.RED, 255)


def test_a_picture_bomb_is_refused() -> None:
    with pytest.raises(WrongImage, match="too many pixels"):
        logo_of(pictures.png_bomb(20_000, 20_000))


def test_an_svg_goes_out_as_it_is() -> None:
    logo = logo_of(DRAWING.encode())
    assert (logo.kind, logo.content, logo.wide, logo.shown) == (SVG, DRAWING.encode(), True, (96, 32))
    assert icon_of(DRAWING.encode()) == logo


@pytest.mark.parametrize(
    "attributes",
    [
        pytest.param('viewBox="0 0 30 10"', id="a view box"),
        pytest.param('viewBox="-1.5, 2, 30.0 10"', id="a view box elsewhere"),
        pytest.param('width="30" height="10px"', id="width and height"),
        pytest.param('viewBox="0 0 30 10" width="100%"', id="a share for a width"),
    ],
)
def test_the_size_of_an_svg(attributes: str) -> None:
    assert logo_of(svg(attributes=f'xmlns="http://www.w3.org/2000/svg" {attributes}')).shown == (96, 32)


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param('<defs><linearGradient id="a"/></defs><path fill="url(#a)"/>', id="a gradient"),
        pytest.param('<use xlink:href="#a"/>', id="a reference inside"),
        pytest.param('<image href="data:image/png;base64,AAAA"/>', id="a picture inside"),
        pytest.param("<style>.a { fill: red; background: url( '#a' ) }</style>", id="a style"),
        pytest.param("<title>Acme</title><desc>script</desc>", id="words"),
        pytest.param('<animate attributeName="opacity"/>', id="an animation"),
    ],
)
def test_an_svg_that_only_draws_is_accepted(inner: str) -> None:
    assert logo_of(svg(inner)).kind == SVG


@pytest.mark.parametrize(
    "inner",
    [
        pytest.param("<script>alert(1)</script>", id="a script"),
        pytest.param('<SCRIPT href="#a"/>', id="a script in capitals"),
        pytest.param('<x:script xmlns:x="http://www.w3.org/1999/xhtml"/>', id="a script of HTML"),
        pytest.param("<foreignObject/>", id="HTML inside"),
        pytest.param('<a href="#x"/>', id="a link"),
        pytest.param('<path onload="alert(1)"/>', id="a handler"),
        pytest.param('<path ONLOAD="alert(1)"/>', id="a handler in capitals"),
        pytest.param('<image href="https://evil.example/a.png"/>', id="a picture elsewhere"),
        pytest.param('<use xlink:href="//evil.example/a.svg#b"/>', id="a reference elsewhere"),
        pytest.param('<image href="data:image/svg+xml,x"/>', id="an SVG inside"),
        pytest.param('<image href="DATA:text/html,x"/>', id="HTML as data"),
        pytest.param('<path fill="url(https://evil.example/#a)"/>', id="a fill elsewhere"),
        pytest.param('<path style="fill: URL(  &quot;//evil.example&quot;)"/>', id="a style elsewhere"),
        pytest.param('<path style="fill: u\\72l(//evil.example)"/>', id="a style with escapes"),
        pytest.param("<style>@import '//evil.example';</style>", id="an import"),
        pytest.param("<style>a { fill: ur<![CDATA[l(//evil.example)]]> }</style>", id="an address in two parts"),
        pytest.param("<style>a { fill: u\\72l(//evil.example) }</style>", id="styles with escapes"),
        pytest.param('<set attributeName="href" to="//evil.example"/>', id="an attribute set later"),
        pytest.param('<animate attributeName="xlink:href" to="//evil.example"/>', id="an attribute animated"),
        pytest.param('<?xml-stylesheet href="//evil.example"?>', id="a stylesheet"),
    ],
)
def test_an_svg_that_runs_or_loads_is_refused(inner: str) -> None:
    with pytest.raises(WrongImage, match="an SVG that runs and loads nothing"):
        logo_of(svg(inner))


@pytest.mark.parametrize(
    ("file", "words"),
    [
        pytest.param(b'<!DOCTYPE svg [<!ENTITY a "aaaa">]>' + svg("&a;"), "without a DOCTYPE", id="entities"),
        pytest.param(svg("<path>"), "well-formed", id="a broken one"),
        pytest.param(b"<html><body/></html>", "outermost element is svg", id="HTML"),
        pytest.param(b'<svg viewBox="0 0 9 9"/>', "in the namespace", id="no namespace"),
        pytest.param(svg(attributes='xmlns="http://www.w3.org/2000/svg"'), "a viewBox such as", id="no size"),
        pytest.param(svg(attributes=NAMESPACES.replace("9 9", "0 0")), "a viewBox such as", id="a size of nothing"),
        pytest.param(svg(attributes=NAMESPACES.replace("9 9", "-9 9")), "a viewBox such as", id="a negative size"),
        pytest.param(svg("x" * MOST_SVG), "at most", id="a large one"),
        pytest.param(b"<?xml version='1.0' encoding='nowhere'?>" + svg(), "well-formed", id="an unknown encoding"),
        pytest.param(b"<\0", "well-formed", id="zeros"),
    ],
)
def test_what_is_no_svg_is_refused(file: bytes, words: str) -> None:
    with pytest.raises(WrongImage, match=words):
        logo_of(file)


def test_logos_of_all_forms_fit_their_place() -> None:
    for width, height in ((1, 5000), (5000, 1), (40, 40), (1000, 30)):
        shown = logo_of(pictures.drawn("PNG", (width, height))).shown
        assert 1 <= shown[0] <= 192
        assert 1 <= shown[1] <= 32
    assert LOGO[0] >= 3 * 192
