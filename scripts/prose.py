"""Count prose that is hard to read, and draw sentences at random to be read by a person.

    python scripts/prose.py count                    count this checkout
    python scripts/prose.py count OTHER              count another checkout as well, side by side
    python scripts/prose.py draw OTHER --seed 0      draw sentences of another checkout, with their place

The counts are measures, not rules: no test enforces them. The source is read as text and not imported.
"""

from __future__ import annotations

import argparse
import ast
import io
import random
import re
import tokenize
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

HERE = Path(__file__).parents[1]
LONGEST = 200  # characters of an error's fixed text
DRAWN = 6  # sentences of each kind
DIRECTIVE = re.compile(r"#\s*(noqa|fmt:|type:|pragma|!|mypy:)")
HANGING = re.compile(r"(of|that|whose|what|which|where|as)\b", re.IGNORECASE)
REFERENCE = re.compile(r"<!-- reference: (\S+) *([^>]*?) *-->")  # module of the reference, selected names
SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z`])")


class Text(NamedTuple):
    """A text that a person reads, and its place."""

    place: str
    text: str


def main() -> None:
    """Run the command of the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["count", "draw"])
    parser.add_argument("others", nargs="*", type=Path, help="other checkouts")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    given = parser.parse_args()
    if given.command == "draw":
        draw(given.others[0] if given.others else HERE, random.Random(given.seed))  # noqa: S311
        return
    columns = [count(root) for root in [*given.others, HERE]]
    for name in columns[0]:
        print(f"{name:62}", *(f"{column[name]:>7,}" for column in columns))


def count(root: Path) -> dict[str, int]:
    """Return every count of a checkout by name."""
    files = sorted((root / "src").rglob("*.py"))
    openings = [text.split(maxsplit=1)[0] for file in files for _, text in docstrings(file)]
    comments = [comment for file in files for comment in own_lines(file)]
    beside = [text for file in files for _, text in trailing(file)]
    public = list(public_definitions(root))
    return {
        "docstrings that open with 'What' or 'Of'": sum(word in ("What", "Of") for word in openings),
        "comments on lines of their own that are no sentence": sum(not is_sentence(text) for _, text in comments),
        "comments beside code that open with a hanging clause": sum(bool(HANGING.match(text)) for text in beside),
        f"errors and warnings with over {LONGEST} characters of fixed text": sum(
            len(text) > LONGEST for file in files for _, text in messages(file)
        ),
        "public functions without a documented return": sum(
            returns(node) and not documents_return(text) for node in public if (text := ast.get_docstring(node))
        ),
        "methods without documented learned attributes": sum(
            not declares_learned(node, classes_of(root)) for node in classes_of(root).values() if is_method(node)
        ),
    }


def draw(root: Path, chance: random.Random) -> None:
    """Print `DRAWN` sentences of each kind, each with its place."""
    files = sorted((root / "src").rglob("*.py"))
    kinds = {
        "help": [text for file in files if "cli" in file.parts for text in help_texts(file)],
        "errors": [text for file in files for text in messages(file)],
        "docstrings": [text for file in files for text in docstrings(file)],
        "comments": [text for file in files for text in own_lines(file)],
        "pages": [text for file in sorted((root / "docs").glob("*.md")) for text in paragraphs(file)],
    }
    for kind, texts in kinds.items():
        print(f"\n## {kind}")
        for place, text in chance.sample(texts, DRAWN):
            prose = re.split(r"\n\s*(?:>>>|Parameters\n)", text)[0]
            sentences = SENTENCE.split(" ".join(prose.split()))
            print(f"{Path(place).relative_to(root)}: {chance.choice(sentences)}")


def docstrings(file: Path) -> Iterator[Text]:
    """Yield the docstrings of a file."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and (text := ast.get_docstring(node)):
            yield Text(f"{file}:{getattr(node, 'name', '')}", text)


def tokens(file: Path) -> Iterator[tokenize.TokenInfo]:
    """Yield the comments of a file, without directives."""
    for token in tokenize.generate_tokens(io.StringIO(file.read_text(encoding="utf-8")).readline):
        if token.type == tokenize.COMMENT and not DIRECTIVE.match(token.string):
            yield token


def own_lines(file: Path) -> Iterator[Text]:
    """Yield the comments on lines of their own; adjacent lines are one comment."""
    block, last = "", -1
    for token in tokens(file):
        if token.line.strip().startswith("#"):
            line = token.start[0]
            if block and line != last + 1:
                yield Text(f"{file}:{last}", block)
                block = ""
            block, last = f"{block} {token.string.lstrip('# ')}".strip(), line
    if block:
        yield Text(f"{file}:{last}", block)


def trailing(file: Path) -> Iterator[Text]:
    """Yield the comments that follow code on their line."""
    for token in tokens(file):
        if not token.line.strip().startswith("#"):
            yield Text(f"{file}:{token.start[0]}", token.string.lstrip("# "))


def is_sentence(text: str) -> bool:
    """Return whether a comment begins and ends as a sentence does."""
    return not HANGING.match(text) and not text[0].islower() and text.rstrip("`")[-1] in ".:?!"


