"""Templates of the operator in place of those shipped, and how their faults are reported."""

import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import edge_api
from edge_api.mail.messages import MESSAGE_TYPES, MailTemplates
from edge_api.mail.sample_message import open_templates, sample_message
from edge_api.schema.environment import SettingsError
from edge_api.settings import Settings, read_settings

MakeFolder = Callable[..., Settings]


@pytest.fixture
def with_files(tmp_path: Path) -> MakeFolder:
    """Return what writes templates into a folder and gives settings that name it."""

    def write(**files: str) -> Settings:
        folder = tmp_path / "mail"
        folder.mkdir()
        for name, text in files.items():
            (folder / name.replace("__", ".")).write_text(text)
        return read_settings({"MAIL_TEMPLATES": str(folder)}, None)

    return write


def text_of(settings: Settings, kind: str = "plain") -> str:
    """Return the owner's message with sample values."""
    message = sample_message("lead_notification", settings, "A site", open_templates(settings))
    part = message.get_body((kind,))
    assert part is not None
    return f"{message['Subject']}\n{part.get_content()}"


def test_without_a_folder_the_shipped_ones_are_used() -> None:
    """That is the default."""
    assert text_of(read_settings({}, None)).startswith("New enquiry from Ada Lovelace\n")


def test_each_file_replaces_one(with_files: MakeFolder) -> None:
    """Text and subject are the operator's; the HTML, which is not there, is the shipped one."""
    settings = with_files(
        lead_notification__txt="{{ lead.name }}: {{ lead.message | length }} characters\n",
        lead_notification__subject="Lead: {{ lead.name }}\n",
    )

    assert text_of(settings).startswith("Lead: Ada Lovelace\nAda Lovelace: ")
    assert "New enquiry from" in text_of(settings, "html")


def test_html_of_the_operator_is_escaped_and_may_extend_the_frame(with_files: MakeFolder) -> None:
    """Text that a stranger typed stays text."""
    settings = with_files(
        lead_notification__html="{% extends 'frame.html' %}{% block heading %}Hi "
        "{{ '<b>' }}{% endblock %}{% block content %}{% endblock %}"
        "{% block colophon %}{% endblock %}"
    )

    assert "Hi &lt;b&gt;" in text_of(settings, "html")


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"lead_notification__txt": "{% if %}"}, "lead_notification.txt, line 1: Expected an exp"),
        (
            {"lead_notification__txt": "a\n{{ lead.name }"},
            "lead_notification.txt, line 2: unexpected",
        ),
        (
            {"lead_notification__txt": "{{ nothing() }}"},
            "lead_notification: 'nothing' is undefined",
        ),
        ({"lead_notification__subject": "{{ 1 / 0 }}"}, "lead_notification: division by zero"),
        ({"lead_notificaton__txt": "x"}, "lead_notificaton.txt is no template of a message; these"),
    ],
)
def test_a_fault_is_found_at_the_start(
    with_files: MakeFolder, files: dict[str, str], message: str
) -> None:
    """The file is named, and its line where Jinja knows it."""
    with pytest.raises(SettingsError) as refused:
        open_templates(with_files(**files))

    assert str(refused.value).startswith(f"MAIL_TEMPLATES: {message}")


def test_an_unknown_name_is_noted_and_the_message_is_sent_without(with_files: MakeFolder) -> None:
    """File and line are reported for text, HTML and subject; a name in a condition is no error."""
    settings = with_files(
        lead_notification__txt="Hello\n{{ lead.nme }}: {{ lead.name }}{% if odd %}{% endif %}",
        lead_notification__html="<p>\n\n{{ nothing.at.all }}</p>",
        lead_notification__subject="{{ sujet }}Lead",
    )

    assert text_of(settings) == "Lead\nHello\n: Ada Lovelace\n"
    unknown = open_templates(settings).unknown
    assert [(Path(file).name, line) for file, line, _ in unknown] == [
        ("lead_notification.subject", 1),
        ("lead_notification.txt", 2),
        ("lead_notification.html", 3),
    ]
    assert ["'sujet'" in each[2] for each in unknown] == [True, False, False]
    assert open_templates(read_settings({}, None)).unknown == {}


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    """Before any mail is lost to it."""
    settings = read_settings({"MAIL_TEMPLATES": str(tmp_path / "gone")}, None)
    with pytest.raises(SettingsError, match="gone cannot be read: No such file"):
        open_templates(settings)


async def test_an_edge_does_not_start_with_a_faulty_one(make_edge: Any, tmp_path: Path) -> None:
    """A message that cannot be made would be lost in the middle of the night."""
    (tmp_path / "mail").mkdir()
    (tmp_path / "mail" / "access_decision.txt").write_text("{% endif %}")
    with pytest.raises(SettingsError, match=r"access_decision\.txt, line 1"):
        async with make_edge(MAIL_TEMPLATES=str(tmp_path / "mail")):
            pass


def test_changes_count_after_a_restart(with_files: MakeFolder) -> None:
    """The templates that were checked are those that are used."""
    settings = with_files(lead_notification__txt="before")
    templates = open_templates(settings)
    assert settings.mail_templates is not None
    (settings.mail_templates / "lead_notification.txt").write_text("{{ broken")
    message = sample_message("lead_notification", settings, "A site", templates)

    assert isinstance(templates, MailTemplates)
    assert message.get_body(("plain",)).get_content() == "before\n"  # type: ignore[union-attr]


COMPOSE_WITHOUT_FILES = """
import shutil

from edge_api import mail
from edge_api.mail.messages import MESSAGE_TYPES
from edge_api.mail.sample_message import open_templates, sample_message
from edge_api.settings import read_settings

templates = open_templates(read_settings({}, None))
shutil.rmtree(f"{mail.__path__[0]}/templates")
for name in MESSAGE_TYPES:
    print(sample_message(name, read_settings({}, None), "A site", templates)["Subject"])
"""


@pytest.mark.size("test")
def test_an_upgrade_may_replace_the_files_of_a_running_process(tmp_path: Path) -> None:
    """The loaded templates are used, also those of messages that were not sent so far."""
    package = Path(edge_api.__file__).parent
    shutil.copytree(package, tmp_path / "edge_api", ignore=shutil.ignore_patterns("__pycache__"))
    command = (sys.executable, "-c", COMPOSE_WITHOUT_FILES)
    said = subprocess.run(command, cwd=tmp_path, check=True, capture_output=True, text=True).stdout

    assert len(said.splitlines()) == len(MESSAGE_TYPES)


def test_the_operators_folder_may_be_replaced_too(with_files: MakeFolder) -> None:
    """Also a file of it that no message needed at the start."""
    settings = with_files(frame__html="FRAME {% block content %}{% endblock %}")
    templates = open_templates(settings)
    assert settings.mail_templates is not None
    shutil.rmtree(settings.mail_templates)
    message = sample_message("owner_summary", settings, "A site", templates)

    assert "FRAME" in message.get_body(("html",)).get_content()  # type: ignore[union-attr]


def test_a_file_that_is_not_utf_8_is_named(with_files: MakeFolder) -> None:
    """Jinja would say which byte it is, and not of which file."""
    settings = with_files(lead_notification__txt="x")
    assert settings.mail_templates is not None
    (settings.mail_templates / "lead_notification.txt").write_bytes(b"\xff")
    with pytest.raises(SettingsError, match=r"lead_notification\.txt is not UTF-8"):
        open_templates(settings)
