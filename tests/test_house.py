"""The rules that hold for the repository as a whole, and proof that each of them would notice."""

import ast
import importlib.metadata
import re
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest

from tests.own_journal import IS_OWN

ROOT = Path(__file__).resolve().parent.parent
LINT_IMPORTS = "from importlinter.cli import lint_imports_command as lint; lint()"

# The code that runs in production: both packages, and Pelican's settings.
PRODUCT = ("edge_api/", "site_build/", "pelicanconf.py")
APART = "benchmarks/peers/apart/"

# Each pattern is written so that it does not match its own line.
FORBIDDEN = {
    "registry host": re.compile(
        r"py[p]i\.org|python[h]osted|npm[j]s\.(org|com)|deb\.deb[i]an\.org|security\.deb[i]an"
    ),
    "machine path": re.compile(r"(?<![\w.$})>-])/(work|farm|root|home|Users|opt)/[A-Za-z.]"),
    "private key": re.compile(r"-----BEGIN [A-Z ]*PRIVATE[ ]KEY-----"),
    "credential of ours": re.compile(r"\bfe_(sk|mt|cs|rt|ac|cl)_[0-9A-Za-z]{49}\b"),
    "credential of a service": re.compile(
        r"\b(AKIA[0-9A-Z]{16}|gh[pousr]_[0-9A-Za-z]{36}|xox[abprs]-[0-9A-Za-z-]{20}|sk-[\w-]{32})"
    ),
}
SAMPLES = [
    ("registry host", "https://files.python" + "hosted.org/packages/x.whl"),
    ("registry host", "index-url = https://py" + "pi.org/simple"),
    ("machine path", "see '/ro" + "ot/notes.txt'"),
    ("machine path", "cd /wo" + "rk/main"),
    ("private key", "-----BEGIN EC PRIVATE" + " KEY-----"),
    ("credential of ours", "fe_sk" + "_" + "a1B2c3D" * 7),
    ("credential of a service", "token: gh" + "p_" + "a1B2c3" * 6),
]

# A line planted in a module, and how the name of the contract begins that has to notice it.
VIOLATIONS = [
    ("edge_api/leads/planted.py", "import edge_api.http", "The edge is a line"),
    ("edge_api/db/planted.py", "VALUE = 1", "Within the database"),
    ("edge_api/planted.py", "VALUE = 1", "The edge is a line"),
    ("edge_api/leads/planted.py", "import edge_api.db.sql", "Only what opens, backs up"),
    ("edge_api/http/planted.py", "import edge_api.db.sqlite", "Only what opens, backs up"),
    (
        "edge_api/leads/planted.py",
        "import aiohttp",
        "Only what speaks HTTP, in or out, knows aiohttp",
    ),
    ("edge_api/leads/planted.py", "import aiosmtplib", "Only what speaks SMTP knows aiosmtplib"),
    ("edge_api/operation/planted.py", "import pelican", "The edge knows the site's index"),
    ("edge_api/operation/planted.py", "import site_build.site", "The edge knows the site's index"),
    ("site_build/planted.py", "import edge_api.settings", "The site build knows"),
    ("site_build/planted.py", "import pelican", "Pelican is known where it is driven"),
    (
        "site_build/outputs/planted.py",
        "import site_build.pelican_plugin.plugin",
        "Reading, checking and rendering",
    ),
    ("edge_api/leads/planted.py", "import sqlite3", "Only the database package knows SQLite"),
    ("edge_api/cli/planted.py", "import asyncpg", "Only the database package knows asyncpg"),
    ("edge_api/http/planted.py", "import edge_api.db.postgres", "Only what opens, backs up"),
    (
        "edge_api/db/postgres/planted.py",
        "import edge_api.db.sqlite",
        "Within the database an engine stands on SQL",
    ),
    (
        "edge_api/db/sqlite/planted.py",
        "import edge_api.db.postgres",
        "Within the database an engine stands on SQL",
    ),
    ("edge_api/analysis/planted.py", "VALUE = 1", "Within the analysis"),
    ("edge_api/analysis/languages.py", "import pydantic", "A worker that parses"),
    ("edge_api/operation/planted.py", "import selectolax", "Only the analysis knows parsers"),
]