def fixed_text(node: ast.AST) -> str:
    """Return the literal parts of a string, an f-string or a sum of them."""
    return "".join(
        str(one.value) for one in ast.walk(node) if isinstance(one, ast.Constant) and isinstance(one.value, str)
    )


def messages(file: Path) -> Iterator[Text]:
    """Yield the fixed text of every error that is raised and every warning."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        call = node.exc if isinstance(node, ast.Raise) else node
        raised = isinstance(node, ast.Raise) and isinstance(call, ast.Call)
        warned = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "warn"
        if (raised or warned) and isinstance(call, ast.Call) and call.args and (text := fixed_text(call.args[0])):
            yield Text(f"{file}:{call.lineno}", text)


def help_texts(file: Path) -> Iterator[Text]:
    """Yield the help of options and commands."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.keyword) and node.arg == "help" and fixed_text(node.value):
            yield Text(f"{file}:{node.value.lineno}", fixed_text(node.value))
        elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "reading":
            yield Text(f"{file}:{node.lineno}", fixed_text(node.args[1]))


def paragraphs(file: Path) -> Iterator[Text]:
    """Yield the paragraphs of a page that are prose."""
    text = re.sub(r"^```.*?^```", "", file.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)
    for block in re.split(r"\n\s*\n", text):
        if block.strip() and block.strip()[0] not in "#|<!-:{(":
            yield Text(str(file), block)


def classes_of(root: Path) -> dict[str, ast.ClassDef]:
    """Return the classes of the methods' files by name."""
    files = sorted((root / "src/neural_brane/methods").rglob("*.py"))
    nodes = (node for file in files for node in ast.parse(file.read_text(encoding="utf-8")).body)
    return {node.name: node for node in nodes if isinstance(node, ast.ClassDef)}


def assigned(node: ast.ClassDef) -> set[str]:
    """Return the names that the body of a class assigns."""
    targets = [one.targets[0] if isinstance(one, ast.Assign) else one.target
               for one in node.body if isinstance(one, ast.Assign | ast.AnnAssign)]  # fmt: skip
    return {target.id for target in targets if isinstance(target, ast.Name)}


def is_method(node: ast.ClassDef) -> bool:
    """Return whether a class is one of the methods: it assigns a title and a growth."""
    return {"title", "growth"} <= assigned(node)


def declares_learned(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> bool:
    """Return whether a class, or a base of it below `Embedder`, says what it learns."""
    bases = [
        base.id for base in node.bases if isinstance(base, ast.Name) and base.id not in ("Embedder", "Parametrised")
    ]
    return "learns" in assigned(node) or any(
        declares_learned(classes[base], classes) for base in bases if base in classes
    )


def public_definitions(root: Path) -> Iterator[ast.FunctionDef]:
    """Yield the functions and methods that the pages of the reference list."""
    for page in sorted((root / "docs/api").glob("*.md")):
        for module, chosen in REFERENCE.findall(page.read_text(encoding="utf-8")):
            home = root / "src" / Path(*module.split("."))
            files = [home.with_suffix(".py")] if home.with_suffix(".py").exists() else sorted(home.rglob("*.py"))
            for node in (node for file in files for node in ast.parse(file.read_text(encoding="utf-8")).body):
                named = getattr(node, "name", "_")
                if named.startswith("_") or (chosen and named not in chosen.split()):
                    continue
                if isinstance(node, ast.FunctionDef):
                    yield node
                elif isinstance(node, ast.ClassDef):
                    yield from (one for one in node.body if isinstance(one, ast.FunctionDef) and one.name[0] != "_")


def returns(node: ast.FunctionDef) -> bool:
    """Return whether a function returns a value; properties and context managers are described by their docstrings."""
    shown = ast.unparse(node.returns) if node.returns else "None"
    decorators = {ast.unparse(one) for one in node.decorator_list}
    return shown not in ("None", "NoReturn") and not decorators & {"property", "cached_property", "contextmanager"}


def documents_return(text: str) -> bool:
    """Return whether a docstring has a section about the result, or says in words what is returned."""
    return bool(re.search(r"^(Returns|Yields)\n-+|\b(return|yield)s?\b", text, re.MULTILINE | re.IGNORECASE))


if __name__ == "__main__":
    main()
