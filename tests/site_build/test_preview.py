"""The preview: what an editor sees of the content as it is in hand, and of what is wrong in it."""

import re
import signal
import socket
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge_api.schema.site_policy import SITE_HEADERS, media_type
from tests.site_build.previewing import Shown, previewing, wait_for
from tests.site_build.workbench import Workbench, run, take
from tests.sizes import in_ci

pytestmark = pytest.mark.size("test")

BADGE = re.compile(r'<small class="preview-badge"[^>]*>([^<]*)</small>')


@pytest.fixture
def shown(bench: Workbench) -> Iterator[Shown]:
    """Return a preview of the small journal."""
    with previewing(bench) as preview:
        yield preview


def plain(html: str) -> str:
    """Return a page without what the preview has put into it."""
    html = re.sub(r'<(?:link|script)[^>]*"/\.preview/[^>]*>(?:</script>)?\n', "", html)
    html = re.sub(r"\n<p><small class=\"preview-badge\".*?</small></p>", "", html)
    return re.sub(r" <small class=\"preview-badge\".*?</small>", "", html)


def test_every_file_is_as_a_build_makes_it(bench: Workbench) -> None:
    """But for its marks and its script, a preview shows what a build writes, file by file."""
    for path in ("posts/draft.md", "pages/veiled.md"):
        (bench.content / path).unlink()
    with previewing(bench) as shown:
        words = ["--content", bench.content, "--output", bench.output, "--site-url", shown.url]
        done = run(sys.executable, "-m", "site_build", "build", *words)
        assert done.returncode == 0, done.stderr
        built = take(bench.output / "current" / "site")
        pages = {path: data for path, data in built.items() if not path.endswith((".gz", ".br"))}
        for path, data in pages.items():
            answer = shown.ask(f"/{path}")
            assert answer.status == 200, path
            assert plain(answer.text) == data.decode("utf-8", "replace"), path


def test_drafts_and_scheduled_posts_are_shown_and_marked(shown: Shown) -> None:
    """They are in the lists and on their own pages, each with a badge that says why."""
    shown.bench.post("to-come", "2999-03-01", "See [the draft](/journal/veiled-draft/).")
    shown.bench.post("at-noon", "2999-03-01T12:30:00Z")

    listed = wait_for(lambda: shown.ask("/journal/").text, lambda text: "At-Noon" in text)
    assert set(BADGE.findall(listed)) == {
        "Appears on 1 March 2999",
        "Appears on 1 March 2999, 12:30 UTC",
        "Draft",
    }
    post = shown.ask("/journal/to-come/").text
    assert re.search(r"</h1>\n<p><small[^>]*>Appears on 1 March 2999</small></p>", post)
    assert re.search(r'veiled-draft/">the draft</a> <small[^>]*>Draft</small>', post)
    assert "</h1>\n<p><small" not in shown.ask("/journal/first-light/").text


@pytest.mark.size("ci")
def test_a_build_beside_it_carries_no_mark(shown: Shown) -> None:
    """Marks of the preview never reach a build."""
    shown.bench.post("to-come", "2999-03-01")
    wait_for(lambda: shown.ask("/journal/to-come/").status, lambda status: status == 200)

    site = shown.bench.build("2026-11-01T00:00:00Z") / "site"

    assert not [path for path, data in take(site).items() if b"preview" in data]
    assert not (site / "journal" / "to-come").exists()


def test_a_saved_post_is_announced_and_shown(shown: Shown) -> None:
    """A browser hears of a new version, and finds the new text there."""
    with shown.listening("/journal/first-light/") as states:
        before = next(states)["version"]
        assert f'data-version="{before}"' in shown.ask("/journal/first-light/").text
        source = shown.bench.content / "posts" / "first.md"
        source.write_text(f"{source.read_text()}\nQuokka.\n")
        after = next(state["version"] for state in states if state["version"] != before)

    page = shown.ask("/journal/first-light/").text
    assert f'data-version="{after}"' in page
    assert "Quokka." in page


