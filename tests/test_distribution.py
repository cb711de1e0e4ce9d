"""The wheel, installed apart from the repository, makes a journal, builds and serves it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import sysconfig
import time
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from email.parser import HeaderParser
from pathlib import Path
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import psutil
import pytest

from tests.content.workshop import find_free_port, plain_environment
from tests.edge.postgresql import PostgreSQL
from tests.patience import patience

pytestmark = pytest.mark.size("test")

ROOT = Path(__file__).resolve().parent.parent
LEAD = {
    "name": "Ann Lee",
    "email": "ann@example.org",
    "budget_tier": "starter",
    "message": "Hello.",
}
SITE = {
    "pelicanconf.py": """\
AUTHOR = "Ann Lee"
SITENAME = "Ann's notes"
PATH = "content"
TIMEZONE = "Europe/Rome"
DEFAULT_LANG = "it"
ARTICLE_URL = ARTICLE_SAVE_AS = "{date:%Y}/{slug}.html"
LINKS = (("Pelican", "https://getpelican.com/"),)
THEME = "themes/mine"
PLUGINS = ["sitemap", "neighbors"]
TYPOGRIFY = True
CACHE_CONTENT = True
JINJA_FILTERS = {"shout": lambda text: text.upper()}
""",
    "publishconf.py": """\
from pelicanconf import *
SITEURL = "https://ann.example"
FEED_ALL_ATOM = "feeds/all.atom.xml"
CATEGORY_FEED_ATOM = None
""",
    "content/hello.md": """\
Title: Hello
Date: 2025-03-01 10:00
Tags: paper, ink
Category: notes

Hello, ![a cat]({static}/images/cat.png) and [about me]({filename}/pages/about.md).
""",
    "content/pages/about.md": "Title: About me\nSlug: about\n\nI am Ann.\n",
    "content/old.rst": "Old\n###\n\n:date: 2020-01-01\n\nIn reST.\n",
    "themes/mine/templates/base.html": "",
}


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the wheel, built without network."""
    return build_wheel(ROOT, tmp_path_factory.mktemp("wheel"))


def build_wheel(source: Path, folder: Path) -> Path:
    """Build the wheel of a source into a folder."""
    pip("wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", folder, source)
    return next(folder.glob("*.whl"))


def pip(*words: str | Path) -> None:
    """Run pip, which must succeed."""
    command = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check", *words]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr


