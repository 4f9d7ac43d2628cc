"""Messages: what is written is read back, and what is no message is refused."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.track.messages import Order, SiteReport, decode, encode
from casemate.track.quota import messages as quota
from casemate.track.quota.messages import Claim, Denial, Hail, Lease, Recall, ServerCall, Why
from casemate.track.reporting_rule import Blocks, Every, Growth, Sample
from casemate.track.setting import MOST_COUNTED, Count

numbers, counts, yes = st.integers(0, 2**62), st.integers(0, MOST_COUNTED), st.booleans()
rules = st.sampled_from([None, Every(), Growth(3, 2), Sample(0.1), Blocks(7.5)])
finite = st.floats(allow_nan=False, allow_infinity=False)
messages = st.one_of(
    st.builds(SiteReport, st.text(min_size=1), numbers, numbers, counts, counts, counts),
    st.builds(Order, numbers, rules, yes),
    st.builds(Count, *[finite] * 5, numbers, st.lists(st.text()).map(tuple), numbers),
    st.builds(Claim, numbers, st.text(), *[numbers] * 5),
    st.builds(Lease, numbers, numbers, numbers, numbers, st.none() | numbers),
    st.builds(Recall, numbers, numbers, numbers, numbers, st.integers(1, 2**62)),
    st.builds(Denial, numbers, st.sampled_from(Why)),
    st.builds(ServerCall, numbers),
    st.builds(Hail, numbers, yes, yes),
)


@given(messages)
def test_a_message_comes_back_as_it_was_sent(message: Any) -> None:
    assert decode(encode(message), "message", type(message)) == message


NONE = (
    b"",
    b"\xff",
    b"{}",
    b"[]",
    b"7",
    b"[" * 10_000,
    b"[3]",
    b'[3,"other",1]',
    b'["a",7,3]',
    b'["3","order",1,null,true]',
)
NO_REPORTS = ('"a",1,2,3,4', '"a",1,2,3,4,-5', "1,1,2,3,4,5", '"a",1,2,3,4,5.5', '"a",1,2,3,4,true',
              '"a",1,2,3,4,9007199254740993', '"a",1,18446744073709551616,3,4,5')  # fmt: skip
NO_ORDERS = ("1", '1,{"rule":"x"},true', '1,{"rule":"sample"},true', "-1,null,true", "1,null,1",
             '1,{"rule":"sample","probability":0},true', '1,{"rule":"blocks","size":-1},false',
             '1,{"rule":"growth","numerator":1,"denominator":2},false', "1,7,true")  # fmt: skip
NO_QUOTA = ('"claim",1,"a",2,3,4,5,-1', '"claim",1,"a",2,3,4,5,1.5', '"recall",1,2,3,4,0',
            '"lease",1,2,3,true,null', '"denial",1,"because"', '"servercall",-1',
            '"hail",1,0,1')  # fmt: skip


def test_anything_else_is_refused_in_a_sentence() -> None:
    reports = [f'[3,"sitereport",{fields}]'.encode() for fields in NO_REPORTS]
    orders = [f'[3,"order",{fields}]'.encode() for fields in NO_ORDERS]
    for data in (*NONE, *reports, *orders):
        with pytest.raises(Misconfigured, match=r"no \w+ of casemate; give the tracker a subject"):
            decode(data, "message", SiteReport, Order)
    for data in (*NONE, *(f"[3,{fields}]".encode() for fields in NO_QUOTA)):
        for read in (quota.decode_claim, quota.decode_order, quota.decode_hail):
            with pytest.raises(Misconfigured, match="of casemate; give the quota a subject of its"):
                read(data)


def test_another_version_is_refused_in_a_sentence() -> None:
    with pytest.raises(Misconfigured, match="has version 2 and is read by version 3; run one"):
        decode(b'[2,"sitereport","a",1,2,3,4,5]', "report", SiteReport)


@given(numbers, numbers, numbers, st.integers(1, 2**62))
def test_a_recalled_site_gives_back_half_at_least(
    used: int, unused: int, numerator: int, denominator: int
) -> None:
    kept = Recall(1, 1, 1, numerator, denominator).retention(used, unused)
    assert 0 <= 2 * kept <= unused