@pytest.mark.size("ci")
def test_ten_quick_saves_end_with_the_last(shown: Shown) -> None:
    """Whichever events come in between, the page shows what was saved last."""
    for number in range(10):
        shown.bench.post("hasty", text=f"Save number {number}.")

    assert "Save number 9." in shown.ask("/journal/hasty/").text


@pytest.mark.size("ci")
def test_an_editor_that_renames_over_the_file_is_followed(shown: Shown) -> None:
    """Half a file beside it shows nowhere; renamed over the post, it is the post."""
    source = shown.bench.content / "posts" / "first.md"
    partial = source.with_name(".first.md.swp")
    partial.write_text("half a")
    assert "First light" in shown.ask("/journal/first-light/").text
    partial.write_text(f"{source.read_text()}\nRenamed over.\n")
    partial.replace(source)

    assert "Renamed over." in shown.ask("/journal/first-light/").text


@pytest.mark.parametrize(
    ("data", "place", "message"),
    [
        (b"---\ntitle: [\n---\n", "posts/first.md:3:1", "close the bracket"),
        *in_ci(
            (
                b"---\ntitle: A\nslug: first-light\ndate: 2026-02-30\n---\n",
                "first.md:4:7",
                "is not a date",
            ),
            (b"---\ntitle: A\xff\n---\n", "posts/first.md:2:9", "save the file as UTF-8"),
            (b"", "posts/first.md:1:1", "the file is empty"),
        ),
    ],
)
def test_an_error_is_shown_with_its_place_and_fix(
    shown: Shown, data: bytes, place: str, message: str
) -> None:
    """The post stays as it was, and the error is shown until it is fixed."""
    source = shown.bench.content / "posts" / "first.md"
    good = source.read_bytes()
    source.write_bytes(data)

    page = shown.ask("/journal/first-light/")
    (error,) = shown.state()["errors"]
    assert page.status == 200
    assert "<h1" in page.text
    assert error["place"].endswith(place)
    assert message in error["message"]
    source.write_bytes(good)
    shown.ask("/")
    assert shown.state()["errors"] == []


@pytest.mark.size("ci")
def test_two_posts_of_one_address_are_reported(shown: Shown) -> None:
    """Both places are named, the first file is shown, and the rest of the site stays."""
    shown.bench.write(
        "posts/zz.md", "---\ntitle: Z\nslug: first-light\ndate: 2026-01-01\n---\nZ.\n"
    )

    page = shown.ask("/journal/first-light/")
    errors = shown.state()["errors"]
    assert page.status == 200
    assert "<title>First light" in page.text
    assert [error["place"].rpartition("/")[2] for error in errors] == ["first.md:4:7", "zz.md:3:7"]
    assert shown.ask("/journal/").status == 200


@pytest.mark.size("ci")
def test_deleted_and_renamed_posts_are_followed(shown: Shown) -> None:
    """An address that is gone is the site's 404 page, and a new slug is a new address."""
    source = shown.bench.content / "posts" / "first.md"
    source.write_text(source.read_text().replace("slug: first-light", "slug: dawn"))
    assert shown.ask("/journal/dawn/").status == 200
    gone = shown.ask("/journal/first-light/")
    assert gone.status == 404
    assert "/.preview/preview.js" in gone.text

    source.rename(source.with_name("moved.md"))
    assert shown.ask("/journal/dawn/").status == 200
    source.with_name("moved.md").unlink()
    assert shown.ask("/journal/dawn/").status == 404


def test_a_post_that_was_just_started_is_shown(shown: Shown) -> None:
    """A draft without a text is a page with its title and its badge."""
    done = run(
        sys.executable, "-m", "site_build", "new", "A start", "--content", shown.bench.content
    )
    assert done.returncode == 0

    page = shown.ask("/journal/a-start/")
    assert page.status == 200
    assert BADGE.findall(page.text)[0] == "Draft"


