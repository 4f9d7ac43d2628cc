"""PostgreSQL's dates and timestamps as Python's; what Python cannot hold becomes NULL.

psycopg's own loaders raise an error on infinity and on years before 1 or after 9999, and the error
quotes the value. This module needs psycopg, so it is imported only when a connection is made.
"""

from datetime import date, datetime, timedelta

import psycopg
from psycopg.abc import Buffer
from psycopg.adapt import Loader
from psycopg.pq import Format

EPOCH = datetime(2000, 1, 1)


class DateLoader(Loader):
    """A date: days since the epoch, in four bytes."""

    format = Format.BINARY

    def load(self, data: Buffer) -> date | None:
        """The date, or None."""
        try:
            return EPOCH.date() + timedelta(days=int.from_bytes(data, "big", signed=True))
        except OverflowError:
            return None


class TimestampLoader(Loader):
    """A timestamp: microseconds since the epoch, in eight bytes; with a time zone, in UTC."""

    format = Format.BINARY

    def load(self, data: Buffer) -> datetime | None:
        """The date and time without a zone, or None."""
        try:
            return EPOCH + timedelta(microseconds=int.from_bytes(data, "big", signed=True))
        except OverflowError:
            return None


def tolerate(connection: psycopg.Connection) -> None:
    """Read dates that Python cannot hold as NULL on this connection."""
    connection.adapters.register_loader("date", DateLoader)
    connection.adapters.register_loader("timestamp", TimestampLoader)
    connection.adapters.register_loader("timestamptz", TimestampLoader)