class Installation:
    """A virtual environment with the wheel, and with the libraries that it needs."""

    def __init__(self, folder: Path, wheel: Path) -> None:
        self.bin = folder / "bin"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder], check=True)
        packages = next(folder.glob("lib/*/site-packages"))
        libraries = f"{sysconfig.get_path('purelib')}\n"
        (packages / "libraries.pth").write_text(libraries, encoding="utf-8")
        install = ("install", "--no-deps", "--no-index", "--force-reinstall")
        pip("--python", self.bin / "python", *install, wheel)

    def environment(self, **more: str) -> dict[str, str]:
        """Return an environment without any setting, in which this installation is found first."""
        found = plain_environment()
        return {**found, "PATH": f"{self.bin}{os.pathsep}{found['PATH']}", **more}

    def run(
        self, folder: Path, *words: str | Path, **more: str
    ) -> subprocess.CompletedProcess[str]:
        """Run `fore-edge` in a folder to its end."""
        return subprocess.run(
            [self.bin / "fore-edge", *words],
            cwd=folder,
            env=self.environment(**more),
            check=False,
            capture_output=True,
            text=True,
            timeout=patience(),
        )

    def do(self, folder: Path, *words: str | Path, **more: str) -> str:
        """Run `fore-edge` in a folder, which must succeed, and return what it prints."""
        ended = self.run(folder, *words, **more)
        assert ended.returncode == 0, ended.stdout + ended.stderr
        return ended.stdout

    @contextmanager
    def running(
        self, folder: Path, port: int, *words: str, **settings: str
    ) -> Iterator["subprocess.Popen[str]"]:
        """Run a command, and nothing of it when the block is left."""
        process = subprocess.Popen(
            [self.bin / "fore-edge", *words],
            cwd=folder,
            env=self.environment(PORT=str(port), **settings),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        try:
            yield process
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.communicate()


@pytest.fixture(scope="session")
def installed(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Installation:
    """Return an installation of the wheel."""
    return Installation(tmp_path_factory.mktemp("installed") / "venv", wheel)


def fetch(port: int, path: str, body: object = None) -> tuple[int, str]:
    """Return the status and the text of an answer; a body is posted as JSON."""
    data = None if body is None else json.dumps(body).encode()
    request = Request(f"http://127.0.0.1:{port}{path}", data)
    request.add_header("Content-Type", "application/json")
    try:
        with urlopen(request, timeout=patience()) as answer:  # noqa: S310
            return answer.status, answer.read().decode()
    except HTTPError as error:
        return error.code, error.read().decode()


def await_page(port: int, path: str, wanted: str) -> str:
    """Return a page once it is served and says what is wanted."""
    deadline = time.monotonic() + patience()
    while time.monotonic() < deadline:
        with suppress(OSError):
            status, text = fetch(port, path)
            if status == 200 and wanted in text:
                return text
        time.sleep(0.05)
    raise AssertionError(f"{path} is not served with {wanted!r}")


def tracked(*folders: str) -> set[str]:
    """Return the files of the repository that are in folders of it."""
    command = ["git", "ls-files", "--cached", "--others", "--exclude-standard", *folders]
    listed = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, text=True).stdout
    return {name for name in listed.splitlines() if (ROOT / name).is_file()}


def test_the_wheel_has_all_files_and_the_requirements_of_run_in(wheel: Path) -> None:
    """Both packages are in it whole, the theme below `site_build`, and each line of run.in."""
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
        metadata = next(name for name in archive.namelist() if name.endswith("/METADATA"))
        head = HeaderParser().parsestr(archive.read(metadata).decode())
    theme = {f"site_build/{name}" for name in tracked("theme", "deploy")}
    lines = (ROOT / "requirements" / "run.in").read_text(encoding="utf-8").splitlines()
    required = [line for line in lines if line and not line.startswith("#")]

    def normal(requirement: str) -> str:
        name = re.match(r"[\w.-]+", requirement)
        assert name
        return re.sub(r"[-_.]+", "-", name[0]).lower()

    assert names == tracked("edge_api", "site_build") | theme
    assert sorted(map(normal, head.get_all("Requires-Dist", []))) == sorted(map(normal, required))


@pytest.mark.size("ci")
def test_the_sdist_gives_the_same_wheel(wheel: Path, tmp_path: Path) -> None:
    """A wheel that is built from the sdist has the same files with the same bytes."""
    command = [sys.executable, "-m", "hatchling", "build", "-t", "sdist", "-d"]
    subprocess.run([*command, str(tmp_path)], cwd=ROOT, check=True, capture_output=True)
    again = build_wheel(next(tmp_path.glob("*.tar.gz")), tmp_path / "wheel")

    assert again.read_bytes() == wheel.read_bytes()


def test_a_journal_is_made_and_served(installed: Installation, tmp_path: Path) -> None:
    """`init` makes a journal without a finding, `run` serves it, and SIGTERM ends all of it."""
    installed.do(tmp_path, "init", "my-site")
    folder, port = tmp_path / "my-site", find_free_port()

    assert (folder / ".env").stat().st_mode & 0o777 == 0o600
    assert "0 errors, 0 warnings" in installed.do(folder, "check", "--strict")
    with installed.running(folder, port, "run") as process:
        home = await_page(port, "/", "The first post")
        assert '<h1 class="wordmark"><a href="/" aria-current="page">My site</a></h1>' in home
        assert "<title>My site</title>" in home
        assert '<meta name="description" content="My site">' in home
        assert "<p></p>" not in home
        for path in ("/index.md", "/llms.txt", "/llms-full.txt"):
            assert fetch(port, path)[1].startswith("# My site\n\n")
            assert "> \n" not in fetch(port, path)[1]
        assert "three commands" in await_page(port, "/journal/the-first-post/", "<h1")
        assert "<form" in await_page(port, "/contact/", "<h1")
        assert fetch(port, "/api/public/v1/leads", LEAD)[0] == 201
        post = folder / "content" / "posts" / "the-first-post.md"
        post.write_text(post.read_text("utf-8") + "\nWritten while it ran.\n", "utf-8")
        await_page(port, "/journal/the-first-post/", "Written while it ran.")
        assert "nothing is wrong" in installed.do(folder, "doctor", PORT=str(port))
        children = psutil.Process(process.pid).children(recursive=True)
        process.send_signal(signal.SIGTERM)
        said, _ = process.communicate(timeout=patience())

    assert process.returncode == 0, said
    assert said.count("is served, with 1 post\n") == 2, "one build at the start, one for the change"
    assert "from the cache" not in said
    assert "Traceback" not in said
    assert children
    assert not any(child.is_running() for child in children)


@pytest.mark.size("ci")
def test_a_journal_is_served_with_its_rows_in_postgresql(
    installed: Installation, tmp_path: Path
) -> None:
    """One command makes and serves it where DATABASE_URL and SECRET_KEY are set."""
    server, port = PostgreSQL(), find_free_port()
    try:
        url = server.url(server.make_empty())
        settings = {"DATABASE_URL": url, "SECRET_KEY": "a secret of thirty-two characters"}
        words = ("init", "mysite", "--run")
        with installed.running(tmp_path, port, *words, **settings):
            await_page(port, "/", "<h1")
            assert fetch(port, "/api/public/v1/leads", LEAD)[0] == 201
        (count,) = server.execute("SELECT count(*) FROM fore_edge.leads", url.rpartition("/")[2])
        assert count[0] == 1
        assert not list((tmp_path / "mysite" / "var").glob("*.db"))
    finally:
        server.remove()


def test_run_serves_the_build_that_is_there(installed: Installation, tmp_path: Path) -> None:
    """While a build fails the last one is served; without any `run` ends with 1."""
    installed.do(tmp_path, "init", "mysite")
    folder, port = tmp_path / "mysite", find_free_port()
    post, settings = folder / "content/posts/the-first-post.md", folder / "pelicanconf.py"
    whole, right = post.read_text("utf-8"), settings.read_text("utf-8")
    settings.write_text(f"{right}\nTHEME = 'nowhere'\n", "utf-8")
    ended = installed.run(folder, "run")
    assert ended.returncode == 1
    assert "nowhere" in ended.stdout + ended.stderr

    settings.write_text(right, "utf-8")
    installed.do(folder, "build")
    post.write_text(whole.replace("title:", "tittle:"), "utf-8")
    with installed.running(folder, port, "run"):
        await_page(port, "/", "The first post")
        post.write_text(f"{whole}\nCorrected.\n", "utf-8")
        await_page(port, "/journal/the-first-post/", "Corrected.")


def test_run_serves_what_is_good_of_new_content(installed: Installation, tmp_path: Path) -> None:
    """A post with an error, which no build had yet, is left out until it is fixed."""
    installed.do(tmp_path, "init", "mysite")
    folder, port = tmp_path / "mysite", find_free_port()
    post = folder / "content" / "posts" / "the-first-post.md"
    whole = post.read_text("utf-8")
    post.write_text(whole.replace("title:", "tittle:"), "utf-8")
    with installed.running(folder, port, "run"):
        assert "The first post" not in await_page(port, "/", "<h1")
        assert fetch(port, "/journal/the-first-post/")[0] == 404
        post.write_text(whole, "utf-8")
        await_page(port, "/journal/the-first-post/", "The first post")


@pytest.mark.parametrize("name", ["edge_api", "site_build"])
def test_run_ends_with_an_error_if_a_program_dies(
    installed: Installation, tmp_path: Path, name: str
) -> None:
    """Neither the edge nor the watcher goes on alone; a sentence names the one that died."""
    port = find_free_port()
    with installed.running(tmp_path, port, "init", "mysite", "--run") as process:
        await_page(port, "/", "<h1")
        await_children(process.pid, 2)
        for child in psutil.Process(process.pid).children():
            if name in child.cmdline():
                child.kill()
        said, _ = process.communicate(timeout=patience())

    assert process.returncode == 1
    assert re.search(rf"^{name} \w+ has ended with status -9: all is stopped$", said, re.MULTILINE)


def await_children(number: int, count: int) -> None:
    """Wait until a process has that many children."""
    deadline = time.monotonic() + patience()
    while len(psutil.Process(number).children()) < count:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_one_template_of_the_journal_is_used(installed: Installation, tmp_path: Path) -> None:
    """The journal has one template, and all others come from the installed theme."""
    installed.do(tmp_path, "init", "mysite")
    folder = tmp_path / "mysite"
    theme = next(installed.bin.parent.glob("lib/*/site-packages/site_build/theme"))
    base = (theme / "templates" / "base.html").read_text(encoding="utf-8")
    own = folder / "theme" / "templates" / "base.html"
    own.parent.mkdir(parents=True)
    own.write_text(base.replace("</body>", "<p>Ours alone.</p></body>"), encoding="utf-8")
    port = find_free_port()
    with installed.running(folder, port, "run") as process:
        post = await_page(port, "/journal/the-first-post/", "Ours alone.")
        assert 'class="leaf' in post
        assert "Ours alone." in await_page(port, "/search", "<h1")  # the edge renders it
        own.write_text(own.read_text("utf-8").replace("Ours alone", "Changed"), "utf-8")
        await_page(port, "/journal/the-first-post/", "Changed.")
        process.terminate()
        process.communicate(timeout=patience())


def make_pelican_site(folder: Path) -> Path:
    """Write a small site as users of Pelican have it."""
    for name, text in SITE.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    picture = ROOT / "tests" / "site_build" / "pelican_site" / "images" / "cat.png"
    (folder / "content" / "images").mkdir()
    shutil.copy(picture, folder / "content" / "images")
    return folder


def test_a_pelican_site_is_taken_over(installed: Installation, tmp_path: Path) -> None:
    """Content, addresses, feed and origin are those of the site; the rest is listed."""
    site = make_pelican_site(tmp_path / "site")
    said = installed.do(tmp_path, "init", "mysite", "--from-pelican", site)
    folder = tmp_path / "mysite"
    report = (folder / "import-report.md").read_text("utf-8")
    redirects = (folder / "content" / "redirects.txt").read_text("utf-8")
    installed.do(folder, "build")
    built = folder / "build" / "current" / "site"
    post = (built / "2025" / "hello.html").read_text(encoding="utf-8")

    assert "2 of 2 posts" in said
    assert {"JINJA_FILTERS", "PLUGINS", "THEME", "TYPOGRIFY"} <= set(re.findall("[A-Z_]+", report))
    assert "/feeds/all.atom.xml /feed.xml\n" in redirects
    assert (folder / ".env").read_text("utf-8").count("\nSITE_URL=https://ann.example\n") == 1
    assert '<html lang="it"' in post
    assert "Ann&#39;s notes" in post
    assert "https://ann.example/2025/hello.html" in post
    assert 'href="/pages/about.html"' in post
    assert not (folder / "content" / "pages" / "contact.md").is_symlink()
    for name in (
        "pages/about.html",
        "contact/index.html",
        "tag/paper.html",
        "tags.html",
        "archives.html",
        "images/cat.png",
    ):
        assert (built / name).is_file(), name


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["mysite"], "mysite already has pelicanconf.py, .env; choose another folder"),
        (["file"], "file cannot be used: "),
        (["new", "--from", "nowhere"], "there is no nowhere; check the path"),
        (["new", "--from", "empty"], "empty is no journal that can be read: it should be"),
        (["site/content/new", "--from-pelican", "site"], "is within site, which stays as it is"),
        (["site", "--from-pelican", "site"], "site is within site, which stays as it is"),
        (["mysite", "--from", "site"], "mysite already has pelicanconf.py, .env; choose another"),
        (["new", "--from-pelican", "broken"], "pelicanconf.py:1: invalid syntax"),
    ],
)
def test_a_folder_that_cannot_be_used_is_refused(
    installed: Installation, tmp_path: Path, words: Sequence[str], sentence: str
) -> None:
    """One sentence says what is in the way, and nothing is written."""
    for name in ("mysite", "empty", "broken"):
        (tmp_path / name).mkdir()
    for name in ("mysite/.env", "mysite/pelicanconf.py", "file"):
        (tmp_path / name).touch()
    (tmp_path / "broken" / "pelicanconf.py").write_text("SITENAME =\n", encoding="utf-8")
    make_pelican_site(tmp_path / "site")
    before = sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts)
    ended = installed.run(tmp_path, "init", *words)
    after = sorted(path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts)

    assert ended.returncode in {1, 2}
    assert sentence in ended.stderr
    assert len(ended.stderr.splitlines()) == 1 + ("See fore-edge init --help." in ended.stderr)
    assert ended.stdout == ""
    assert after == before


