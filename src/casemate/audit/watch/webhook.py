"""Events posted to a URL: one JSON object each, in order, until the other side has taken it."""

import time
from collections.abc import Callable
from http.client import HTTPException
from typing import Any
from urllib.error import URLError
from urllib.parse import urlsplit
from urllib.request import HTTPRedirectHandler, Request, build_opener

from casemate.errors import Misconfigured

TIMEOUT_SECONDS = 5.0
FIRST_WAIT_SECONDS, LONGEST_WAIT_SECONDS = 1.0, 300.0
"""Between two attempts; it doubles from one to the next."""


class _NoRedirect(HTTPRedirectHandler):
    """A redirected POST would arrive as a GET without the event: that is not a delivery."""

    def redirect_request(self, *_: Any) -> None:
        return None


class Webhook:
    """Where events go; while it is down, attempts become rarer."""

    def __init__(self, url: str, clock: Callable[[], float] = time.monotonic) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise Misconfigured("--webhook is an address that begins with http:// or https://")
        self._url, self._clock = url, clock
        self._opener = build_opener(_NoRedirect)
        self._next, self._wait = -1.0, FIRST_WAIT_SECONDS

    @property
    def seconds_to_wait(self) -> float:
        """How long until the next attempt."""
        return max(0.0, self._next - self._clock())

    def post(self, text: str) -> bool:
        """Whether the event was taken; not tried while an attempt that failed is recent."""
        if self.seconds_to_wait:
            return False
        headers = {"Content-Type": "application/json"}
        request = Request(self._url, text.encode(), headers, method="POST")
        try:
            with self._opener.open(request, timeout=TIMEOUT_SECONDS):
                pass
        except (URLError, OSError, HTTPException):
            self._next = self._clock() + self._wait
            self._wait = min(2 * self._wait, LONGEST_WAIT_SECONDS)
            return False
        self._wait = FIRST_WAIT_SECONDS
        return True
