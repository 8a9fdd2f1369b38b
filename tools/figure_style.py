"""The look of the site's figures: Okabe and Ito's colours, no frames, letters of a page."""

import matplotlib as mpl
from cycler import cycler

#: Every eye tells these apart.
BLUE, RED, GREEN = "#0072B2", "#D55E00", "#009E73"
ORANGE, PURPLE, GREY = "#E69F00", "#CC79A7", "#808080"


def apply(gallery_conf: object = None, script: object = None) -> None:
    """Sphinx-gallery calls this before each script."""
    mpl.rcParams.update(
        {
            "axes.prop_cycle": cycler(color=[BLUE, RED, GREEN, ORANGE, PURPLE, GREY]),
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.titlesize": "medium",
            "axes.titlelocation": "left",
            "figure.constrained_layout.use": True,
            "figure.figsize": (7.0, 3.2),
            "legend.frameon": False,
            "image.cmap": "gray_r",
            "lines.linewidth": 1.8,
        }
    )
