"""Files that only their owner may use, opened so that nobody can put another in their place.

A name that is a symbolic link is not followed: whoever can write to the folder could point it at
a file of their choice, which would then be read as a secret or written over. A file that belongs
to somebody else is not used either, since its owner reads and changes it at will.
"""

import os
import stat
from pathlib import Path

from casemate.errors import Misconfigured

EVERYBODY_ELSE = 0o077
WRITTEN_BY_OTHERS = 0o022


def open_private(path: Path, flags: int, forbidden: int = EVERYBODY_ELSE) -> int:
    """A handle of a plain file that is ours and that nobody else may use, made if `flags` say so.

    `forbidden` are the permissions that others must not have.
    """
    handle = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        require_private(path, os.fstat(handle), forbidden)
    except BaseException:
        os.close(handle)
        raise
    return handle


def require_private(path: Path, found: os.stat_result, forbidden: int = EVERYBODY_ELSE) -> None:
    """Refuse a file that is not ours alone, or no plain file."""
    if not stat.S_ISREG(found.st_mode):
        raise Misconfigured(f"{path} is no plain file; move away what is there, and ask again")
    if found.st_uid not in (os.geteuid(), 0):
        raise Misconfigured(
            f"{path} belongs to somebody else, who can read and change it; move it away, or run "
            f"casemate as its owner"
        )
    if found.st_mode & forbidden:
        raise Misconfigured(
            f"{path} may be used by others than its owner; delete it if they may have read or "
            f"changed it, or take the permission away with chmod 600"
        )
