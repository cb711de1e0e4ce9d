"""A commit that is pushed is taken whole or not at all, and nobody's changes are lost."""

import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from tests.patience import patience
from tests.site_build.writing.conftest import PUBLISHED, SECOND, Journal
from tests.sizes import scaled

pytestmark = pytest.mark.size("test", grows=True)

KILLS = scaled(test=4, ci=12)
SAVES = scaled(test=6, ci=20)
ROOT = Path(__file__).resolve().parents[3]
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
COMMAND = (sys.executable, "-m", "site_build", "post", "receive", "--content", "content")


def write(repository: Journal, files: dict[str, str], base: str = "HEAD") -> str:
    """Return a commit of files upon another, not in the journal; an empty text is no file."""
    apart = repository.content.parent / "clone"
    if not apart.exists():
        repository.git("clone", "--quiet", "--no-hardlinks", ".", str(apart))
    in_clone = ("-C", str(apart))
    base = repository.git("rev-parse", base).strip()  # before it is fetched: a rival commits
    repository.git(*in_clone, "fetch", "--quiet", "origin")
    repository.git(*in_clone, "checkout", "--quiet", "--force", "--detach", base)
    for name, text in files.items():
        if text:
            (apart / name).parent.mkdir(parents=True, exist_ok=True)
            (apart / name).write_text(text)
        else:
            repository.git(*in_clone, "rm", "--quiet", "--", name)  # with folders that it empties
    repository.git(*in_clone, "add", ".")
    repository.git(*in_clone, "commit", "--quiet", "--message=Write")
    return repository.git(*in_clone, "rev-parse", "HEAD").strip()


def pack(repository: Journal, commit: str) -> bytes:
    """Return what the hook sends for a commit."""
    words = ("git", "pack-objects", "--stdout", "--revs", "--thin", "-q")
    clone = repository.content.parent / "clone"
    given = f"{commit}\n^{commit}~1\n".encode()
    made = subprocess.run(words, cwd=clone, input=given, check=True, capture_output=True)
    return commit.encode() + made.stdout


def send(repository: Journal, commit: str) -> tuple[bool, str]:
    """Push a commit; return whether it was taken, and what was said."""
    ended = subprocess.run(
        COMMAND,
        cwd=repository.content.parent,
        input=pack(repository, commit),
        env=ENVIRONMENT,
        check=False,
        capture_output=True,
        timeout=patience(60),
    )
    return b"\0" in ended.stdout, (ended.stdout + ended.stderr).decode()


def test_a_push_is_taken_with_its_findings(repository: Journal) -> None:
    """Files are changed, made and removed, and the index and the branch are those of the commit."""
    text = SECOND.replace("It went on.", "See [there](/nowhere/).")
    commit = write(repository, {"content/posts/the-second.md": text, "content/extra/a b.txt": "a"})
    taken, said = send(repository, commit)

    assert taken, said
    assert "content/posts/the-second.md:9:13  warning  broken link" in said
    assert "the-first" not in said
    assert repository.read("posts/the-second.md") == text
    assert repository.read("extra/a b.txt") == "a"
    assert repository.git("rev-parse", "HEAD").strip() == commit
    assert repository.git("status", "--porcelain", "--untracked-files=no") == ""

    files = {"content/posts/the-second.md": "", "content/posts/third.md": SECOND}
    assert send(repository, write(repository, files))[0]
    assert not (repository.content / "posts/the-second.md").exists()
    assert repository.git("diff", "HEAD", "--stat") == ""


def test_a_folder_becomes_a_file_and_a_file_a_folder(repository: Journal) -> None:
    """What the push itself removes is not in its way, and folders that it empties go."""
    note = "content/images/note"
    for files in (
        {f"{note}/deep/a.txt": "a", "content/images/a\u202fb.txt": "A space of some system."},
        {f"{note}/deep/a.txt": "", note: "a file"},
        {note: "", f"{note}/b.txt": "b"},
        {f"{note}/b.txt": ""},
    ):
        if files.get(note):  # whoever made them, git knows no empty folders
            (repository.content / "images/note/empty/inner").mkdir(parents=True, exist_ok=True)
        taken, said = send(repository, write(repository, files))
        assert taken, said
        assert repository.git("status", "--porcelain", "--", "content") == ""
    assert not (repository.content / "images/note").exists()
    assert (repository.content / "images").exists()


def test_invisible_characters_in_a_name_are_its_fault(repository: Journal) -> None:
    """The refusal says so, and not that something else is wrong."""
    commit = write(repository, {"content/posts/a\u200db.md": SECOND})
    taken, said = send(repository, commit)

    assert not taken
    assert "these names have invisible characters" in said


