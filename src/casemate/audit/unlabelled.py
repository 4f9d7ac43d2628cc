"""Rows of a GROUP BY whose keys are not shown: audited as if they were, which is the worst case.

What such a statement shows is a function of its rows with their keys. So whoever is not exposed by
labelled rows is not exposed by these; whoever is may be one whom an outsider cannot point to.
"""

from casemate.published.publication import Publication


def as_if_labelled(publication: Publication) -> tuple[str, ...]:
    """A sentence for each statement that shows rows without all of their keys."""
    return tuple(
        f"query {query} shows rows without all of their keys; it was audited as if they were "
        f"labelled, which is the worst case"
        for query in publication.unlabelled
    )