@cache
def tracked() -> tuple[str, ...]:
    """Return every file that is committed or about to be, relative to the root."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return tuple(sorted(name for name in listed.split("\0") if (ROOT / name).is_file()))


def text_of(name: str) -> str:
    """Return a tracked file as text; what is no UTF-8 shows as replacement characters."""
    return (ROOT / name).read_text(encoding="utf-8", errors="replace")


def modules() -> list[str]:
    """Return every tracked Python module, tests included."""
    return [name for name in tracked() if name.endswith(".py")]


def pelican_signals(name: str) -> bool:
    """Return whether a module imports Pelican's signals, by either of their names."""
    whole = {"pelican.signals", "pelican.plugins.signals"}
    for node in ast.walk(ast.parse(text_of(name))):
        if isinstance(node, ast.Import) and whole & {alias.name for alias in node.names}:
            return True
        if isinstance(node, ast.ImportFrom):
            names = {f"{node.module}.{alias.name}" for alias in node.names} | {str(node.module)}
            if whole & names:
                return True
    return False


def lint_imports(folder: Path) -> subprocess.CompletedProcess[str]:
    """Run import-linter on the project in a folder."""
    command = [sys.executable, "-c", LINT_IMPORTS, "--no-cache", "--no-logo"]
    return subprocess.run(command, cwd=folder, check=False, capture_output=True, text=True)


def pins(lock: str) -> dict[str, str]:
    """Return the entries of a lock, hashes included, by pin (`name==version`, marker and all)."""
    entries = re.split(r"^(?=[a-z0-9])", text_of(f"requirements/{lock}.txt"), flags=re.MULTILINE)
    return {entry.partition("\\")[0].strip(): entry for entry in entries[1:]}


def declared(source: str) -> set[str]:
    """Return the names that a requirements source asks for, in their normal form."""
    names = re.findall(r"^[A-Za-z][\w.-]*", text_of(f"requirements/{source}.in"), re.MULTILINE)
    return {normal(name) for name in names}


def normal(distribution: str) -> str:
    """Return a distribution's name as locks write it."""
    return re.sub(r"[-_.]+", "-", distribution).lower()


def imported(name: str) -> set[str]:
    """Return the top-level packages that a module imports."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text_of(name))):
        if isinstance(node, ast.Import):
            found |= {alias.name.partition(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module.partition(".")[0])
    return found


def make(*arguments: str) -> str:
    """Return what `make` prints."""
    command = ["make", "--no-print-directory", *arguments]
    return subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout


def test_tests_start_applications_by_fixtures() -> None:
    """Aiohttp's servers are started and ended by pytest-aiohttp's fixtures, the edge's too."""
    by_hand = re.compile(r"\b(App|Server)[R]unner\b|\b(TCP|Sock|Unix)[S]ite\b|\brun_[a]pp\b")
    tests = [name for name in modules() if name.startswith("tests/")]

    assert [name for name in tests if by_hand.search(text_of(name))] == []
    assert "aiohttp_client(" in text_of("tests/edge/conftest.py")
    assert by_hand.search("runner = web.App" + "Runner(app)")


