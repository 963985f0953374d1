"""One class for all explorers: a live widget in Jupyter, the same module with a stand-in model in a page."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import zlib
from pathlib import Path
from typing import Any, ClassVar

import anywidget
import numpy as np
import traitlets

from lapbook.layouts import Layout
from lapbook.spectrum import eigenvectors

FOLDER = Path(__file__).parent


def joined(name: str) -> str:
    """The module `name`.js with the common part written into it: one text that imports nothing."""
    common, own = ((FOLDER / f"{file}.js").read_text(encoding="utf-8") for file in ("common", name))
    return common + re.sub(r'^import [^;]* from "\./common\.js";\n', "", own, flags=re.MULTILINE)


def pack(layout: Layout, d: int) -> dict[str, Any]:
    """A map and its first d eigenvectors as JSON, the vectors as 16-bit integers times a scale.

    Sixteen bits are far coarser than what differs between two machines, so the text is the same on both.
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
    """For readers without scripts: six eigenvectors of the first map as a small PNG, one pixel per cell."""
    entry = next(iter(data.values()))
    layout = Layout(entry["text"])
    vectors = np.frombuffer(base64.b64decode(entry["bytes"]), "<i2").reshape(-1, layout.n)[1:7]
    rows = []
    for u in vectors:
        shade = np.zeros(layout.shape, dtype=np.uint8)  # 0 is a wall, 1 … 255 the colours
        shade[layout.free] = 128 + np.rint(127 * u / np.abs(u).max()).astype(int)
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


def _stored_blocks(raw: bytes, size: int = 65535):
    for start in range(0, len(raw), size):
        block = raw[start : start + size]
        last = start + size >= len(raw)
        yield struct.pack("<BHH", last, len(block), len(block) ^ 0xFFFF) + block
