"""The version, alone in a file so that building the package and `--version` import nothing else."""

VERSION = "0.1.0"
