"""Finds each number made with `scaled` and the tests that use it, by reading the code of the tests.

A test uses a number that it names, or that a helper or a fixture that it names uses.
"""

import ast
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tests.sizes import SIZES

ROOT = Path(__file__).resolve().parent.parent


@dataclass(frozen=True)
class Size:
    """The smallest run that has a test, and whether larger ones have it again."""

    name: str
    grows: bool


Number = tuple[str, int, tuple[str, ...]]
"""The file of a call of `scaled`, its line and its sizes."""


@dataclass
class Definition:
    """A function or a value of a module: the numbers made in it, and the names in it."""

    node: ast.stmt
    numbers: set[Number] = field(default_factory=set)
    names: set[str] = field(default_factory=set)


@dataclass
class Module:
    """The definitions of a file of tests, and the sources of the names that it imports."""

    folder: str
    definitions: dict[str, Definition] = field(default_factory=dict)
    imported: dict[str, tuple[str, str]] = field(default_factory=dict)


def read_modules(texts: Mapping[str, str]) -> dict[str, Module]:
    """Return modules by dotted name, from their texts by path."""
    return {
        path.removesuffix(".py").replace("/", "."): _read_module(path, text)
        for path, text in texts.items()
    }


def read_tests() -> dict[str, str]:
    """Return the text of each file of the tests, by its path."""
    files = (file for file in (ROOT / "tests").rglob("*.py") if "node_modules" not in file.parts)
    return {str(file.relative_to(ROOT)): file.read_text(encoding="utf-8") for file in files}


def find_users(modules: Mapping[str, Module]) -> dict[Number, list[Size]]:
    """Return the sizes of the tests that use each number."""
    users: dict[Number, list[Size]] = {}
    for dotted, module in modules.items():
        for name, definition in module.definitions.items():
            for number in _numbers_of(modules, dotted, name):
                of_number = users.setdefault(number, [])
                if name.startswith("test_"):
                    of_number.append(_size_of(module, definition.node))
    return users


def size_of_module(module: Module) -> str:
    """Return the size that `pytestmark` says."""
    found = filter(None, map(_read_mark, _marks_of_module(module)))
    return max((size.name for size in found), key=SIZES.index, default=SIZES[0])


def find_faults(modules: Mapping[str, Module]) -> list[str]:
    """Return a sentence for each number that no run of its size uses."""
    faults = []
    for (path, line, sizes), users in sorted(find_users(modules).items()):
        place = f"{path}:{line}: scaled"
        if not users:
            faults.append(f"{place}: no test uses it")
            continue
        own = min(SIZES.index(user.name) for user in users)
        for size in sizes:
            position = SIZES.index(size)
            taking = [each for each in users if SIZES.index(each.name) <= position]
            if position < own:
                faults.append(f"{place}({size}=...): the smallest run of its tests is {SIZES[own]}")
            elif not any(each.grows or each.name == size for each in taking):
                faults.append(f"{place}({size}=...): none of its tests grows, or is of that size")
    return faults


def _read_module(path: str, text: str) -> Module:
    module = Module(path.rpartition("/")[0])
    for node in ast.parse(text, filename=path).body:
        match node:
            case ast.ImportFrom(module=str(source)) if source.startswith("tests."):
                for alias in node.names:
                    module.imported[alias.asname or alias.name] = (source, alias.name)
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef():
                module.definitions[node.name] = _read_definition(path, node)
            case ast.Assign(targets=[ast.Name(id=name)]) | ast.AnnAssign(target=ast.Name(id=name)):
                module.definitions[name] = _read_definition(path, node)
    return module


def _read_definition(path: str, statement: ast.stmt) -> Definition:
    definition = Definition(statement)
    for node in ast.walk(statement):
        match node:
            case ast.Call(func=ast.Name(id="scaled"), keywords=words):
                sizes = tuple(str(word.arg) for word in words)
                definition.numbers.add((path, node.lineno, sizes))
            case ast.Name(id=name) | ast.arg(arg=name):
                definition.names.add(name)
    return definition


def _numbers_of(modules: Mapping[str, Module], dotted: str, name: str) -> set[Number]:
    """Return the numbers that a definition uses, itself or by what it names."""
    numbers: set[Number] = set()
    places = [(dotted, name)]
    for module, definition in places:  # grows as it is read
        found = modules[module].definitions[definition]
        numbers |= found.numbers
        named = (_place_of(modules, module, each) for each in found.names)
        places += {place for place in named if place} - set(places)
    return numbers


def _place_of(modules: Mapping[str, Module], dotted: str, name: str) -> tuple[str, str] | None:
    """Return where a name is defined: in the module, where that imports it, or in a conftest."""
    module = modules[dotted]
    if name in module.definitions:
        return dotted, name
    source, original = module.imported.get(name, ("", ""))
    if source in modules and original in modules[source].definitions:
        return source, original
    folders = module.folder.split("/")
    for depth in range(len(folders), 0, -1):
        conftest = ".".join([*folders[:depth], "conftest"])
        if conftest in modules and name in modules[conftest].definitions:
            return conftest, name
    return None


def _size_of(module: Module, test: ast.stmt) -> Size:
    """Return the size of a test by the marks of its file and its own, but not those of cases."""
    marks = [*_marks_of_module(module), *getattr(test, "decorator_list", [])]
    found = [Size(SIZES[0], grows=False), *filter(None, map(_read_mark, marks))]
    largest = max(found, key=lambda size: SIZES.index(size.name))
    return Size(largest.name, any(size.grows for size in found))


def _marks_of_module(module: Module) -> list[ast.expr]:
    match module.definitions.get("pytestmark"):
        case Definition(node=ast.Assign(value=ast.List(elts=several))):
            return several
        case Definition(node=ast.Assign(value=single)):
            return [single]
    return []


def _read_mark(mark: ast.expr) -> Size | None:
    match mark:
        case ast.Call(func=ast.Attribute(attr="size"), args=[ast.Constant(value=str(name))]):
            return Size(name, grows=any(word.arg == "grows" for word in mark.keywords))
    return None
