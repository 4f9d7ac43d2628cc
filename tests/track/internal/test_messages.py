"""Messages: what is written is read back, and what is no message is refused."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.track.instruction import Blocks, Every, Growth, Sample
from casemate.track.messages import Order, Report, decode_order, decode_report, encode
from casemate.track.setting import MOST_COUNTED

numbers = st.integers(0, 2**62)
counts = st.integers(0, MOST_COUNTED)
reports = st.builds(Report, st.text(min_size=1), numbers, numbers, counts, counts, counts)
orders = st.builds(
    Order,
    numbers,
    st.sampled_from([None, Every(), Growth(3, 2), Sample(0.1), Blocks(7.5)]),
    st.booleans(),
)


@given(reports)
def test_a_report_is_read_back(report: Report) -> None:
    assert decode_report(encode(report)) == report


@given(orders)
def test_an_order_is_read_back(order: Order) -> None:
    assert decode_order(encode(order)) == order


@pytest.mark.parametrize(
    "data",
    [b"", b"hello", b"[]", b"{}", b'["a",1,2,3,4]', b'["a",1,2,3,4,-5]', b'[1,1,2,3,4,5]', b"\xff",
     b'["a",1,2,3,4,5.5]'],
)  # fmt: skip
def test_anything_else_is_no_report(data: bytes) -> None:
    with pytest.raises(Misconfigured, match="a subject of its own"):
        decode_report(data)


@pytest.mark.parametrize(
    "data", [b"", b"[1]", b"7", b'{"epoch":1}', b'{"epoch":1,"rule":{"rule":"x"},"answer":true}',
             b'{"epoch":1,"rule":{"rule":"sample"},"answer":true}']
)  # fmt: skip
def test_anything_else_is_no_order(data: bytes) -> None:
    with pytest.raises(Misconfigured, match="a subject of its own"):
        decode_order(data)
