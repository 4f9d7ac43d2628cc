"""The toolkit of every report: self-contained HTML pages, plots as inline SVG, and the terminal."""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.report.pages import (
        ROWS_SHOWN,
        Markup,
        counted,
        escaped,
        facts,
        figure,
        joined,
        listing,
        page,
        paragraph,
        section,
        table,
        tag,
    )
    from casemate.report.plots import (
        LETTER,
        Bands,
        Bar,
        LinearScale,
        Logarithmic,
        Margins,
        Mark,
        Matrix,
        Plot,
        Tone,
        drawing,
    )
    from casemate.report.values import number, plain
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
