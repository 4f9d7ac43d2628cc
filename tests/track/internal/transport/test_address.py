"""Addresses: which broker they name, and that nothing secret is ever shown."""

import builtins
from typing import Any

import pytest
from servers import free_port

from casemate.errors import Misconfigured
from casemate.track.transport.address import open_transport, without_secrets


@pytest.mark.parametrize(
    "address",
    ["", "nats", "host:4222", "http://host/x", "nats://", "nats://:4222/x", "nats://host:port/x",
     "redis://[::1", "nats://host:99999/x", "nats://host:0/x", "amqp://user:hunter2@host/x",
     "nats://user:hunter2@host:4222/a b", "nats://user:hunter2@host:4222/a..b",
     "nats://user:hunter2@host:4222/a.*", "redis://:hunter2@host:6379/zero",
     "redis://:hunter2@host:6379/0?prefix=a%20b", "redis://:hunter2@host:6379/0?prefx=hits",
     "redis://:hunter2@host:6379/0?prefix=a&prefix=b", "redis://:hunter2@host:6379/0?prefix=a&db=1",
     "nats://user:hunter2@host:4222/a?prefix=b"],
)  # fmt: skip
def test_what_is_no_address_is_refused_in_a_sentence_without_secrets(address: str) -> None:
    with pytest.raises(Misconfigured) as caught:
        open_transport(address)
    assert "; give " in str(caught.value) and "\n" not in str(caught.value)
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize("scheme", ["nats", "redis"])
def test_a_broker_that_is_not_there_is_told_in_a_sentence(scheme: str) -> None:
    port = free_port()
    with pytest.raises(Misconfigured) as caught:
        open_transport(f"{scheme}://me:hunter2@127.0.0.1:{port}/0")
    assert str(caught.value).endswith(
        f"server answers at {scheme}://127.0.0.1:{port}; start one there, or check the address"
    )
    assert "hunter2" not in str(caught.value) and caught.value.__cause__ is None


@pytest.mark.parametrize(("scheme", "package"), [("nats", "nats"), ("redis", "redis")])
def test_a_missing_package_is_named(
    scheme: str, package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = builtins.__import__

    def without(name: str, *rest: Any) -> Any:
        if name.partition(".")[0] == package:
            raise ImportError(name)
        return real(name, *rest)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(Misconfigured, match=rf"pip install 'casemate\[{scheme}\]'"):
        open_transport(f"{scheme}://127.0.0.1:{free_port()}/0")


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("nats://me:hunter2@broker:4222/hits", "nats://broker:4222/hits"),
        ("redis://:hunter2@[::1]:6379/0?prefix=x", "redis://[::1]:6379/0?prefix=x"),
        ("redis://:hunter2@[::1]:6379", "redis://[::1]:6379/0?prefix=casemate"),
        ("rediss://broker/3?prefix=", "rediss://broker/3?prefix=casemate"),
        ("nats://token@broker", "nats://broker/casemate"),
        ("tls://broker/", "tls://broker/casemate"),
    ],
)
def test_an_address_is_shown_without_its_secrets_and_with_what_it_does_not_say(
    address: str, shown: str
) -> None:
    assert without_secrets(address) == shown
