"""Reports rendered in each form, and what a page holds."""

import xml.etree.ElementTree as ET
from collections.abc import Callable
from typing import Any

from casemate.report import Report, as_html, as_json, as_text


def forms(
    report: Callable[..., Report],
) -> tuple[Callable[..., str], Callable[..., dict[str, Any]], Callable[..., str]]:
    """The text, the JSON object and the page of what `report` makes of a result."""
    return (
        lambda *found, **how: as_text(report(*found, **how)),
        lambda *found, **how: as_json(report(*found, **how)),
        lambda *found, **how: as_html(report(*found, **how)),
    )


def words(page: str) -> str:
    """What a page says."""
    return " ".join("".join(ET.fromstring(page).itertext()).split())


def sections(page: str) -> list[str]:
    """The names of a page's sections, in their order."""
    return [each.attrib["id"] for each in ET.fromstring(page).iter("section")]
