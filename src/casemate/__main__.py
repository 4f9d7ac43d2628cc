"""`python -m casemate` is the command `casemate`."""

from casemate.cli.main import run

if __name__ == "__main__":
    run()
