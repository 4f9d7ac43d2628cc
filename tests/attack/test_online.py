"""A reconstruction that sees each answer once."""

import numpy as np
import pytest

from casemate.attack.reconstruct import OnlineReconstruction
from casemate.errors import Misconfigured, Unsupported
from casemate.table import Table

SUM = 'SELECT SUM("Blood sugar") FROM t'


@pytest.mark.theorem("002: Handling many queries (each query is seen once)")
def test_the_documents_example_is_exact_after_each_answer_has_been_seen_once() -> None:
    with Table.open("hospital") as table:
        seen = OnlineReconstruction(table, "Blood sugar", method="recursive")
        seen.see(SUM, 32.1)
        seen.see(f"{SUM} WHERE ZIP <> 43813", 26.9)
    assert seen.values[1] == pytest.approx(5.2)
    assert seen.values.sum() == pytest.approx(32.1)


@pytest.mark.parametrize(("method", "start"), [("kaczmarz", 3.0), ("sgd", 6.5)])
def test_the_cheap_methods_come_near_when_the_answers_go_on(method: str, start: float) -> None:
    """From the end of the range that is nearest to 0, or behind the sigmoid from its middle."""
    with Table.open("hospital") as table:
        seen = OnlineReconstruction(table, "Blood sugar", method=method)  # type: ignore[arg-type]  # one of the literals
        assert seen.values.tolist() == [start] * 6
        for _ in range(60):
            seen.see(SUM, 32.1)
            seen.see(f"{SUM} WHERE ZIP <> 43813", 26.9)
    assert seen.seen == 120
    assert seen.values[1] == pytest.approx(5.2, abs=1e-3)
    assert (seen.values >= 3).all() and (seen.values <= 10).all()


def test_a_statement_about_something_else_is_refused() -> None:
    with Table.open("hospital") as table:
        seen = OnlineReconstruction(table, "Blood sugar")
        with pytest.raises(Unsupported):
            seen.see("SELECT COUNT(*) FROM t", 6)
        with pytest.raises(Unsupported):
            seen.see('SELECT MAX("Blood sugar") FROM t', 6)
        with pytest.raises(Misconfigured, match="finite"):
            seen.see(SUM, float("nan"))
    assert seen.seen == 0 and not np.isnan(seen.values).any()
