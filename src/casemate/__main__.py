"""`python -m casemate` is the command `casemate`."""

from casemate.cli import run

if __name__ == "__main__":
    run()
