"""Every block of code in the README and on the site's pages is run, and its output compared.

- A `python` block is run after those before it on its page, in one namespace.
- A `sh` block is run line by line: `brane` commands through the command line, others are only looked up.
- A `text` block right after either is its output; `...` in it stands for anything.
- `<!-- file: NAME -->` before a `text` block writes it to a file for the commands that follow.
- `<!-- fails -->` before a `sh` block: its command ends with exit code 2, and its output is the error.
- `<!-- stderr -->` before a `sh` block: its output is what the command tells on standard error.
- `<!-- not run: REASON -->` before a block: only its syntax and its options are checked.

All of it happens in an empty folder per page, without the published datasets.
"""

import contextlib
import doctest
import io
import re
import shlex
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from markdown_it import MarkdownIt
from typer.main import get_command
from typer.testing import CliRunner

from neural_brane.cli.app import app

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
SAME = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


class Block(NamedTuple):
    """A fenced block with what stands around it."""

    language: str
    text: str
    line: int
    note: str  # the HTML comment right before it, or ""
    output: str | None  # the text block right after it


def blocks(page: str) -> list[Block]:
    """The blocks of a page that are code, files or text that nothing explains; outputs are with their block."""
    tokens = MarkdownIt().enable("table").parse(page)
    found: list[Block] = []
    for before, token in zip([None, *tokens], tokens, strict=False):
        language = token.info.strip() if token.type == "fence" else "{"
        if language.startswith("{"):  # a directive of the site
            continue
        note = before.content.strip() if before is not None and before.type == "html_block" else ""
        if language == "text" and not note and before is not None and before.type == "fence" and found:
            found[-1] = found[-1]._replace(output=token.content)
            continue
        found.append(Block(language, token.content, token.map[0] + 1, note, None))
    return found


def commands(text: str) -> list[list[str]]:
    """The words of each command; a backslash at the end of a line joins it with the next."""
    lines = text.replace("\\\n", " ").splitlines()
    return [words for line in lines if (words := shlex.split(line, comments=True))]


def run_python(block: Block, names: dict) -> str:
    """Run a block in a page's namespace; returns what it printed."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        exec(compile(block.text, f"line {block.line}", "exec"), names)
    return printed.getvalue()


def run_shell(block: Block) -> str:
    """Run the `brane` commands of a block; returns the output of the last, or its error where it is meant to fail."""
    output = ""
    for command, *arguments in commands(block.text):
        if command != "brane":
            look_up(command, arguments)
            continue
        result = CliRunner().invoke(app, arguments)
        assert result.exit_code == (2 if block.note == "<!-- fails -->" else 0), result.output
        output = result.stderr if result.exit_code or block.note == "<!-- stderr -->" else result.stdout
    return output


def look_up(command: str, arguments: list[str]) -> None:
    """Check that what another command names exists: a target, an extra, a script."""
    if command == "make":
        makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
        assert all(re.search(rf"^{target}:", makefile, re.MULTILINE) for target in arguments), arguments
    elif command == "pip":
        extras = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"][
            "optional-dependencies"
        ]
        named = [extra for part in arguments for listed in re.findall(r"\[(.*)\]", part) for extra in listed.split(",")]
        assert set(named) <= set(extras), named
    elif command == "python":
        scripts = [part for part in arguments if part.endswith(".py")]
        assert scripts, arguments
        assert all((ROOT / script).is_file() for script in scripts), scripts
    else:
        raise AssertionError(f"nothing checks the command {command!r}")


def check_command(command: str, *arguments: str) -> None:
    """Check a command without running it: its options and the choices they allow are known."""
    if command != "brane":
        look_up(command, list(arguments))
        return
    group = get_command(app)
    name, *rest = arguments
    assert name in group.commands, name
    group.commands[name].make_context(name, rest)  # parses; raises UsageError


def check(page: Path, folder: Path) -> None:
    """Run a page's blocks from top to bottom."""
    names: dict = {"__name__": "page"}
    for block in blocks(page.read_text(encoding="utf-8")):
        where = f"{page.name}:{block.line}"
        if block.note.startswith("<!-- not run: "):
            if block.language == "python":
                compile(block.text, where, "exec")
            for words in commands(block.text) if block.language == "sh" else []:
                check_command(*words)
        elif block.note.startswith("<!-- file: "):
            name = block.note.removeprefix("<!-- file: ").removesuffix(" -->")
            (folder / name).write_text(block.text, encoding="utf-8")
        else:
            assert block.language in ("python", "sh"), f"{where}: nothing checks this block; say why it is not run"
            found = run_python(block, names) if block.language == "python" else run_shell(block)
            if block.output is not None:
                same = doctest.OutputChecker().check_output(block.output, found, SAME)
                assert same, f"{where}: printed\n{found}\ninstead of\n{block.output}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_block_does_what_the_page_says(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEURAL_BRANE_DATA", str(tmp_path / "none"))
    check(page, tmp_path)


WRONG = {
    "another output": ("```python\nprint(1)\n```\n\n```text\n2\n```\n", "instead of"),
    "an exception": ("```python\n1 / 0\n```\n", "division by zero"),
    "a command that fails": ("```sh\nbrane embed nothing -o v.npz\n```\n", "neither a file nor a dataset"),
    "a command that does not fail": ("<!-- fails -->\n```sh\nbrane datasets\n```\n", "stdlib"),
    "an unknown option": ("<!-- not run: long -->\n```sh\nbrane embed x --colour red -o v.npz\n```\n", "--colour"),
    "an unknown command": ("<!-- not run: long -->\n```sh\nbrane paint\n```\n", "paint"),
    "broken code": ("<!-- not run: long -->\n```python\na b\n```\n", "invalid syntax"),
    "an unknown target": ("```sh\nmake coffee\n```\n", "coffee"),
    "an unknown extra": ("```sh\npip install '.[moon]'\n```\n", "moon"),
    "a block without a reason": ("```\nanything\n```\n", "nothing checks this block"),
}


@pytest.mark.parametrize("what", WRONG)
def test_a_wrong_page_is_found_out(what, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, expected = WRONG[what]
    page = tmp_path / "page.md"
    page.write_text(text)
    with pytest.raises(Exception, match=re.escape(expected)):
        check(page, tmp_path)