@pytest.mark.size("ci")
@pytest.mark.parametrize(("module", "line", "contract"), VIOLATIONS)
def test_a_planted_import_breaks_its_contract(
    tmp_path: Path, module: str, line: str, contract: str
) -> None:
    """An import that the architecture forbids is refused, by the contract that is about it."""
    for name in ("edge_api", "site_build"):
        shutil.copytree(ROOT / name, tmp_path / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    (tmp_path / module).write_text(line + "\n", encoding="utf-8")

    result = lint_imports(tmp_path)

    assert result.returncode == 1, result.stdout + result.stderr
    assert re.search(f"^{re.escape(contract)}.* BROKEN", result.stdout, re.MULTILINE), result.stdout


def test_pelicans_signals_stay_at_its_border() -> None:
    """Pelican's signals are known to our plugin and to our generators with their writer alone."""
    users = [name for name in modules() if name.startswith(PRODUCT) and pelican_signals(name)]

    assert users == [f"site_build/pelican_plugin/{name}.py" for name in ("generators", "plugin")]


@pytest.mark.parametrize("kind", FORBIDDEN)
def test_no_file_holds_what_belongs_to_one_machine_or_person(kind: str) -> None:
    """No tracked file names a registry, a path of one machine or a credential."""
    found = [
        f"{name}:{number}: {line.strip()[:120]}"
        for name in tracked()
        for number, line in enumerate(text_of(name).splitlines(), start=1)
        if FORBIDDEN[kind].search(line)
    ]

    assert found == []


@pytest.mark.parametrize(("kind", "sample"), SAMPLES)
def test_each_forbidden_text_is_recognised(kind: str, sample: str) -> None:
    """Each forbidden kind is found in a line that holds it."""
    assert FORBIDDEN[kind].search(sample)


def test_every_module_says_what_it_is_for() -> None:
    """A module opens with a docstring of one to five lines."""
    docstrings = {
        name: (ast.get_docstring(ast.parse(text_of(name))) or "").split("\n")
        for name in modules()
        if not name.startswith("tests/")
    }
    lengths = {name: sum(map(bool, lines)) for name, lines in docstrings.items()}

    assert {name: length for name, length in lengths.items() if not 1 <= length <= 5} == {}


def test_no_module_is_longer_than_440_lines() -> None:
    """Modules have up to 400 lines, and some more while a feature is added to them."""
    lengths = {
        name: text_of(name).count("\n") for name in modules() if not name.startswith("tests/")
    }

    assert {name: length for name, length in lengths.items() if length > 440} == {}


@pytest.mark.parametrize(
    "paper",
    ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "SECURITY.md"],
)
def test_the_project_documents_exist(paper: str) -> None:
    """The papers that a reader looks for first are there, and say something."""
    assert len(text_of(paper).split()) > 50


def decisions() -> list[str]:
    """Return the files of the decisions, in the order of their numbers."""
    return [name for name in tracked() if re.match(r"docs/decisions/\d", name)]


@pytest.mark.parametrize("name", decisions())
def test_a_decision_has_a_number_a_date_and_a_status(name: str) -> None:
    """A decision opens with its number and title, its date, and whether it holds."""
    number = int(Path(name).name[:4])
    status = r"(accepted|superseded by \[\d+\]\(\d{4}-[\w-]+\.md\)|withdrawn)"
    head = rf"# {number}\. \S.*\n\nDate: \d{{4}}-\d\d-\d\d\nStatus: {status}\n\n"

    assert re.match(head, text_of(name)), f"{name} does not begin with\n{head}"


def test_the_index_lists_each_decision() -> None:
    """The index has one row for each decision, with the title, date and status of its file."""
    numbers = [Path(name).name[:4] for name in decisions()]
    rows = [
        f"| [{int(file[:4])}]({file}) | {title} | {date} | {status} |"
        for file, text in ((Path(name).name, text_of(name)) for name in decisions())
        for title, date, status in re.findall(r"\A# \d+\. (.*)\n\nDate: (.*)\nStatus: (.*)\n", text)
    ]
    listed = re.findall(r"^\| \[\d.*$", text_of("docs/decisions/README.md"), re.MULTILINE)

    assert sorted(listed) == sorted(rows)
    assert len(set(numbers)) == len(numbers)


def test_decisions_that_hold_name_files_that_exist() -> None:
    """A reader of a decision finds each file that it names, by its path or by the end of it."""
    of_journals_and_former_builds = {"publishconf.py", "page.prose.html", "content/redirects.txt"}
    named = re.compile(r"`([\w.][\w./-]*\.(?:css|html|ini|js|md|py|sh|sql|toml|txt))`")
    ends = {"/" + path for path in tracked()}

    missing = [
        (name, path)
        for name in decisions()
        if "Status: accepted\n" in text_of(name)
        for path in named.findall(text_of(name))
        if not any(end.endswith("/" + path) for end in ends)
    ]

    assert [found for found in missing if found[1] not in of_journals_and_former_builds] == []


