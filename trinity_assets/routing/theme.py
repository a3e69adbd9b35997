"""One look for all plots: matplotlib figures without pyplot's global state, as small PNGs."""

from __future__ import annotations

import functools
import io
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, ParamSpec

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK = "#1f2933"
FAINT = "#9aa5b1"
GRID = "#e4e7eb"
ACCENT = "#d1495b"
SERIES = ("#2a6f97", "#e09f3e", "#5b8e7d", "#9e2a2b", "#7b6ca8", "#61a5c2", "#bc6c25", "#8a9a5b", "#c77d92", "#4a5759")
"""Distinct in hue and in lightness, for up to ten workers; more start over."""

LABEL_SIZE = 8
"""Points, of a text beside what it names."""

PALETTES = (64, 32, 16)
MAX_BYTES = 35_000
"""What an asset's metadata bears without burdening everything that reads the event log."""
_RC: Any = {
    "figure.dpi": 100,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "grid.color": GRID,
    "legend.fontsize": 8.5,
    "legend.frameon": False,
    "text.color": INK,
    "text.parse_math": False,  # names of strangers may hold a dollar sign
    "xtick.color": INK,
    "xtick.major.size": 0,
    "ytick.color": INK,
    "ytick.major.size": 0,
}

Arguments = ParamSpec("Arguments")


def plot(draw: Callable[Arguments, Figure]) -> Callable[Arguments, bytes]:
    """A function that draws in this theme and returns a PNG.

    The PNG has a palette of 64 colours, which text and flat areas do not notice and which halves its size; a picture
    that is still larger than ``MAX_BYTES`` gets fewer.
    """

    @functools.wraps(draw)
    def drawn(*args: Arguments.args, **kwargs: Arguments.kwargs) -> bytes:
        import matplotlib
        import numpy as np
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from PIL import Image

        with matplotlib.rc_context(_RC):
            canvas = FigureCanvasAgg(draw(*args, **kwargs))
            canvas.draw()
        image = Image.fromarray(np.asarray(canvas.buffer_rgba())).convert("RGB")
        png = b""
        for colours in PALETTES:
            buffer = io.BytesIO()
            image.quantize(colours).save(buffer, format="PNG", optimize=True)
            png = buffer.getvalue()
            if len(png) <= MAX_BYTES:
                break
        return png

    return drawn


def figure(width: float, height: float, title: str) -> tuple[Figure, Axes]:
    """A figure of ``width`` x ``height`` inches with one plot; a second line of ``title`` is set smaller."""
    from matplotlib.figure import Figure

    drawing = Figure(figsize=(width, height), layout="constrained")
    axes = drawing.add_subplot()
    headline, _, detail = title.partition("\n")
    axes.set_title(headline, pad=24 if detail else None)
    if detail:
        axes.annotate(detail, (0, 1), (0, 8), xycoords="axes fraction", textcoords="offset points", fontsize=8.5)
    return drawing, axes


def legend_below(drawing: Figure, axes: Axes, columns: int) -> None:
    """The legend under the plot, where long worker names have room."""
    handles, labels = axes.get_legend_handles_labels()
    drawing.legend(handles, labels, loc="outside lower center", ncols=columns, handlelength=1.4, columnspacing=1.4)


def beside_points(axes: Axes, labels: Mapping[str, tuple[float, float, str]]) -> None:
    """Write each label beside its point (x, y, colour): right of it, or left near the edge, none over another.

    A label that would meet one of a lower point is moved up until it meets none.
    """
    drawing = axes.get_figure(root=True)
    if drawing is None:
        return
    drawing.draw_without_rendering()  # places the axes, which decides where points lie
    pixels = drawing.dpi / 72
    height, gap = 1.3 * LABEL_SIZE * pixels, 7 * pixels
    inside = axes.get_window_extent()
    taken: list[tuple[float, float, float]] = []
    for name, (x, y, color) in sorted(labels.items(), key=lambda label: label[1][1]):
        across, up = axes.transData.transform((x, y))
        width = 0.6 * LABEL_SIZE * pixels * len(name)
        leftwards = bool(across + gap + width > inside.x1)
        left = across - gap - width if leftwards else across + gap
        placed = up
        for other_left, other_right, other in sorted(taken, key=lambda other: other[2]):
            if left < other_right and other_left < left + width and abs(placed - other) < height:
                placed = other + height
        taken.append((left, left + width, placed))
        axes.annotate(
            name,
            (x, y),
            ((-7 if leftwards else 7), (placed - up) / pixels),
            textcoords="offset points",
            ha="right" if leftwards else "left",
            va="center",
            fontsize=LABEL_SIZE,
            color=color,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5} if placed > up + height / 2 else None,
        )
