"""A Sphinx extension: take out of the built book what the theme loads and no page uses, 2 MB on every page, and what
figures store and nobody sees.

The theme brings two thousand icons twice: drawn by a script, and as fonts with a rule of style for each. The fonts
alone will do, with the few icons that pages and scripts name. A page that names a new one needs a build from scratch,
as `make book` does it. The theme also loads the index of the search into every page, where only the page of the
search itself reads it. Figures have a channel for transparency that is opaque everywhere.

Pages are told the size of each figure: it is shown as large as at 110 dots an inch, however finely it was drawn, and
the text below does not move when it arrives.
"""

from __future__ import annotations

import io
import re
import struct
import zlib
from pathlib import Path
from typing import Any

from fontTools.subset import Options, Subsetter
from fontTools.ttLib import TTFont
from PIL import Image

NAME = re.compile(r"\bfa-([a-z0-9-]+)")
RULE = re.compile(r'(?:\.fa-[\w-]+:before,?)+\{content:"\\[0-9a-f]+ ?"\}')  # .fa-bars:before{content:"\f0c9"}
SMALLER = re.compile(r'url\([^)]*\.woff2\) format\("woff2"\),(?=url\([^)]*\.ttf\))')
SEARCH = re.compile(r'<script src="[^"]*(?:searchtools|language_data|searchindex)\.js"></script>\n?')
PICTURE = re.compile(r'<img (?![^>]*\bwidth=)([^>]*\bsrc="[^"]*_images/([^"/]+\.png)"[^>]*)>')
DOTS_AN_INCH = 110  # at which text in figures is as large as the text around them
CODE = re.compile(r"\\([ef][0-9a-f]{3})|([\ue000-\uf8ff])")


def without_unused(style: str, used: set[str]) -> str:
    """A style sheet without the rules of icons whose names are not used, and with fonts as TrueType alone.

    >>> without_unused('.fa-bars:before{content:"\\\\f0c9"}.fa-uber:before{content:"\\\\f402"}', {"bars"})
    '.fa-bars:before{content:"\\\\f0c9"}'
    """

    def keep(rule: re.Match[str]) -> str:
        return rule[0] if used & set(NAME.findall(rule[0])) else ""

    return SMALLER.sub("", RULE.sub(keep, style))


def codes(style: str) -> set[int]:
    """The characters for private use, such as icons, that a style sheet names.

    >>> [hex(code) for code in codes('a:before{content:"\\\\f0c9"}')]
    ['0xf0c9']
    """
    return {int(escaped, 16) if escaped else ord(plain) for escaped, plain in CODE.findall(style)}


def lighten(static: Path, pages: list[Path]) -> None:
    """Rewrite the theme's files under `static` to hold the icons of the pages and no others, and the pages."""
    for path in pages:
        if path.name != "search.html":
            path.write_text(SEARCH.sub("", path.read_text(encoding="utf-8")), encoding="utf-8")
    script = static / "scripts" / "fontawesome.js"
    script.write_text("// The icons come from the fonts.\n", encoding="utf-8")
    texts = [path.read_text(encoding="utf-8") for path in [*pages, *static.glob("*.js"), *static.glob("scripts/*.js")]]
    used = {name for text in texts for name in NAME.findall(text)}
    needed = set()
    for path in static.rglob("*.css"):
        style = path.read_text(encoding="utf-8")
        path.write_text(lighter := without_unused(style, used), encoding="utf-8")
        needed |= codes(lighter)
    for path in static.glob("vendor/fontawesome/webfonts/*.ttf"):
        font = TTFont(path, recalcTimestamp=False)
        subset = Subsetter(Options(layout_features=[]))
        subset.populate(unicodes=needed)
        subset.subset(font)
        font.save(path)


def opaque(png: bytes) -> bytes:
    """The same picture, without a transparency that is nowhere used; as it was if that is smaller.

    Its rows are packed as they are. The usual filters, which store differences of pixels, are made for photographs
    and cost plots an eighth of their size.
    """
    picture = Image.open(io.BytesIO(png))
    if picture.mode != "RGBA" or picture.getchannel("A").getextrema() != (255, 255):
        return png
    rows = picture.convert("RGB").tobytes()
    width, height = picture.size
    unfiltered = b"".join(b"\0" + rows[y : y + 3 * width] for y in range(0, len(rows), 3 * width))
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)  # eight bits each of red, green and blue
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(unfiltered, 9)), (b"IEND", b""))
    smaller = png[:8] + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data)) for kind, data in chunks
    )
    return min(png, smaller, key=len)


def shown_size(png: bytes) -> tuple[int, int]:
    """Width and height on the page of a picture that says how many dots it has to the inch, or as it is."""
    picture = Image.open(io.BytesIO(png))
    scale = DOTS_AN_INCH / picture.info.get("dpi", (DOTS_AN_INCH,))[0]
    return round(picture.width * scale), round(picture.height * scale)


def with_sizes(page: str, sizes: dict[str, tuple[int, int]]) -> str:
    """A page whose pictures say how large they are.

    >>> with_sizes('<img alt="A" src="../_images/a.png" />', {"a.png": (3, 2)})
    '<img width="3" height="2" alt="A" src="../_images/a.png" />'
    """

    def sized(tag: re.Match[str]) -> str:
        if tag[2] not in sizes:
            return tag[0]
        width, height = sizes[tag[2]]
        return f'<img width="{width}" height="{height}" {tag[1]}>'

    return PICTURE.sub(sized, page)


def finished(app: Any, exception: Exception | None) -> None:
    """After a build of pages that succeeded."""
    out = Path(app.outdir)
    if exception is None and app.builder.format == "html" and (out / "_static").is_dir():
        pages = [path for path in out.rglob("*.html") if "_static" not in path.parts]
        sizes = {path.name: shown_size(path.read_bytes()) for path in out.glob("_images/*.png")}
        for path in pages:
            path.write_text(with_sizes(path.read_text(encoding="utf-8"), sizes), encoding="utf-8")
        for path in out.glob("_images/*.png"):
            path.write_bytes(opaque(path.read_bytes()))
        lighten(out / "_static", pages)


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("build-finished", finished)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
