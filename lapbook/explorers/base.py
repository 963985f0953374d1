"""One class for all explorers: a live widget in Jupyter, the same module with a stand-in model in a page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets

from lapbook.layouts import Layout
from lapbook.spectrum import eigenvectors

FOLDER = Path(__file__).parent
SHARED = ("common", "cells")  # in this order, since the second uses the first
IMPORT = re.compile(r'^import [^;]* from "\./(\w+)\.js";\n', flags=re.MULTILINE)


def joined(name: str) -> str:
    """The module `name`.js with the shared files it imports written into it: one text that imports nothing.

    >>> IMPORT.findall(joined("options"))
    []
    """
    texts = {file: (FOLDER / f"{file}.js").read_text(encoding="utf-8") for file in (*SHARED, name)}
    used = [file for file in SHARED if file in IMPORT.findall(texts[name])]
    return "".join(IMPORT.sub("", texts[file]) for file in (*used, name))


def pack(layout: Layout, d: int) -> dict[str, Any]:
    """A map and its first d eigenvectors as JSON, the vectors as 16-bit integers times a scale.

    Sixteen bits are far coarser than what differs between two machines, so the text is the same on both.

    >>> pack(Layout(".."), d=2)["values"]
    [0.0, 2.0]
    """
    found = eigenvectors(layout, d)
    scale = float(f"{np.abs(found.vectors).max() / 32000:.6e}")
    integers = np.rint(found.vectors.T / scale).astype("<i2")
    return {
        "text": layout.text,
        "n": layout.n,
        "values": [float(f"{value:.9e}") if value > 1e-12 else 0.0 for value in found.values],
        "scale": scale,
        "bytes": base64.b64encode(integers.tobytes()).decode(),
    }


def pack_all(layout: Layout, representations: dict[str, np.ndarray]) -> dict[str, Any]:
    """A map and several representations of shape (n, d) as JSON, each column as 16-bit integers times a scale.

    Columns are turned to the sign of the truth. States keep their order in each of them, since the way up a column
    depends on the order alone: where rounding makes two values equal, the larger one moves up by one.

    >>> close = np.array([[1.0], [1.0 - 1e-7], [1.0 - 2e-7]])
    >>> np.diff(unpack(pack_all(Layout("..."), {"close": close})).ravel()).tolist()
    [-1, -1]
    """
    d = np.shape(next(iter(representations.values())))[1]
    truth = eigenvectors(layout, d).vectors
    scales, columns = [], []
    for vectors in representations.values():
        turned = np.where((vectors * truth).sum(axis=0) < 0, -1, 1) * vectors
        largest = np.maximum(np.abs(turned).max(axis=0), 1e-12)
        scales.append([float(f"{x / 32000:.6e}") for x in largest])
        for u in (turned / largest).T:
            order = np.argsort(u, kind="stable")
            rank = np.concatenate([[0], np.cumsum(np.diff(u[order]) > 1e-9)])  # states as good as equal share one
            integers = np.empty(layout.n, dtype="<i2")
            integers[order] = np.minimum(np.maximum.accumulate(np.rint(32000 * u[order]) - rank) + rank, 32767)
            columns.append(integers)
    return {
        "text": layout.text,
        "n": layout.n,
        "names": list(representations),
        "scales": scales,
        "bytes": base64.b64encode(np.concatenate(columns).tobytes()).decode(),
    }


def unpack(entry: dict[str, Any]) -> np.ndarray:
    """The integers of a packed entry, one column for each vector in turn, shape (n, vectors).

    >>> np.abs(unpack(pack(Layout(".."), d=2))).tolist()  # 1/√2 everywhere
    [[32000, 32000], [32000, 32000]]
    """
    return np.frombuffer(base64.b64decode(entry["bytes"]), "<i2").reshape(-1, entry["n"]).T


class Explorer(anywidget.AnyWidget):
    """A picture with sliders: in Jupyter its traits are live in both directions, in a page it needs no kernel."""

    _esm = "export default { render() {} }"
    name: ClassVar[str]
    label: ClassVar[str]
    data = traitlets.Dict().tag(sync=True)

    def __init_subclass__(cls, **kwargs: Any) -> None:
        if "name" in vars(cls):  # not in the classes that ipywidgets derives to add traits
            cls._esm = joined(cls.name)
        super().__init_subclass__(**kwargs)

    def page_state(self) -> dict[str, Any]:
        """The traits that the module reads, without what Jupyter adds."""
        return {name: getattr(self, name) for name in sorted(self.page_traits())}

    def page_traits(self) -> set[str]:
        """Names of the explorer's own traits."""
        inherited = set(anywidget.AnyWidget.class_trait_names(sync=True))
        return {name for name in set(self.trait_names(sync=True)) - inherited if not name.startswith("_")}

    def html(self) -> str:
        """The explorer as it stands, as HTML that needs neither a kernel nor a network."""
        state = json.dumps(self.page_state(), sort_keys=True, ensure_ascii=False)
        module = joined(self.name).replace("export default {", "const explorer = {").replace("export ", "")
        number = hashlib.sha256((self.name + state).encode()).hexdigest()[:12]
        # The same explorer can stand on a page twice: each script takes the first box that is still empty.
        script = (
            f"{module}\nconst el = document.querySelector('.lb-{number}:empty');\n"
            f"if (el) explorer.render({{ model: standIn({state}), el }});"
        ).replace("</", "<\\/")
        picture = base64.b64encode(still(self.data)).decode()
        return (
            f'<div class="lb-{number}"></div>\n'
            f'<noscript><img alt="{self.label}" src="data:image/png;base64,{picture}" '
            f'style="image-rendering:pixelated;width:100%"></noscript>\n'
            f'<script type="module">\n{script}\n</script>'
        )

    def __repr__(self) -> str:
        own = ", ".join(f"{name}={getattr(self, name)!r}" for name in sorted(self.page_traits() - {"data"}))
        return f"{type(self).__name__}({own})"

    def _repr_mimebundle_(self, **kwargs: Any) -> Any:
        bundle = super()._repr_mimebundle_(**kwargs)
        data, metadata = bundle if isinstance(bundle, tuple) else (bundle or {}, {})
        return {**data, "text/plain": repr(self), "text/html": self.html()}, metadata