@pytest.mark.parametrize(
    "state", ["edited", "staged", "removed", "untracked", "a folder", "a link", "above"]
)
def test_changes_of_the_owner_block_a_push(repository: Journal, state: str) -> None:
    """Whatever is not committed stays as it is, and the push that would change it is refused."""
    names = {"untracked": "posts/new.md", "above": "posts/new/post.md"}
    name = names.get(state, "posts/the-second.md")
    place = repository.content / name
    commit = write(repository, {f"content/{name}": "Mine.", "content/posts/other.md": SECOND})
    if state in {"removed", "a folder", "a link"}:
        place.unlink()
    if state == "a folder":
        place.mkdir()
    elif state == "above":
        place.parent.write_text("A file.")
    elif state == "a link":
        place.symlink_to(repository.content / "posts/the-first.md")
    elif state != "removed":
        place.write_text("The owner's.")
    if state == "staged":
        repository.git("add", "content")
        place.write_text(SECOND)
    before = repository.git("status", "--porcelain", "--", "content")
    taken, said = send(repository, commit)

    assert not taken
    assert "Traceback" not in said
    assert f"content/{name}" in said
    assert repository.git("status", "--porcelain", "--", "content") == before
    assert not (repository.content / "posts/other.md").exists()
    assert repository.read("posts/the-first.md") == PUBLISHED


def test_a_push_that_was_killed_goes_on(repository: Journal) -> None:
    """Whenever it is killed, each file has one of both versions, and the same push is taken."""
    generator = random.Random(51)  # noqa: S311  a repeatable drill
    versions = [SECOND, *(f"{SECOND}\nVersion {number}.\n" for number in range(KILLS))]
    for number in range(KILLS):
        names = [f"posts/{letter}.md" for letter in "abcdefgh"]
        text = versions[number + 1]
        files = {f"content/{name}": text.replace("the-second", name[6]) for name in names}
        commit = write(repository, files)
        sent = pack(repository, commit)
        root = repository.content.parent
        with subprocess.Popen(
            COMMAND, cwd=root, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as process:
            assert process.stdin
            assert process.stdout
            process.stdin.write(sent)
            process.stdin.close()
            first = repository.content / "posts/a.md"
            while process.poll() is None and not (
                first.exists() and f"Version {number}." in first.read_text()
            ):
                time.sleep(0.001)
            time.sleep(generator.random() * 0.1)
            process.send_signal(signal.SIGKILL)
        for name in names:
            file = repository.content / name
            found = file.read_text() if file.exists() else ""
            assert found in {"", *(each.replace("the-second", name[6]) for each in versions)}
        (repository.content.parent / ".git/index.lock").unlink(missing_ok=True)
        if repository.git("rev-parse", "HEAD").strip() != commit:
            taken, said = send(repository, commit)
            assert taken, said
        assert repository.git("rev-parse", "HEAD").strip() == commit
        for name in names:
            assert repository.read(name) == files[f"content/{name}"]
        if "content" in repository.git("status", "--porcelain", "--untracked-files=no"):
            repository.git("reset", "--quiet")
        assert repository.git("diff", "HEAD", "--stat") == ""


def test_pushes_and_saves_at_once(repository: Journal) -> None:
    """Every save and every push that was acknowledged is in the history."""

    def save(number: int) -> str:
        base = repository.ask("get", "", slug="the-draft").version or None
        text = f"---\ntitle: The draft\nslug: the-draft\nstatus: draft\n---\n\nSave {number}.\n"
        answer = repository.ask("save", "", slug="the-draft", markdown=text, base=base)
        assert answer.refusal in {"", "unavailable"}, answer
        return "" if answer.refusal else f"Save {number}."

    def push(number: int) -> str:
        path, text = f"content/posts/p{number}.md", SECOND.replace("the-second", f"p{number}")
        for _ in range(2 * SAVES):  # a save that falls between makes it stale
            commit = write(repository, {path: text})
            taken, said = send(repository, commit)
            if taken:
                return commit
            assert "refused: " in said, said
        return ""

    with ThreadPoolExecutor(1) as pool:
        pushes = pool.submit(lambda: [*filter(None, map(push, range(SAVES // 2)))])
        saved = [*filter(None, map(save, range(SAVES)))]  # they are limited in the main thread
        pushed = pushes.result()
    history = repository.git("log", "--format=%H", "HEAD").split()
    texts = repository.git("log", "-p", "--format=", "HEAD", "--", "content/posts/the-draft.md")

    assert pushed
    assert saved
    assert set(pushed) <= set(history)
    assert [each for each in saved if each not in texts] == []
    assert repository.git("status", "--porcelain", "--untracked-files=no") == ""
    repository.git("fsck", "--strict")


def test_what_is_no_push_is_refused(repository: Journal, tmp_path: Path) -> None:
    """Garbage, a foreign history and a commit without its objects change nothing."""
    commit = write(repository, {"content/posts/other.md": SECOND})
    good = pack(repository, commit)
    head = repository.git("rev-parse", "HEAD")
    for sent in (b"", b"x" * 40, good[:40], good[:-9], b"0" * 40 + good[40:], b"--output=" + good):
        ended = subprocess.run(
            COMMAND, cwd=tmp_path, env=ENVIRONMENT, input=sent, check=False, capture_output=True
        )
        assert ended.stdout.startswith(b"refused: "), ended
        assert b"Traceback" not in ended.stderr
    assert repository.git("rev-parse", "HEAD") == head
    assert not list((tmp_path / ".git/objects").glob("tmp_objdir*"))
    assert not list((tmp_path / ".git/objects/pack").glob("*"))
