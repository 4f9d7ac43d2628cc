"""The boundary of a linear classifier, taken through nothing but its labels.

`extraction` asks, learns and checks; `lowd_meek` learns from labels without noise, `noisy` from
noisy ones. `boundary` is what is looked for and how it is asked about, `classifier` a process or a
Python function that gives labels, and `report` what was found as text, JSON and a page.
"""

from typing import TYPE_CHECKING

from casemate.facade import lazily

if TYPE_CHECKING:
    from casemate.attack.extract.extraction import extract
else:
    __all__, __getattr__, __dir__ = lazily(__name__)