def still(data: dict[str, Any]) -> bytes:
    """For readers without scripts: six eigenvectors of the first map as a small PNG, one pixel per cell.

    >>> picture = still({"corridor": pack(Layout("...."), d=4)})
    >>> struct.unpack(">II", picture[16:24])  # its width and height: three corridors, each with a line beside it
    (15, 1)
    """
    entry = next(iter(data.values()))
    layout = Layout(entry["text"])
    rows = []
    for u in unpack(entry).T[1:7]:
        shade = np.zeros(layout.shape, dtype=np.uint8)  # 0 is a wall, 1 … 255 the colours
        shade[layout.free] = 128 + np.rint(127.0 * u / max(np.abs(u).max(), 1)).astype(int)
        rows.append(np.pad(shade, ((0, 0), (0, 1))))
    pixels = np.hstack(rows)
    blue, white, red = np.array([[33, 102, 172], [247, 247, 247], [178, 24, 43]])
    x = np.linspace(-1, 1, 255)[:, None]
    colours = np.where(x < 0, white + x * (white - blue), white + x * (red - white))
    palette = np.vstack([[59, 66, 82], colours]).round().astype(np.uint8)
    raw = b"".join(b"\0" + row.tobytes() for row in pixels)

    def chunk(kind: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + kind + body + struct.pack(">I", zlib.crc32(kind + body))

    header = struct.pack(">IIBBBBB", pixels.shape[1], pixels.shape[0], 8, 3, 0, 0, 0)
    # Stored, not compressed: a few kilobytes, and the same bytes whatever the version of zlib.
    stored = b"\x78\x01" + b"".join(_stored_blocks(raw)) + struct.pack(">I", zlib.adler32(raw))
    parts = [(b"IHDR", header), (b"PLTE", palette.tobytes()), (b"IDAT", stored), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunk(*part) for part in parts)


def _stored_blocks(raw: bytes, size: int = 65535) -> Iterator[bytes]:
    for start in range(0, len(raw), size):
        block = raw[start : start + size]
        last = start + size >= len(raw)
        yield struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF) + block
