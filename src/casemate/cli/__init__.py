"""The command line: one file per verb, heavy modules imported only when a command runs."""