def test_the_workflow_runs_what_a_change_has_to_pass() -> None:
    """The forge runs `.ci/run`, and takes actions by commit: a tag can be moved."""
    text = text_of(".github/workflows/ci.yml")

    assert re.findall(r"^ +(?:- )?run: (.*)$", text, re.MULTILINE) == [
        "sudo tools/provide nginx",
        "sudo tools/provide wrk",
        ".ci/run",
    ]
    assert re.findall(r"uses: (?!\S+@[0-9a-f]{40} )(.*)", text) == []


def test_the_hooks_are_commands_of_the_project() -> None:
    """A hook calls `make` or a program of `.venv`, so that nothing else has to be fetched."""
    text = text_of(".pre-commit-config.yaml")

    assert set(re.findall(r"repo: (.*)", text)) == {"local"}
    assert set(re.findall(r"language: (.*)", text)) == {"system"}
    assert [
        entry
        for entry in re.findall(r"entry: (.*)", text)
        if not entry.startswith(("make ", ".venv/bin/"))
    ] == []


@pytest.mark.parametrize("name", ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_between_the_papers_lead_somewhere(name: str) -> None:
    """Each relative link of a paper names a tracked file or folder."""
    found = re.findall(r"\]\((?!https?:|#|/)([^)#]+)", text_of(name))
    links = [link for link in found if IS_OWN or not link.startswith("content/")]

    assert [link for link in links if not (ROOT / link).exists()] == []


def test_the_architecture_names_every_package() -> None:
    """Every package's folder is in ARCHITECTURE.md."""
    folders = {Path(name).parent.name for name in modules() if name.endswith("/__init__.py")}
    text = text_of("ARCHITECTURE.md")

    assert {folder for folder in folders if f"{folder}/" not in text} == set()


def test_make_help_lists_every_target() -> None:
    """`make help` has a line for each target, and `make` alone prints the same."""
    targets = set(re.findall(r"^([a-z][\w-]*):", text_of("Makefile"), re.MULTILINE))
    listed = re.findall(r"^ +make ([\w-]+) +\S", make("help"), re.MULTILINE)

    assert sorted(listed) == sorted(targets)
    assert make() == make("help")


@pytest.mark.parametrize("lock", ["run", "test", "bench"])
def test_a_lock_pins_and_hashes_all_it_is_asked_for(lock: str) -> None:
    """Each requirement of a source is in its lock, and each pin of the lock carries a hash."""
    entries = pins(lock)

    assert declared(lock) - {re.split(r"==|\[", pin)[0] for pin in entries} == set()
    assert [pin for pin, entry in entries.items() if "--hash=sha256:" not in entry] == []


def test_the_locks_agree() -> None:
    """Tests run the versions of production: the test lock has the whole run lock.

    Where a package is needed may differ: tests need some on machines that production does not.
    """
    run, test = (
        {re.sub(r"\[.*?\]", "", pin.partition(" ")[0]) for pin in pins(lock)}
        for lock in ("run", "test")
    )
    assert run - test == set()


@pytest.mark.parametrize(
    ("lock", "folders"), [("run", PRODUCT), ("test", ("",)), ("bench", (APART,))]
)
def test_every_library_in_use_is_asked_for(lock: str, folders: tuple[str, ...]) -> None:
    """Imports of production code are named in run.in; those of the rest, there or in test.in.

    Peers of the benchmarks that run in an environment of their own have bench.in.
    """
    owners = importlib.metadata.packages_distributions()
    ours = {"edge_api", "site_build", "pelicanconf", "tests", "benchmarks", "tools"}
    files = [name for name in modules() if name.startswith(folders)]
    if APART not in folders:
        files = [name for name in files if not name.startswith(APART)]
    used = {top for name in files for top in imported(name)}
    foreign = used - ours - sys.stdlib_module_names
    asked = declared("run") | declared(lock)

    assert {
        top for top in foreign if asked.isdisjoint(map(normal, owners.get(top, [top])))
    } == set()
