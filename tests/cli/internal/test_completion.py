import os
import subprocess
from pathlib import Path

import pytest
from cli.running import Captured, told

from casemate.cli.main import exit_code


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, so that nobody's start-up files are touched."""
    monkeypatch.setenv("HOME", str(tmp_path))
    for name in ("ZSH", "ZSH_CUSTOM"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def completed(script: Path, *words: str) -> set[str]:
    """What bash offers after these words, with the script loaded."""
    line = " ".join(words)
    ask = f"""
        source {script}
        COMP_WORDS=({line} '') COMP_CWORD={len(words)}
        COMP_LINE='{line} ' COMP_POINT={len(line) + 1}
        _casemate casemate '' '{words[-1]}'
        printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    shown = subprocess.run(["bash", "-c", ask], capture_output=True, text=True, check=True)
    return {word.strip() for word in shown.stdout.splitlines()}


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_knows_the_commands_their_commands_and_their_options(
    shell: str, home: Path, capsys: Captured
) -> None:
    script = home / "script"
    script.write_text(told(capsys, "completion", "show", shell))
    words = ("policy", "demo", "completion", "check", "--output")
    assert all(word in script.read_text() for word in words)
    if shell == "bash":
        assert {"policy", "demo", "completion"} <= completed(script, "casemate")
        assert {"init", "check"} <= completed(script, "casemate", "policy")
        assert {"bash", "zsh", "fish"} <= completed(script, "casemate", "completion", "show")


@pytest.mark.parametrize(
    ("shell", "script", "startup"),
    [
        ("bash", ".local/share/bash-completion/completions/casemate", ".bashrc"),
        ("zsh", ".zsh/completions/_cyclopts_casemate", ".zshrc"),
        ("fish", ".config/fish/completions/casemate.fish", None),
    ],
)
def test_installing_puts_the_script_where_the_shell_looks(
    shell: str, script: str, startup: str | None, home: Path, capsys: Captured
) -> None:
    for _ in range(2):  # once more changes nothing
        assert exit_code(["completion", "install", shell]) == 0
    assert (home / script).is_file()
    printed = capsys.readouterr().out.splitlines()
    assert printed == [f"wrote {home / script}; open a new {shell} to use it"] * 2
    if startup is not None:
        lines = (home / startup).read_text().splitlines()
        assert len([line for line in lines if not line.startswith("#")]) == 1


def test_start_up_files_can_be_left_alone(home: Path) -> None:
    script = home / "here"
    arguments = ["completion", "install", "bash", "--output", str(script), "--no-startup"]
    assert exit_code(arguments) == 0
    assert os.listdir(home) == ["here"]
