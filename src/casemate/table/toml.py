"""TOML as a policy uses it: sections read key by key, keys and values written.

Every mistake in a section is one sentence that names the file, the key, and what was expected.
"""

import difflib
import json
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from enum import StrEnum
from pathlib import Path
from typing import Any, TypeVar

from casemate.errors import Misconfigured
from casemate.table.schema import Value

T = TypeVar("T")
Choice = TypeVar("Choice", bound=StrEnum)


@dataclass(frozen=True)
class TomlTable:
    """One table of a TOML file."""

    file: Path
    path: tuple[str, ...]
    entries: Mapping[str, Any]

    def mistake(self, key: str, problem: str) -> Misconfigured:
        """The error that says what is wrong with one key of this section."""
        dotted = ".".join(toml_key(part) for part in (*self.path, key))
        return Misconfigured(f"{self.file}: `{dotted}` {problem}")

    def allow(self, *keys: str) -> None:
        """Refuse every key but these."""
        for key in self.entries:
            if key not in keys:
                hint = nearest(key, keys) or f"expected {join_words(keys)}"
                raise self.mistake(key, f"is not a key of this section; {hint}")

    def text(self, key: str) -> str | None:
        """The string under a key; an empty one is a mistake."""
        value = self._require_type(key, str, "a string")
        if value == "":
            raise self.mistake(key, "is empty; expected a string with something in it")
        return value

    def whole(self, key: str, least: int) -> int | None:
        """The whole number under a key, not below `least`."""
        value = self._require_type(key, int, "a whole number")
        if value is not None and value < least:
            raise self.mistake(key, f"must be a whole number of at least {least}")
        return value

    def flag(self, key: str) -> bool | None:
        """The boolean under a key."""
        return self._require_type(key, bool, "true or false")

    def number(self, key: str) -> Decimal | None:
        """The finite number under a key, exactly as it is written."""
        value = self.entries.get(key)
        if value is None:
            return None
        if type(value) not in (int, Decimal) or not Decimal(value).is_finite():
            raise self.mistake(key, f"must be a number, not {toml_type_name(value)}")
        return Decimal(value)

    def choice(self, key: str, options: type[Choice]) -> Choice | None:
        """The member of an enumeration that a key names."""
        value = self.text(key)
        words = [option.value for option in options]
        if value is None or value in words:
            return None if value is None else options(value)
        hint = nearest(value, words)
        expected = "must be " + join_words(words, mark='"')
        raise self.mistake(key, f"{expected}; {hint}" if hint else expected)

    def items(self, key: str) -> list[Any] | None:
        """The array under a key."""
        return self._require_type(key, list, "an array")

    def section(self, key: str) -> "TomlTable | None":
        """The section under a key."""
        entries = self._require_type(key, dict, "a section")
        return None if entries is None else TomlTable(self.file, (*self.path, key), entries)

    def sections(self) -> Iterator[tuple[str, "TomlTable"]]:
        """Every key of this section, each of which must be a section."""
        for key in self.entries:
            inner = self.section(key)
            if inner is not None:
                yield key, inner

    def _require_type(self, key: str, kind: type[T], expected: str) -> T | None:
        value = self.entries.get(key)
        if value is None or type(value) is kind:  # exactly: TOML's true is not a whole number
            return value
        raise self.mistake(key, f"must be {expected}, not {toml_type_name(value)}")


def read_document(file: Path) -> TomlTable:
    """A whole TOML file as a section, its decimal numbers exact."""
    try:
        text = file.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError:
        raise Misconfigured(f"{file} is not UTF-8 text; save it again as UTF-8") from None
    except OSError as error:
        raise Misconfigured(f"cannot read the policy {file}: {error.strerror}") from None
    try:
        return TomlTable(file, (), tomllib.loads(text, parse_float=Decimal))
    except (tomllib.TOMLDecodeError, RecursionError) as error:
        raise Misconfigured(
            f"{file} is not valid TOML at {_place(error, text)}; "
            f"expected [sections] of `key = value` lines"
        ) from None


def _place(error: Exception, text: str) -> str:
    found = re.search(r"\(at (line \d+, column \d+)\)$", str(error))
    end = text.rpartition("\n")[2]
    return found[1] if found else f"line {text.count(chr(10)) + 1}, column {len(end) + 1}"


def nearest(word: str, known: Mapping[str, object] | tuple[str, ...] | list[str]) -> str | None:
    """A guess at what a misspelt word meant, as the end of a sentence."""
    folded = {name.casefold(): name for name in known}
    close = difflib.get_close_matches(word.casefold(), folded, n=1)
    return f"did you mean `{folded[close[0]]}`?" if close else None


def join_words(words: tuple[str, ...] | list[str], mark: str = "`") -> str:
    """Some words as prose: `a`, `b` or `c`."""
    *most, last = [f"{mark}{word}{mark}" for word in words]
    return f"{', '.join(most)} or {last}" if most else last


def toml_type_name(value: object) -> str:
    """What TOML calls a value, without showing it."""
    names = {
        bool: "true or false",
        int: "a whole number",
        str: "a string",
        list: "an array",
        dict: "a section",
        date: "a date",
        datetime: "a date-time",
    }
    if isinstance(value, Decimal):
        return "a number with a fraction" if value.is_finite() else "infinity or nan"
    return names.get(type(value), "a time of day")


def toml_key(key: str) -> str:
    """A key as TOML writes it: bare where that is allowed.

    >>> print(toml_key("ZIP"), toml_key("Blood sugar"))
    ZIP "Blood sugar"
    """
    return key if re.fullmatch(r"[A-Za-z0-9_-]+", key) else toml_value(key)


def toml_value(value: Value | float) -> str:
    """A value as TOML writes it.

    >>> print(toml_value('5" floppy'), toml_value(True), toml_value(Decimal("4.30")))
    "5\\" floppy" true 4.30
    """
    match value:
        case bool():
            return str(value).lower()
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case Decimal():
            return format(value, "f")
        case datetime() | date():
            return value.isoformat()
    return repr(value)
