import numpy as np
import pytest
from chance import assert_follows
from scipy import stats

from casemate.track.instruction import Blocks, Every, Growth, Rule, Sample, SiteStanding
from casemate.track.messages import Report
from casemate.track.site import MANY, Site, leap


def reported(rule: Rule, added: int, seed: int) -> Report:
    """The last thing a site says that counts so much at once, after seven of them one by one."""
    sent: list[Report] = []
    site = Site("s", sent.append, rule, draw=np.random.default_rng(seed).random)
    for _ in range(7):
        site.add()
    site.add(added)
    return sent[-1]


@pytest.mark.parametrize("rule", [Sample(0.001), Sample(0.9), Blocks(2.0), Blocks(3.7), Every()])
def test_a_site_counts_a_million_million_at_once(rule: Rule, seed: int) -> None:
    said = reported(rule, 10**12, seed)
    assert said.count == 10**12 + 7
    match rule:
        case Sample(probability):
            assert said.reports == pytest.approx(probability * 1e12, rel=0.01)
        case Blocks(size):
            assert said.reports == pytest.approx(said.count / size, abs=1)


def test_after_a_leap_over_blocks_the_site_reports_once_in_each_of_the_next(seed: int) -> None:
    sent: list[Report] = []
    site = Site("s", sent.append, Blocks(5.0), draw=np.random.default_rng(seed).random)
    site.add(5 * 10**6)
    assert sent[-1].reports == 10**6
    for _ in range(50):
        site.add()
    assert [report.reports for report in sent[1:]] == list(range(10**6 + 1, 10**6 + 11))
    blocks = [(report.count - 1) // 5 for report in sent[1:]]
    assert blocks == list(range(10**6, 10**6 + 10))


def test_what_is_sampled_in_a_leap_and_after_it_is_binomial(seed: int) -> None:
    items, probability = 4 * MANY, 0.5
    found = [reported(Sample(probability), items, seed + i).reports for i in range(4000)]
    assert_follows(found, stats.binom(items + 7, probability).cdf)
    with pytest.raises(AssertionError):
        assert_follows(found, stats.binom(items + 7, 0.52).cdf, alarm=1e-6)


@pytest.mark.parametrize("rule", [Every(), Growth(3, 2), Sample(0.01), Blocks(10.0)])
def test_few_triggers_are_passed_one_after_another(rule: Rule) -> None:
    at = SiteStanding(0, 1, 5, 5 + MANY)
    assert leap(rule, at, draw=lambda: 0.5) == at
