"""One report model, rendered as text, JSON and HTML, and the toolkit of every command.

A capability makes a `Report` of `Section`s and blocks; `as_text`, `as_json` and `as_html` render
it, and `terminal` puts it where a command's options say. `plots` draws the
figures of pages.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.report.html import ROWS_ON_PAGE, as_html
    from casemate.report.model import (
        Block,
        Code,
        Drawing,
        Facts,
        Figure,
        LazyRows,
        Link,
        Listing,
        Paragraph,
        Prose,
        Report,
        Section,
        TableBlock,
        Where,
        as_json,
        words_of,
    )
    from casemate.report.text import as_text, count_of, number, plain, sentence, shorten
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
