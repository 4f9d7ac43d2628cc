"""What centred windows would have sent, against a site that sends it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from casemate.track.messages import Report
from casemate.track.protocols.windows import Centred, centred_rule
from casemate.track.site import Site

alphas = st.floats(0.01, 0.9)


def reports(alpha: float, first: int, last: int) -> int:
    """Of a site that takes the centred rule with one count and goes on to another."""
    sent: list[Report] = []
    rule = centred_rule(alpha)
    site = Site("a", sent.append, rule)
    site.add(first)  # in one piece: at most one report, and the window begins there
    before = len(sent)
    for _ in range(last - first):
        site.add()
    return len(sent) - before


@given(alphas, st.integers(0, 500))
def test_words_are_the_reports_of_a_centred_site(alpha: float, count: int) -> None:
    assert Centred(centred_rule(alpha)).words(np.array([count])) == reports(alpha, 0, count)


@given(alphas, st.integers(0, 300), st.integers(0, 300))
def test_a_window_that_begins_anywhere_costs_one_report_more_at_most(
    alpha: float, first: int, more: int
) -> None:
    centred = Centred(centred_rule(alpha))
    between = centred.words(np.array([first + more])) - centred.words(np.array([first]))
    assert reports(alpha, first, first + more) <= between + 1


@given(st.floats(1e-7, 0.9), st.integers(0, 10**4))
def test_reports_in_stretches_are_the_reports_one_by_one(alpha: float, count: int) -> None:
    rule, trigger, slow = centred_rule(alpha), 1, 0
    while trigger <= count:
        trigger, slow = rule.top(trigger) + 1, slow + 1
    assert Centred(rule).words(np.array([count])) == slow


def test_a_window_of_next_to_nothing_takes_no_list_of_all_its_reports() -> None:
    centred = Centred(centred_rule(1e-8))
    assert centred.words(np.array([10**7])) == 10**7
    assert len(centred._stretches) < 5


def test_words_of_all_sites_are_added_up() -> None:
    centred = Centred(centred_rule(0.1))
    each = [centred.words(np.array([count])) for count in (0, 5, 10**6, 1 << 50)]
    assert centred.words(np.array([0, 5, 10**6, 1 << 50])) == sum(each)
