"""A program of test_deploy.py: two journals on a server, upgraded one after the other.

It ends with a line `deployed`. Its arguments are those of `scratch_server`; the folder has Caddy's
program too.
"""

import fcntl
import json
import pwd
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from tests.scratch_machine import (
    CERTIFICATE,
    DOMAIN,
    JOURNAL,
    PATIENCE,
    PROGRAMS,
    UNITS,
    fetch,
    make_certificate,
    prepare,
    run_block,
    start,
    wait_for,
)
from tests.scratch_pushes import POST, git, take_connections

ROOT = Path(__file__).resolve().parent.parent
OTHER_DOMAIN = "atelier.example"
OTHER = Path("/srv/atelier")
OTHER_ANSWER = b"maildir:/srv/atelier/var/mail\n"
SITES = Path("/etc/nginx/conf.d")
CADDY = Path("/etc/caddy")
CADDY_LOGS = Path("/var/log/caddy")
THIRD_DOMAIN = "fore-edge.example"
THIRD = Path("/srv/ate")
"""A journal whose name begins another one's, and whose domain has the name of the program."""
SYSTEM = Path("/etc/os-release")
LEAD = b'{"name": "Ann", "email": "ann@example.org", "budget_tier": "starter", "message": "Hi"}'


FORMER = f"""# Caddy 2.6 and later, in front of the edge; it fetches the certificate itself.
{DOMAIN} {{
\treverse_proxy 127.0.0.1:8000
}}

# The other name, where it has an address.
www.{DOMAIN} {{
\tredir https://{DOMAIN}{{uri}} permanent
}}

# Other journals of this machine.
import /etc/caddy/fore-edge-*.caddy
"""
"""The site of the first journal in the Caddyfile, as former versions have written it."""


def read_state(journal: Path, unit: str, site: Path) -> Mapping[str, bytes]:
    """Return all that root and the user have for a journal, but for the files of the store."""
    name = "" if journal == JOURNAL else f"-{journal.name}"
    own = re.compile(rf"{unit}(-(backup|doctor|publish|push|receive))?@?\.[a-z]+")
    files = [each for each in UNITS.iterdir() if own.fullmatch(each.name)]
    files += [site, PROGRAMS / f"push{name}", journal / ".env", journal / "pelicanconf.py"]
    state = {str(each): each.read_bytes() for each in files}
    assert len(state) > 12, state.keys()
    return state | {"current": bytes((PROGRAMS / f"current{name}").readlink())}


def first() -> Mapping[str, bytes]:
    """Return the state of the journal without a name."""
    return read_state(JOURNAL, "fore-edge", SITES / "fore-edge.conf")


def second() -> Mapping[str, bytes]:
    """Return the state of the journal with a name."""
    return read_state(OTHER, "fore-edge-atelier", SITES / "fore-edge_atelier.conf")


def check_systems(deploy: str, folder: Path) -> None:
    """See systems refused that are too old, and the journal deployed on an unknown one."""
    known = SYSTEM.read_text("utf-8")
    for system, version in {"debian": '"11"', "ubuntu": '"22.04"'}.items():
        SYSTEM.write_text(f"ID={system}\nVERSION_ID={version}\n", "utf-8")
        run_block(deploy, folder, refused="take Debian 12, Ubuntu 24.04, or later")
    assert not JOURNAL.exists()
    SYSTEM.write_text("ID=other\nVERSION_ID=1\n", "utf-8")
    said = run_block(deploy, folder)
    assert "this system (other 1) is not known to work: Debian 12, Ubuntu 24.04" in said
    assert f"https://www.{DOMAIN} is not led to https://{DOMAIN}, since the certificate" in said
    SYSTEM.write_text('ID=ubuntu\nVERSION_ID="24.04"\n', "utf-8")
    assert "not known" not in run_block(deploy, folder, b"")
    SYSTEM.write_text(known, "utf-8")


