"""Top-level names that nobody can reach from a command, a door or the papers: there are to be none.

A name reaches what its definition mentions; a decorator of one's own (`@app.command`) reaches
what it decorates, and a module that is reached runs its loose statements. Roots are the command
line, the names that doors list, and everything in `casemate.papers`. Also printed: names that a
door lists and nothing outside its room imports.
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
MODULES = {
    ".".join(path.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): path
    for path in sorted((SOURCE / "casemate").rglob("*.py"))
}
TREES = {module: ast.parse(path.read_text()) for module, path in MODULES.items()}
DEEPEST_DOOR = 2
LOOSE = ""
"""The statements of a module that define nothing."""

Name = tuple[str, str]


def brought(node: ast.AST) -> Iterator[tuple[str, Name]]:
    """What an import of ours binds, and what that stands for; a whole module has the name ''."""
    if isinstance(node, ast.ImportFrom) and str(node.module).startswith("casemate"):
        for alias in node.names:
            whole = f"{node.module}.{alias.name}"
            name = (whole, LOOSE) if whole in MODULES else (str(node.module), alias.name)
            yield alias.asname or alias.name, name


def imported(module: str) -> dict[str, Name]:
    """What each imported name of a module stands for."""
    return dict(each for node in ast.walk(TREES[module]) for each in brought(node))


IMPORTED = {module: imported(module) for module in MODULES}


def defined(statement: ast.stmt) -> list[str]:
    """The names that a top-level statement binds."""
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Assign | ast.AnnAssign):
        targets = statement.targets if isinstance(statement, ast.Assign) else [statement.target]
        inside = (node for target in targets for node in ast.walk(target))
        return [node.id for node in inside if isinstance(node, ast.Name)]
    return []


DEFINED = {
    module: {name for statement in tree.body for name in defined(statement)}
    for module, tree in TREES.items()
}


def resolved(name: Name) -> Name:
    """The place where a name is defined, through doors."""
    module, own = name
    while own and module in MODULES and own not in DEFINED[module] and own in IMPORTED[module]:
        module, own = IMPORTED[module][own]
    return module, own


def mentioned(module: str, node: ast.AST) -> Iterator[Name]:
    """The names of ours that a piece of code mentions; strings may be annotations or commands."""
    read = {each.value for each in ast.walk(node) if isinstance(each, ast.Attribute)}
    here = IMPORTED[module] | dict(each for part in ast.walk(node) for each in brought(part))
    for each in ast.walk(node):
        if isinstance(each, ast.Attribute) and isinstance(each.value, ast.Name):
            whole = here.get(each.value.id)
            if whole is not None and whole[1] == LOOSE:
                yield resolved((whole[0], each.attr))
        if isinstance(each, ast.Name) and each not in read:  # a module handed on, with all of it
            whole = here.get(each.id)
            if whole is not None and whole[1] == LOOSE:
                yield from ((whole[0], name) for name in DEFINED[whole[0]])
        if isinstance(each, ast.Name):
            yield from _meaning(module, each.id)
        if isinstance(each, ast.Constant) and isinstance(each.value, str):
            yield from _meaning(module, each.value)
            place, _, attribute = each.value.partition(":")
            if place in MODULES and attribute:
                yield place, attribute
        yield from (resolved(name) for _, name in brought(each))


def _meaning(module: str, word: str) -> Iterator[Name]:
    if word in DEFINED[module]:
        yield module, word
    elif word in IMPORTED[module]:
        yield resolved(IMPORTED[module][word])


def graph() -> dict[Name, set[Name]]:
    """Which names each name mentions."""
    edges: dict[Name, set[Name]] = defaultdict(set)
    for module, tree in TREES.items():
        for statement in tree.body:
            if isinstance(statement, ast.Import | ast.ImportFrom | ast.If):
                continue
            names = set(mentioned(module, statement))
            for own in defined(statement) or [LOOSE]:
                edges[module, own] |= names | {(module, LOOSE)}
            for decorator in getattr(statement, "decorator_list", []):
                for name in mentioned(module, decorator):
                    if name[0] == module:
                        edges[name] |= {(module, own) for own in defined(statement)}
    return edges


def names_of(door: str) -> set[str]:
    """The names that a door lists."""
    return set(IMPORTED[door]) - {"lazily", "_version"}


def listed() -> dict[str, set[Name]]:
    """The names that each door lists, where they are defined."""
    return {
        module: {resolved((module, name)) for name in names_of(module)}
        for module, path in MODULES.items()
        if path.name == "__init__.py" and module.count(".") <= DEEPEST_DOOR
    }


def reached() -> set[Name]:
    """Everything that a command, a door or the papers come to."""
    edges, found = graph(), set[Name]()
    left: list[Name] = [("casemate.cli.main", "run"), ("casemate.__main__", LOOSE)]
    left += [("casemate.facade", "lazily")]
    left += [name for names in listed().values() for name in names]
    left += [(m, own) for m in MODULES if m.startswith("casemate.papers.") for own in DEFINED[m]]
    while left:
        name = left.pop()
        if name not in found:
            found.add(name)
            left += edges.get(name, ())
    return found


def used_outside() -> set[tuple[str, str]]:
    """Names that another room, a test, a page or a benchmark imports from a door."""
    found = set()
    for module, tree in TREES.items():
        room = module.split(".")[1:2]
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and str(node.module).split(".")[1:2] != room:
                found |= {(str(node.module), alias.name) for alias in node.names}
    texts = [*ROOT.glob("tests/**/*.py"), *ROOT.glob("benchmarks/*.py"), *ROOT.glob("docs/**/*.md")]
    outside = "\n".join(path.read_text() for path in [*texts, ROOT / "README.md"])
    for door in listed():
        found |= {(door, name) for name in names_of(door) if door in outside and name in outside}
    return found


def main() -> int:
    """Print what cannot be reached; 1 if there is anything."""
    found = reached()
    lost = [
        (module, name)
        for module in MODULES
        for name in sorted(DEFINED[module])
        if (module, name) not in found and not name.startswith("__")
    ]
    for module, name in lost:
        print(f"{MODULES[module].relative_to(ROOT)}: {name} cannot be reached")
    used = used_outside()
    idle = [
        (door, name)
        for door in listed()
        for name in names_of(door) - {n for d, n in used if d == door}
    ]
    for door, name in idle:
        print(f"{door}: {name} is listed, and nobody outside imports it")
    return int(bool(lost or idle))


if __name__ == "__main__":
    sys.exit(main())