def test_a_new_picture_is_served(shown: Shown) -> None:
    """A file below images/ is there as soon as it is saved, and a page asks for it anew."""
    version = shown.state()["version"]
    shown.bench.write("images/dot.svg", "<svg/>")
    wait_for(lambda: shown.state()["version"], lambda now: now != version)

    answer = shown.ask("/images/dot.svg")
    assert (answer.status, answer.text) == (200, "<svg/>")
    assert answer.headers["Content-Type"].startswith("image/svg+xml")


@pytest.mark.size("ci")
def test_a_moved_content_folder_is_reported(shown: Shown) -> None:
    """The last site stays, with a sentence over it, until the folder is back."""
    away = shown.bench.content.with_name("away")
    shown.bench.content.rename(away)

    assert shown.ask("/journal/first-light/").status == 200
    (error,) = shown.state()["errors"]
    assert "cannot be read: No such file or directory" in error["message"]
    away.rename(shown.bench.content)
    wait_for(lambda: shown.state()["errors"], lambda errors: errors == [])
    shown.bench.post("after-all")
    assert shown.ask("/journal/after-all/").status == 200


@pytest.mark.size("ci")
def test_warnings_are_sent_to_their_page(shown: Shown) -> None:
    """A browser hears the warnings about its own page, and how many there are elsewhere."""
    shown.bench.post("crooked", text="See [nothing](/journal/nowhere/).")
    shown.ask("/")

    own = wait_for(lambda: shown.state("/journal/crooked/"), lambda state: state["warnings"])
    (warning,) = own["warnings"]
    assert warning["place"].endswith("posts/crooked.md:7:15")
    assert "broken link" in warning["message"]
    assert shown.state("/")["others"] == own["others"] + 1


@pytest.mark.parametrize(
    ("fault", "place", "message"),
    [
        ("{% if %}", "{% extends", "Expected an expression"),
        *in_ci(("{{ nothing.at.all }}", "{% block main %}", "'nothing' is undefined")),
    ],
)
def test_an_error_in_a_template_is_reported(
    bench: Workbench, project: Path, fault: str, place: str, message: str
) -> None:
    """Its file and line are shown over the page as it was, until it is fixed."""
    template = project / "theme" / "templates" / "article.html"
    good = template.read_text()
    before, behind = good.split(place, 1)
    with previewing(bench, project=project) as shown:
        page = shown.ask("/journal/first-light/")
        template.write_text(f"{before}{put(fault, place)}{behind}")

        wait_for(lambda: shown.ask("/journal/first-light/"), lambda _: faults(shown))
        (error,) = faults(shown)
        assert error["place"] == f"theme/templates/article.html:{before.count(chr(10)) + 1}"
        assert message in error["message"]
        assert plain(shown.ask("/journal/first-light/").text) == plain(page.text)
        assert shown.ask("/about/").status == 200
        template.write_text(good)
        wait_for(lambda: shown.ask("/journal/first-light/"), lambda _: not faults(shown))
        assert shown.ask("/journal/first-light/").status == 200


def put(fault: str, place: str) -> str:
    """Return a line of a template with a fault: within a block, or before all else."""
    return f"{place}{fault}" if "block" in place else f"{fault}{place}"


def faults(shown: Shown) -> list[dict[str, str]]:
    """Return the errors that a browser on the first post gets."""
    found: list[dict[str, str]] = shown.state("/journal/first-light/")["errors"]
    return found


def test_a_changed_style_sheet_is_shown(bench: Workbench, project: Path) -> None:
    """Pages name the sheet as it is now, and it is served."""
    sheet = project / "theme" / "static" / "style.css"
    with previewing(bench, project=project) as shown:
        sheet.write_text(f"{sheet.read_text()}\n.quokka {{ color: red }}\n")
        page = shown.ask("/").text
        (address,) = re.findall(r'href="(/theme/style\.[^"]*)"', page)
        assert ".quokka" in shown.ask(address).text