def test_commands_of_both_programs_are_passed_on(installed: Installation, tmp_path: Path) -> None:
    """`--help` has a line for each command, and help texts name the command that was typed."""
    listed = re.findall(r"^  ([a-z][a-z-]*)(?: |$)", installed.do(tmp_path, "--help"), re.MULTILINE)
    programs = {}
    for name in ("edge_api", "site_build"):
        command = [str(installed.bin / "python"), "-m", name, "--help"]
        shown = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True)
        programs[name] = re.findall(r"^  ([a-z][a-z-]*)(?: |$)", shown.stdout, re.MULTILINE)
    renamed = ["preview" if name == "serve" else name for name in programs["site_build"]]
    refused = installed.run(tmp_path, "nonsense")

    assert listed == ["try", "init", "run", "deploy", "completion", *renamed, *programs["edge_api"]]
    for words in (["preview"], ["serve"], ["keys", "list"], ["init"], ["run"]):
        said = installed.do(tmp_path, *words, "--help")
        assert said.startswith(f"Usage: {' '.join(['fore-edge', *words])} [OPTIONS]")
    assert "deploy journal.example --owner " in installed.do(tmp_path, "deploy", "--help")
    assert refused.returncode == 2
    assert refused.stderr.startswith("fore-edge: ")


def test_outside_a_journal_the_commands_say_so(installed: Installation, tmp_path: Path) -> None:
    """Without pelicanconf.py, a sentence names the file and the way to one."""
    (tmp_path / "content").mkdir()
    ended = installed.run(tmp_path, "run")

    assert ended.returncode == 1
    assert "run this in the folder of the journal, make one with fore-edge init" in ended.stderr
