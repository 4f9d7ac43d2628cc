"""`casemate completion`: what the Tab key may complete, for bash, zsh and fish."""

from pathlib import Path
from typing import Annotated, Literal

from cyclopts import App, Parameter

from casemate.cli.main import app as casemate

Shell = Annotated[Literal["bash", "zsh", "fish"], Parameter(help="The shell you use.")]

app = App(name="completion", help="Complete commands with the Tab key.")


@app.command
def show(shell: Shell, /) -> None:
    """Print the completion script."""
    print(casemate.generate_completion(shell=shell), end="")


@app.command
def install(
    shell: Shell,
    /,
    *,
    output: Annotated[
        Path | None, Parameter(help="Put the script here instead of where the shell looks.")
    ] = None,
    startup: Annotated[
        bool, Parameter(help="Make ~/.bashrc or ~/.zshrc load it; fish needs no such line.")
    ] = True,
) -> None:
    """Put the completion script where the shell finds it, and say where that is."""
    where = casemate.install_completion(shell=shell, output=output, add_to_startup=startup)
    print(f"wrote {where}; open a new {shell} to use it")
