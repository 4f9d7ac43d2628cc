"""The server and the workers of a quota as processes of their own.

Run as `python processes.py server ADDRESS FOLDER LIMIT NAMES` or `python processes.py worker
ADDRESS FOLDER NAME`. A worker admits one at a time, and says so in a file, until all is used up.
"""

import subprocess
import sys
import threading
from pathlib import Path

from casemate.track.quota import Quota
from casemate.track.quota.quota import join


def serve(address: str, folder: str, limit: str, *names: str) -> None:
    with Quota(int(limit), names, remainder=0.0, transport=address, journal=folder):
        print("serving", flush=True)
        threading.Event().wait()


def work(address: str, folder: str, name: str) -> None:
    place = Path(folder)
    with (
        join(address, name, place / f"{name}.journal") as site,
        open(place / f"{name}.admitted", "ab", buffering=0) as admitted,
    ):
        while not site.closed or site.left:
            if site.acquire():
                admitted.write(b"1")


def started(*arguments: str) -> "subprocess.Popen[bytes]":
    """Start this file as a process."""
    return subprocess.Popen([sys.executable, __file__, *arguments], stdout=subprocess.PIPE)


if __name__ == "__main__":
    if sys.argv[1] == "server":
        serve(*sys.argv[2:])
    else:
        work(*sys.argv[2:])
