"""How figures look, and how they are written: the same bytes for the same numbers.

A figure is one column wide.  Colours are Okabe and Ito's, told apart by all common kinds of colour
vision; lines also differ in their marks.
"""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from tcc_experiments.model import Conclusion

WIDTH, HEIGHT = 3.6, 2.7  # inches, one column
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKS = ("o", "s", "^", "D", "v", "P", "x")
_STYLE: dict[Any, Any] = {
    "font.size": 8,
    "axes.labelsize": 8,
    "axes.titlesize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 6.5,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.6,
    "lines.linewidth": 1.2,
    "lines.markersize": 3.5,
    "font.family": "DejaVu Sans",
    "svg.hashsalt": "tcc",
    "svg.fonttype": "path",
    "savefig.dpi": 200,
    "figure.constrained_layout.use": True,
}


class MissingMatplotlib(Exception):
    """Figures were asked for, and matplotlib is not installed."""

    def __init__(self) -> None:
        super().__init__(
            "figures need matplotlib, which the extra brings: pip install 'tcc[experiments]'"
        )


def pyplot() -> Any:
    """matplotlib's pyplot without a screen, in the style of the figures.

    Raises:
        MissingExtra: it is not installed.
    """
    try:
        import matplotlib
    except ImportError:
        raise MissingMatplotlib from None
    matplotlib.use("Agg")
    from matplotlib import pyplot as plt

    matplotlib.rcdefaults()
    matplotlib.rcParams.update(_STYLE)
    return plt


def version() -> str:
    """Of matplotlib; empty where it is not installed."""
    try:
        from matplotlib import __version__
    except ImportError:
        return ""
    return str(__version__)


def drawn(draw: Callable[[Conclusion, Any], Any], conclusion: Conclusion) -> dict[str, bytes]:
    """A figure as PNG and SVG, by the ends of their file names.

    Raises:
        MissingExtra: matplotlib is not installed.
    """
    plt = pyplot()
    figure = draw(conclusion, plt)
    found: dict[str, bytes] = {}
    # Neither the date nor the version of the program stands in the files.
    for end, metadata in ((".png", {"Software": None}), (".svg", {"Date": None, "Creator": None})):
        out = io.BytesIO()
        figure.savefig(out, format=end[1:], metadata=metadata)
        found[end] = out.getvalue()
    plt.close(figure)
    return found