@pytest.mark.parametrize("path", ["/search?q=x", *in_ci("/api/public/v1/posts", "/docs/")])
def test_pages_of_the_edge_are_explained(shown: Shown, path: str) -> None:
    """A page says in a sentence where to look for it."""
    answer = shown.ask(path)

    assert answer.status == 501
    assert "make run" in answer.text


@pytest.mark.size("ci")
def test_a_form_is_not_taken(shown: Shown) -> None:
    """A message sent from the contact page is not accepted in silence."""
    answer = shown.ask("/contact/", "POST")

    assert answer.status == 405
    assert answer.headers["Allow"] == "GET, HEAD"
    assert "make run" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "/../pelicanconf.py",
        "/%2e%2e/%2e%2e/etc/passwd",
        *in_ci(
            "/..%2f..%2fetc%2fpasswd",
            "//etc/passwd",
            "/images/..%2f..%2fposts%2fdraft.md",
            "/posts/draft.md",
            "/.preview/../../pelicanconf.py",
            "/%00",
            "/.preview/cache.sqlite",
        ),
    ],
)
def test_no_path_leaves_the_site(shown: Shown, path: str) -> None:
    """For any path, only files of the site are served."""
    answer = shown.ask(path)

    assert answer.status in {400, 404}
    assert "root:" not in answer.text
    assert "veiledword" not in answer.text


@pytest.mark.parametrize(
    "host", ["evil.example", *in_ci("localhost.evil.example", "", "127.0.0.1.nip.io")]
)
def test_a_request_for_another_host_is_refused(shown: Shown, host: str) -> None:
    """A page of another site that leads its name here reads nothing."""
    for path in ("/", "/.preview/events", "/journal/veiled-draft/"):
        answer = shown.ask(path, Host=host)
        assert answer.status == 403
        assert "veiled" not in answer.text


@pytest.mark.parametrize("host", ["localhost:9", *in_ci("127.0.0.1", "[::1]:80", "edit.localhost")])
def test_names_of_this_machine_are_answered(shown: Shown, host: str) -> None:
    """An address is nobody else's name."""
    assert shown.ask("/", Host=host).status == 200


@pytest.mark.size("ci")
def test_the_content_security_policy_holds(shown: Shown) -> None:
    """Pages come under the policy of the site, so that its violations show here too."""
    headers = shown.ask("/").headers

    assert "script-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.size("ci")
def test_an_address_without_its_slash_leads_on(shown: Shown) -> None:
    """As at the edge, a folder's address ends with a slash."""
    answer = shown.ask("/journal/first-light")

    assert (answer.status, answer.headers["Location"]) == (307, "/journal/first-light/")


@pytest.mark.parametrize("number", [signal.SIGINT, *in_ci(signal.SIGTERM)])
def test_a_signal_ends_it_cleanly(shown: Shown, number: int) -> None:
    """Browsers that listen do not hold it up, and nothing is printed but what there was to say."""
    with shown.listening() as states:
        next(states)
        status, said = shown.end(number)

    assert (status, said) == (0, "")


def test_nothing_is_written_but_its_own_folder(bench: Workbench) -> None:
    """The content stays as it is, and the folder of builds has one hidden folder more."""
    before = take(bench.content)
    with previewing(bench) as shown:
        shown.ask("/journal/")
        shown.ask("/feed.xml")

    assert take(bench.content) == before
    assert [path.name for path in bench.output.iterdir()] == [".preview"]
    kept = {path.name for path in (bench.output / ".preview").iterdir()}
    assert {name for name in kept if not name.startswith("__jinja2_")} <= {
        "cache.sqlite",
        "cache.sqlite-shm",
        "cache.sqlite-wal",
    }


