"""Drawings for pages: plots as inline SVG, and the markup they and pages are made of.

`plot` has markup that escapes text by construction, scales, axes, bars, points, curves and matrices
of marks.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.report.plots.plot import (
        LETTER_WIDTH,
        Bands,
        Bar,
        LinearScale,
        Logarithmic,
        Margins,
        Mark,
        Markup,
        Matrix,
        Plot,
        Scale,
        Tone,
        escape,
        join,
        svg,
        tag,
    )
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
