"""What tests of trackers and quotas share."""

import pytest


@pytest.fixture(params=[pytest.param(b, marks=getattr(pytest.mark, b)) for b in ("nats", "redis")])
def address(request: pytest.FixtureRequest) -> str:
    """The address of a real broker, with a subject of its own."""
    given: str = request.getfixturevalue(f"{request.param}_server").address()
    return given