def test_a_port_in_use_is_reported(bench: Workbench) -> None:
    """The command names the way out and ends with status 2."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        words = ["--content", bench.content, "--output", bench.output, "--port", port]
        done = run(sys.executable, "-m", "site_build", "serve", *words)

    assert done.returncode == 2
    assert done.stderr == (
        f"the preview cannot listen on 127.0.0.1 port {port} (Address already in use); "
        "name another with --port or --host\n"
    )


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--port", "70000"], "70000 is not in the range 0<=x<=65535"),
        *in_ci(
            (["--host", "no.such.host.invalid"], "there is no host 'no.such.host.invalid' here"),
            (["--content", "/nowhere"], "there is no folder '/nowhere'; make it"),
        ),
    ],
)
def test_invalid_options_are_reported(words: list[str], sentence: str) -> None:
    """Each refusal names the fix and no trace."""
    done = run(sys.executable, "-m", "site_build", "serve", *words)

    assert done.returncode == 2
    assert sentence in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.size("ci")
def test_content_that_is_bad_from_the_start_is_shown_as_far_as_it_goes(bench: Workbench) -> None:
    """The preview starts, says what is wrong on the terminal and over the page."""
    bench.write("posts/bad.md", "no front matter")
    with previewing(bench) as shown:
        (error,) = shown.state()["errors"]
        assert error["place"].endswith("posts/bad.md:1:1")
        assert shown.ask("/journal/first-light/").status == 200


@pytest.mark.size("ci")
def test_an_empty_folder_has_a_preview(empty_bench: Workbench) -> None:
    """A journal without a post is a site too."""
    with previewing(empty_bench) as shown:
        assert shown.ask("/").status == 200
        empty_bench.post("the-first")
        assert shown.ask("/journal/the-first/").status == 200


@pytest.mark.size("ci")
def test_an_unreadable_file_is_reported(shown: Shown) -> None:
    """A post that cannot be read is reported like any defect."""
    source = shown.bench.content / "posts" / "first.md"
    source.unlink()
    source.symlink_to("/nowhere")

    shown.ask("/")
    (error,) = shown.state()["errors"]
    assert "broken symbolic link" in error["message"]


@pytest.mark.size("ci")
def test_a_header_of_events_is_no_stream(shown: Shown) -> None:
    """A HEAD request gets the head, and that is all."""
    answer = shown.ask("/.preview/events", "HEAD")

    assert (answer.status, answer.text) == (200, "")
    assert answer.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert shown.ask("/", "HEAD").status == 200


@pytest.mark.size("ci")
def test_the_end_does_not_wait_for_a_page(bench: Workbench, project: Path) -> None:
    """A page that never comes does not keep the streams of browsers open."""
    template = project / "theme" / "templates" / "page.html"
    endless = "{% for _ in range(10 ** 15) %}{% endfor %}"
    template.write_text(
        template.read_text().replace("{% block main %}", "{% block main %}" + endless)
    )
    with (
        previewing(bench, project=project) as shown,
        shown.listening() as states,
        socket.create_connection(("127.0.0.1", shown.port)) as asking,
    ):
        next(states)
        asking.sendall(b"GET /about/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
        time.sleep(1)  # Until the page is under way; sooner, the test only shows less.
        shown.process.send_signal(signal.SIGTERM)

        assert list(states) == []


@pytest.mark.parametrize(
    "path", ["/style.css", "/feed.xml", *in_ci("/feed.json", "/index.md", "/")]
)
def test_types_and_headers_are_those_of_the_edge(shown: Shown, path: str) -> None:
    """Media types and the security policy are those that readers' browsers get."""
    (sheet,) = re.findall(r'href="(/theme/style\.[^"]*)"', shown.ask("/").text)
    answer = shown.ask(sheet if path == "/style.css" else path)

    assert answer.headers["Content-Type"] == media_type(path if path != "/" else "/index.html")
    assert answer.headers.items() >= dict(SITE_HEADERS).items()
