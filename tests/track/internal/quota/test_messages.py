import pytest
from hypothesis import given
from hypothesis import strategies as st

from casemate.errors import Misconfigured
from casemate.track.quota.messages import (
    Claim,
    Denial,
    Hail,
    Lease,
    Order,
    Recall,
    ServerCall,
    Why,
    decode_claim,
    decode_hail,
    decode_order,
    encode,
)

numbers = st.integers(0, 2**62)
claims = st.builds(Claim, numbers, st.text(), *[numbers] * 5)
leases = st.builds(Lease, numbers, numbers, numbers, numbers, st.none() | numbers)
recalls = st.builds(Recall, numbers, numbers, numbers, numbers, st.integers(1, 2**62))
denials = st.builds(Denial, numbers, st.sampled_from(Why))
hails = st.builds(Hail, numbers, st.booleans(), st.booleans())


@given(claims)
def test_a_claim_comes_back_as_it_was_sent(claim: Claim) -> None:
    assert decode_claim(encode(claim)) == claim


@given(leases | recalls | denials | st.builds(ServerCall, numbers))
def test_an_order_comes_back_as_it_was_sent(order: Order) -> None:
    assert decode_order(encode(order)) == order


@given(hails)
def test_a_hail_comes_back_as_it_was_sent(hail: Hail) -> None:
    assert decode_hail(encode(hail)) == hail


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\xff",
        b"{}",
        b"[]",
        b'["a",1,2,3,4,5]',
        b'["a",1,2,3,4,5,-1]',
        b'["a",1,2,3,4,5,1.5]',
        b'["recall",1,2,3,4,0]',
        b'["lease",1,2,3,true,null]',
        b'["denial",1,"because"]',
        b'["call",-1]',
        b'["server",1,0]',
    ],
)
def test_what_is_none_of_ours_is_refused_in_a_sentence(data: bytes) -> None:
    with pytest.raises(Misconfigured, match="no claim of casemate"):
        decode_claim(data)
    with pytest.raises(Misconfigured, match="no order of casemate"):
        decode_order(data)
    with pytest.raises(Misconfigured, match="no server's word of casemate"):
        decode_hail(data)


@given(numbers, numbers, numbers, st.integers(1, 2**62))
def test_a_recalled_site_gives_back_half_at_least(
    used: int, unused: int, numerator: int, denominator: int
) -> None:
    kept = Recall(1, 1, 1, numerator, denominator).kept(used, unused)
    assert 0 <= 2 * kept <= unused