def name_wrongly(deploy: str, folder: Path) -> None:
    """See names and domains refused that are those of something else, and nothing made."""
    other = deploy.replace(f"deploy {DOMAIN}", f"deploy {OTHER_DOMAIN}").rstrip()
    before, served = first(), sorted(UNITS.iterdir())
    for typed, why in {
        other: f"/srv/journal is the journal of {DOMAIN}: for another one type --name",
        f"{deploy.rstrip()} --name atelier": f"{DOMAIN} is the domain of the journal in /srv/jo",
        f"{other} --name At-elier": "is no name: take at most 20 of a-z and 0-9",
        f"{other} --name backup": "fore-edge-backup is a unit of the journal without a name",
        f"{other} --name mail": "there is a user or a group mail already: choose another name",
        f"{other} --name shadow": "there is a user or a group shadow already: choose another name",
        f"{other} --name tools": "there is /srv/tools already: choose another name",
        f"{other} --name atelier": f"there is no certificate of {OTHER_DOMAIN}: run certbot",
    }.items():
        run_block(f"{typed}\n", folder, b"", why)
    broken = CERTIFICATE.parent / "third.example"
    broken.mkdir()
    for name in ("fullchain.pem", "privkey.pem"):
        (broken / name).write_text("no certificate", "ascii")
    third = other.replace(OTHER_DOMAIN, "third.example")
    run_block(f"{third} --name third\n", folder, b"", "nginx refuses its configuration, so")
    shutil.rmtree(broken)
    assert first() == before
    assert sorted(UNITS.iterdir()) == served
    assert [each.name for each in SITES.iterdir()] == ["fore-edge.conf"]
    made = {each.pw_name for each in pwd.getpwall()} & {"atelier", "backup-git", "shadow"}
    assert not made, made
    left = {each.name for each in Path("/srv").iterdir()} & {"atelier", "backup", "mail", "shadow"}
    assert not left, left
    with Path("/run/fore-edge-deploy.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        run_block(deploy, folder, b"", "another deploy runs on this server: type this again when")
    assert first() == before
    assert not (PROGRAMS / "current-third").exists()


def serve_both() -> "tuple[subprocess.Popen[bytes], subprocess.Popen[bytes], socket.socket]":
    """Start both journals and the proxy; return the edges, and the second one's socket."""
    listening = [socket.create_server(("127.0.0.1", port), backlog=1024) for port in (8000, 8001)]
    edges = []
    for unit, each in zip(("fore-edge", "fore-edge-atelier"), listening, strict=True):
        assert f"\nListenStream=127.0.0.1:{each.getsockname()[1]}\n" in (
            UNITS / f"{unit}.socket"
        ).read_text("utf-8")
        edges.append(start(unit, each))
        start(f"{unit}-publish")
    subprocess.run(["/usr/sbin/nginx"], check=True)
    for domain in (DOMAIN, OTHER_DOMAIN):
        wait_for(lambda: fetch(f"https://{domain}/")[0] == 200, f"{domain} is served")  # noqa: B023
        page = f"https://{domain}/journal/?a=1"
        assert fetch(page.replace("https", "http")) == (301, page)
    for scheme in ("http", "https"):
        assert fetch(page.replace("https://", f"{scheme}://www.")) == (301, page)
    assert fetch(f"https://{OTHER_DOMAIN}/api/public/v1/leads", LEAD)[0] == 201
    wait_for(lambda: list((OTHER / "var/mail/new").iterdir()), "the second one's owner has mail")
    assert not list((JOURNAL / "var").glob("mail/new/*"))
    return edges[0], edges[1], listening[1]


def install_next(folder: Path) -> Path:
    """Install the program as version 1.2.0 beside the one that runs; return its folder."""
    former, program = PROGRAMS / "1.1.0", PROGRAMS / "1.2.0"
    run_block(f"python3 -m venv {program}\n{program}/bin/pip install --quiet *.whl\n", folder)
    (libraries,) = former.glob("lib/*/site-packages/libraries.pth")
    shutil.copy(libraries, program / libraries.relative_to(former))
    (declared,) = program.glob("lib/*/site-packages/edge_api/schema/environment.py")
    text = declared.read_text("utf-8").replace(
        'VERSION: Final = "1.1.0"', 'VERSION: Final = "1.2.0"'
    )
    declared.write_text(text, "utf-8")
    return program


def versions(folder: Path) -> list[str]:
    """Return the versions that the command `fore-edge` has in both journals, and elsewhere."""
    places = (JOURNAL, OTHER / "content", Path("/srv"))
    said = [run_block(f"cd {place}; fore-edge --version\n", folder) for place in places]
    return [each.split()[-1] for each in said]


def restart(edge: "subprocess.Popen[bytes]", listening: socket.socket) -> "subprocess.Popen[bytes]":
    """End the edge of the second journal, and return a new one that answers."""
    edge.terminate()
    assert edge.wait(PATIENCE) == 0
    edge = start("fore-edge-atelier", listening)
    assert fetch(f"https://{OTHER_DOMAIN}/")[0] == 200
    return edge


def upgrade_one_by_one(
    deploy: str,
    folder: Path,
    edges: "tuple[subprocess.Popen[bytes], subprocess.Popen[bytes], socket.socket]",
) -> None:
    """Upgrade the second journal, then the first, and take the second one back."""
    of_first, of_second, listening = edges
    other = deploy.replace(f"deploy {DOMAIN}", f"deploy {OTHER_DOMAIN}")
    before = first()
    program = install_next(folder)
    run_block(f"cd {OTHER}; {program}/bin/fore-edge upgrade\n", folder)
    said = run_block(other.replace("/1.1.0/", "/1.2.0/"), folder, b"")
    assert f"{OTHER_DOMAIN} is the journal atelier, in /srv/atelier" in said
    assert first() == before
    assert of_first.poll() is None
    assert versions(folder) == ["1.1.0", "1.2.0", "1.1.0"]
    of_second = restart(of_second, listening)
    assert fetch(f"https://{DOMAIN}/")[0] == 200
    assert version_of(of_second) == "1.2.0"

    upgraded = second()
    run_block(deploy.replace("/1.1.0/", "/1.2.0/"), folder, b"")
    assert second() == upgraded
    assert versions(folder) == ["1.2.0", "1.2.0", "1.2.0"]
    before = first()
    run_block(other, folder, b"")
    assert first() == before
    assert versions(folder) == ["1.2.0", "1.1.0", "1.2.0"]
    assert version_of(restart(of_second, listening)) == "1.1.0"


def version_of(edge: "subprocess.Popen[bytes]") -> str:
    """Return the version whose program an edge runs."""
    words = Path(f"/proc/{edge.pid}/cmdline").read_text("utf-8")
    (version,) = re.findall(rf"{PROGRAMS}/([0-9.]+)/", words)
    return str(version)


def have_similar_names(page: str, deploy: str, folder: Path) -> None:
    """Bring content first, deploy it under such a name, and end that journal by the page."""
    before = first(), second()
    moving = (ROOT / "docs/from-checkout.md").read_text("utf-8")
    (source := folder / "source").mkdir()
    run_block(f"{PROGRAMS}/1.1.0/bin/fore-edge init {source}/own\n", folder)
    (post,) = (source / "own/content/posts").glob("*.md")
    post.rename(post.with_name("own.md"))
    run_block("tar -cf ../../journal.tar content pelicanconf.py\n", source / "own")
    (folder / "journal.env").write_text("RATE_LEADS=7/minute\n", "ascii")
    for line in re.findall(r"^# ((?:useradd|install|runuser) .*)$", moving, re.MULTILINE):
        run_block(re.sub(r"journal(?!\.)", "ate", line) + "\n", folder)
    make_certificate(THIRD_DOMAIN)
    typed = deploy.replace(f"deploy {DOMAIN}", f"deploy {THIRD_DOMAIN}").rstrip()
    run_block(f"{typed} --name ate --git\n", folder, b"")
    assert [each.name for each in THIRD.glob("content/posts/*.md")] == ["own.md"]
    settings = (THIRD / ".env").read_text("utf-8")
    assert settings.startswith("RATE_LEADS=7/minute\n")
    assert f"\nSITE_URL=https://{THIRD_DOMAIN}\n" in settings
    site = (SITES / "fore-edge_ate.conf").read_text("utf-8")
    assert set(re.findall("server_name (.*);", site)) == {THIRD_DOMAIN}
    assert f"return 301 https://{THIRD_DOMAIN}$request_uri;" in site
    assert "proxy_pass http://fore-edge-ate;" in site
    assert f"{THIRD_DOMAIN} is the journal ate" in run_block(f"{typed}\n", folder, b"")

    link = PROGRAMS / "current-ate"
    former = link.readlink()
    link.unlink()
    link.symlink_to(PROGRAMS / "0.9.0")
    gone = f"{link} leads to {PROGRAMS}/0.9.0, which is gone: type deploy again"
    run_block(f"cd {THIRD}; fore-edge --version\n", folder, refused=gone)
    link.unlink()
    link.symlink_to(former)

    _, _, ending = page.partition("# systemctl disable --now fore-edge-atelier.socket")
    ending = ending.partition("\n## ")[0]
    assert ending
    for line in re.findall(r"^# ((?:rm|userdel) .*)$", ending, re.MULTILINE):
        run_block(line.partition(" && ")[0].replace("atelier", "ate") + "\n", folder)
    places = [UNITS, PROGRAMS, SITES, Path("/srv")]
    names = [each.name for place in places for each in place.iterdir()]
    left = [each for each in names if re.search(r"(\b|_)ate\b", each)]
    assert not left, left
    assert not {each.pw_name for each in pwd.getpwall()} & {"ate", "ate-git"}
    assert (first(), second()) == before


def look_after_second(deploy: str, folder: Path) -> None:
    """See `doctor`, a replica, a push and another domain of the journal with a name."""
    certificate = f"SSL_CERT_FILE={CERTIFICATE.parent / OTHER_DOMAIN}/fullchain.pem"
    assert "looked at: " in run_block(f"cd {OTHER}; {certificate} fore-edge doctor\n", folder)
    code = "from edge_api.health import name_unit; print(name_unit())"
    (python,) = PROGRAMS.glob("current-atelier/bin/python3")
    for journal, unit in {JOURNAL: "fore-edge", OTHER: "fore-edge-atelier"}.items():
        said = run_block(f'cd {journal}; {python} -P -c "{code}"\n', folder)
        assert said == f"{unit}\n"
    assert start("fore-edge-atelier-backup").wait(PATIENCE) == 0
    assert list(OTHER.glob("var/backups/edge-*.db"))
    foreign = [str(path) for path in OTHER.rglob("*") if path.owner() != "atelier"]
    assert not foreign, foreign

    before = first()
    other = deploy.replace(f"deploy {DOMAIN}", f"deploy {OTHER_DOMAIN}").rstrip()
    said = run_block(f"{other} --git --trust-settings\n", folder, b"")
    assert f"git clone atelier-git@{OTHER_DOMAIN}:/srv/atelier.git" in said
    trusted = (UNITS / "fore-edge-atelier-receive@.service").read_text("utf-8")
    assert "\nReadWritePaths=/srv/atelier\n" in trusted
    run_block(f"{other}\n", folder, b"")
    take_connections("fore-edge-atelier-receive")
    clone = Path("/srv/clone")
    git("clone", "--quiet", "/srv/atelier.git", str(clone), folder=Path("/srv"))
    (clone / "content/posts/pushed.md").write_text(POST.format("pushed", "One.", "Words."), "utf-8")
    git("add", "content")
    git("commit", "--quiet", "--message", "Write")
    git("push", "--quiet", "origin", "HEAD:main")
    wait_for(lambda: fetch(f"https://{OTHER_DOMAIN}/journal/pushed/")[0] == 200, "it is published")
    assert fetch(f"https://{DOMAIN}/journal/pushed/")[0] == 404
    assert (OTHER / "content/posts/pushed.md").owner() == "atelier"
    assert start("fore-edge-atelier-push").wait(PATIENCE) == 0

    domain = f"www.{DOMAIN}"
    make_certificate(domain, DOMAIN)
    moved = f"{other.replace(f'deploy {OTHER_DOMAIN}', f'deploy {domain}')} --name atelier\n"
    run_block(moved, folder, b"", f"/srv/atelier is the journal of {OTHER_DOMAIN}: for another one")
    settings = (OTHER / ".env").read_text("utf-8")
    (OTHER / ".env").write_text(settings.replace(f"https://{OTHER_DOMAIN}", f"https://{domain}"))
    assert f"since it is the domain of the journal in {JOURNAL}" in run_block(moved, folder, b"")
    names = re.findall("server_name (.*);", (SITES / "fore-edge_atelier.conf").read_text("utf-8"))
    assert names == [domain, domain]
    (OTHER / ".env").write_text(settings)
    run_block(f"{other} --name atelier\n", folder, b"")
    assert first() == before


def use_caddy(deploy: str, folder: Path) -> None:
    """See both journals behind Caddy, and a configuration that it refuses taken back."""
    program, unpacked = Path("/usr/local/bin/caddy"), Path("/usr/local/lib/caddy")
    shutil.copy(folder / "caddy", unpacked)
    # Later versions open the logs for `validate`, which Debian 12's does not.
    open_log = f'[ "$1" != validate ] || echo >{CADDY_LOGS}/fore-edge.log'
    program.write_text(f'#!/bin/sh\n{open_log}\nexec {unpacked} "$@"\n', "utf-8")
    program.chmod(0o755)
    main_file, second_file = CADDY / "Caddyfile", CADDY / "fore-edge-atelier.caddy"
    first_file = CADDY / "fore-edge.caddy"
    for place in (CADDY, CADDY_LOGS):
        place.mkdir()
    run_block("useradd --system --no-create-home caddy\n", folder)
    shutil.chown(CADDY_LOGS, "caddy", "caddy")
    blog = "blog.example {\n\trespond 404\n}\n"
    main_file.write_text(f"{blog}{FORMER}", "utf-8")
    main_file.chmod(0o640)
    shutil.chown(main_file, "root", "caddy")
    other = deploy.replace(f"deploy {DOMAIN}", f"deploy {OTHER_DOMAIN}").rstrip()
    taken = other.replace(OTHER_DOMAIN, "blog.example")

    for site in SITES.iterdir():
        site.unlink()
    known = f"/srv/journal is the journal of {DOMAIN}: for another one"
    run_block(f"{other} --proxy caddy\n", folder, b"", known)
    run_block(f"{other} --proxy caddy --name atelier\n", folder, b"")
    both = {"blog.example", DOMAIN, f"www.{DOMAIN}", OTHER_DOMAIN, f"www.{OTHER_DOMAIN}"}
    assert find_hosts() == both
    assert FORMER.partition("\n\n# Other")[0] in main_file.read_text("utf-8")
    assert main_file.stat().st_mode & 0o777 == 0o640
    assert "reverse_proxy 127.0.0.1:8001 {" in second_file.read_text("utf-8")
    assert f"{CADDY_LOGS}/fore-edge-atelier.log" in second_file.read_text("utf-8")
    run_block(f"{taken} --proxy caddy --name third\n", folder, b"", "caddy refuses its config")
    assert not (CADDY / "fore-edge-third.caddy").exists()
    run_block(f"{deploy.rstrip()} --proxy caddy\n", folder, b"")
    assert find_hosts() == both
    imported = "import /etc/caddy/fore-edge*.caddy\n"
    assert re.sub("\n+", "\n", main_file.read_text("utf-8")) == f"{blog}{imported}"
    assert f"{OTHER_DOMAIN} is the journal a" in run_block(f"{other} --proxy caddy\n", folder, b"")
    assert first_file.read_text("utf-8").startswith(f"# journal: {DOMAIN}\n")
    assert {each.owner() for each in CADDY_LOGS.iterdir()} == {"caddy"}
    broken = CADDY / "fore-edge-broken.caddy"
    broken.write_text("broken.example {\n\tnothing\n}\n", "utf-8")
    files = (main_file, first_file, second_file)
    before = [each.read_bytes() for each in files]
    for typed in (deploy.rstrip(), other):
        run_block(
            f"{typed} --proxy caddy\n", folder, b"", "caddy refuses its configuration, so /etc"
        )
    assert before == [each.read_bytes() for each in files]
    broken.unlink()
    assert find_hosts() == both


def find_hosts() -> set[str]:
    """Return the names that Caddy would serve, as it reads its configuration."""
    command = ["/usr/local/bin/caddy", "adapt", "--config", "/etc/caddy/Caddyfile"]
    read = subprocess.run(command, check=True, capture_output=True, text=True)
    (server,) = json.loads(read.stdout)["apps"]["http"]["servers"].values()
    return {name for route in server["routes"] for name in route["match"][0]["host"]}


def main() -> None:
    """Deploy two journals, and use and upgrade both."""
    page, folder, _, libraries = map(Path, sys.argv[1:])
    deploy, *after = prepare(page, folder, libraries)
    (typed,) = (each for each in after if "--name" in each)
    with Path("/etc/hosts").open("a", encoding="utf-8") as hosts:
        hosts.write(f"127.0.0.1 www.{DOMAIN} {OTHER_DOMAIN} www.{OTHER_DOMAIN}\n")
    check_systems(deploy, folder)
    name_wrongly(deploy, folder)
    make_certificate(OTHER_DOMAIN, f"www.{OTHER_DOMAIN}")
    before = first()
    said = run_block(typed, folder, OTHER_ANSWER)
    assert f"https://www.{OTHER_DOMAIN} leads to https://{OTHER_DOMAIN}" in said
    assert first() == before
    assert OTHER.owner() == "atelier"
    upgrade_one_by_one(deploy, folder, serve_both())
    have_similar_names(page.read_text("utf-8"), deploy, folder)
    look_after_second(deploy, folder)
    use_caddy(deploy, folder)
    print("deployed")


if __name__ == "__main__":
    main()
