"""What was typed before, for the arrow keys: kept in a file for its owner alone."""

import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

LONGEST = 1_000
"""Lines that are kept."""


def history_file(environment: Mapping[str, str] = os.environ) -> Path:
    """`casemate/history` in the folder for a user's state.

    >>> str(history_file({"XDG_STATE_HOME": "/state"}))
    '/state/casemate/history'
    """
    given = environment.get("XDG_STATE_HOME", "")
    state = Path(given) if Path(given).is_absolute() else Path.home() / ".local" / "state"
    return state / "casemate" / "history"


@contextmanager
def remembered(path: Path) -> Iterator[None]:
    """Inside, typed lines can be edited and called back, those of earlier times too.

    Without readline lines are typed as they are. A file that cannot be read or written is no
    reason to end a conversation.
    """
    try:
        import readline
    except ImportError:  # some builds of Python have none
        yield
        return
    readline.clear_history()
    for line in _read(path):
        readline.add_history(line)
    try:
        yield
    finally:
        count = readline.get_current_history_length()
        kept = [readline.get_history_item(place + 1) for place in range(count)]
        with suppress(OSError):
            _write(path, kept[-LONGEST:])


def _read(path: Path) -> list[str]:
    with suppress(OSError):
        return path.read_text(encoding="utf-8", errors="replace").splitlines()
    return []


def _write(path: Path, lines: Sequence[str | None]) -> None:
    """Replace the file as a whole; only its owner may read it."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    handle, new = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}.")  # of mode 0600
    try:
        with os.fdopen(handle, "w", encoding="utf-8", errors="replace") as file:
            file.writelines(f"{line}\n" for line in lines if line is not None)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise
