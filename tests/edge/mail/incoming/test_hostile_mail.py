"""Replies as strangers write them: each is read without harm, or left alone, within bounds."""

import base64
from typing import Any

import pytest

from tests.edge.mail.incoming.conftest import Folder, Reader
from tests.edge.mail.incoming.correspondence import (
    answer_lead,
    received,
    until_read,
    write,
)

pytestmark = pytest.mark.size("test")

NESTED = "".join(
    f'--b{level}\r\nContent-Type: multipart/mixed; boundary="b{level + 1}"\r\n\r\n'
    for level in range(500)
)
ALTERNATIVE = (
    "--b\r\nContent-Type: text/html\r\n\r\n<p>markup</p>\r\n"
    "--b\r\nContent-Type: text/plain\r\n\r\nplain words\r\n--b--\r\n"
)
HTML = (
    "<html><head><title>no</title><style>p {color: red}</style></head><body>"
    "<script>alert(1)</script><p>Hello <b>Ann</b> &amp; co.</p><div>Second<br>third</div>"
    '<img src=x onerror="alert(1)"><a href="javascript:alert(1)">link</a></body></html>'
)
FILES = "".join(
    f'--b\r\nContent-Disposition: attachment; filename="{name}"\r\n\r\nx\r\n'
    for name in ("../../etc/passwd", "C:\\\\boot.ini", "a\u202egnp.exe", *map(str, range(30)))
)
PARTS = f"--b\r\nContent-Disposition: attachment; filename=x{';a*=b' * 20}\r\n\r\nx\r\n" * 5000
MIXED = {"Content_Type": "multipart/mixed; boundary=b", "MIME_Version": "1.0"}
CODED = "Content-Transfer-Encoding: base64"


def encode(text: str, charset: str = "utf-8") -> str:
    """Return a text in base64."""
    return base64.encodebytes(text.encode(charset, "surrogatepass")).decode()


CASES: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "plain before HTML": (
        {"text": ALTERNATIVE, "Content_Type": "multipart/alternative; boundary=b"},
        {"body": "plain words"},
    ),
    "HTML alone": (
        {"text": HTML, "Content_Type": "text/html; charset=utf-8"},
        {"body": "Hello Ann & co.\n\nSecond\nthirdlink"},
    ),
    "an empty text beside HTML": (
        {
            "text": ALTERNATIVE.replace("plain words", " "),
            "Content_Type": "multipart/alternative; boundary=b",
        },
        {"body": "markup"},
    ),
    "an encoding that does not exist": (
        {"text": "caf\u00e9", "Content_Type": "text/plain; charset=x-none"},
        {"body": "caf\u00e9"},
    ),
    "a codec that is no encoding": (
        {"text": "abc", "Content_Type": "text/plain; charset=zlib"},
        {"body": "abc"},
    ),
    "a codec that takes the square": (
        {"text": "a" * 100_000 + "-", "Content_Type": "text/plain; charset=punycode"},
        {
            "body": ("a" * 100_000 + "-")[: 100_000 - 39]
            + "\n[cut here: the rest is in the mailbox]"
        },
    ),
    "a transfer encoding that does not exist": (
        {"text": "abc", "Content_Transfer_Encoding": "x-none"},
        {"body": "abc"},
    ),
    "broken base64": ({"text": "!!!", "headers": (CODED,)}, {}),
    "base64": ({"text": encode("caf\u00e9"), "headers": (CODED,)}, {"body": "caf\u00e9"}),
    "NUL and other control characters": (
        {"text": encode("a\x00b\x1b[31mc\td"), "headers": (CODED,)},
        {"body": "a b [31mc d"},
    ),
    "directions of writing": (
        {"text": encode("a\u202eb\u2066c"), "headers": (CODED,)},
        {"body": "abc"},
    ),
    "lone surrogates": (
        {
            "text": encode("a\ud800b", "utf-16-le"),
            "headers": (CODED, "Content-Type: text/plain; charset=utf-16-le"),
        },
        {"body": "a\ufffdb"},
    ),
    "no encoding at all": ({"text": "\udcff\udcfe"}, {"body": "\ufffd\ufffd"}),
    "parts within parts": (
        {"text": NESTED, "Content_Type": "multipart/mixed; boundary=b0"},
        {"body": ""},
    ),
    "a message within messages": (
        {"text": "Content-Type: message/rfc822\r\n\r\n" * 3000, "Content_Type": "message/rfc822"},
        {"body": ""},
    ),
    "many parts": (
        {"text": "--b\r\n\r\nx\r\n" * 20_000, **MIXED},
        {"body": "x"},
    ),
    "many lines": ({"text": "\r\n" * 500_000 + "end"}, {"body": ""}),
    "one long line": (
        {"text": "x" * 1_500_000},
        {"body": "x" * (100_000 - 39) + "\n[cut here: the rest is in the mailbox]"},
    ),
    "a subject of 1 MB": (
        {"text": "abc", "Subject": "=?" * 500_000},
        {"subject": "=?" * 100, "body": "abc"},
    ),
    "encoded words": (
        {"text": "abc", "Subject": "=?utf-8?q?caf=C3=A9=0D=0ABcc:_eve?="},
        {"subject": "caf\u00e9 Bcc: eve"},
    ),
    "a header of many parameters": (
        {"text": "abc", "Content_Type": "text/plain" + ';a="' * 200_000},
        {},
    ),
    "brackets in a sender": ({"text": "abc", "From": "(" * 3000 + "<a@b.net>"}, {}),
    "no sender": ({"text": "abc", "From": ""}, {"email": "unknown@sender.invalid"}),
    "two senders": (
        {"text": "abc", "From": "a@work.net, b@work.net"},
        {"email": "unknown@sender.invalid"},
    ),
    "another sender": (
        {"text": "abc", "From": '"ann@readers-club.net" <eve@evil.net>'},
        {"email": "eve@evil.net", "is_verified": 0},
    ),
    "files": (
        {"text": f"--b\r\n\r\nHello\r\n{FILES}--b--", **MIXED},
        {
            "body": "Hello",
            "attachments": ["passwd", "boot.ini", "agnp.exe", *map(str, range(17))],
        },
    ),
    "markup in plain text": ({"text": "<b>x</b>"}, {"body": "<b>x</b>"}),
    "elements within elements": (
        {"text": "<div>" * 70_000 + "deep", "Content_Type": "text/html"},
        {"body": "deep"},
    ),
    "signs within tags": (
        {"text": '<p title="a > b">1 < 2<p title=\'">"\'>x', "Content_Type": "text/html"},
        {"body": "1 < 2\nx"},
    ),
    "many parameters of many parts": (
        {"text": f"--b\r\n\r\nHello\r\n{PARTS}--b--", **MIXED},
        {"body": "Hello", "attachments": ["x"] * 20},
    ),
    "a subject like that of a report": (
        {"Subject": "Re: delivery-status"},
        {"subject": "Re: delivery-status"},
    ),
    "automatic": ({"Auto_Submitted": "auto-replied"}, {"is_automatic": 1}),
    "not automatic": ({"Auto_Submitted": "no"}, {"is_automatic": 0}),
    "in bulk": ({"Precedence": "bulk"}, {"is_automatic": 1}),
    "of a list": ({"List_Id": "<a.b>"}, {"is_automatic": 1}),
    "with a mark": ({"X_Autoreply": "yes"}, {"is_automatic": 1}),
    "from nobody": ({"Return_Path": "<>"}, {"is_automatic": 1}),
    "from somebody": ({"Return_Path": "<a@b.net>"}, {"is_automatic": 0}),
}


async def test_each_reply_is_read_within_bounds(reading: Reader, folder: Folder) -> None:
    """No case harms the others; those that the parser gives up are left unread."""
    leads = {}
    async with reading() as edge:
        store = edge.service.store
        for number, (name, (given, _)) in enumerate(CASES.items()):
            lead, answer = await answer_lead(store, email=f"a{number}@readers-club.net")
            leads[lead["id"]] = name
            folder.put(write(answer, **given))
        await until_read(store, len(CASES))
        rows = {leads[row["lead_id"]]: row for row in await received(store)}

    assert len(folder.flags()) == len(CASES)
    differing = {
        name: {key: (rows[name][key] if name in rows else None, value)}
        for name, (_, wanted) in CASES.items()
        for key, value in wanted.items()
        if name not in rows or rows[name][key] != value
    }
    assert differing == {}


VERIFIED = {
    "mx.test; dmarc=pass header.from=readers-club.net": 1,
    "MX.test 1; spf=fail smtp.mailfrom=x.net; dmarc=pass (p=none) header.from=Readers-Club.net": 1,
    "mx.test; dkim=pass; dmarc=pass policy.p=none header.from=readers-club.net; x=y": 1,
    "mx.test; dmarc=fail header.from=readers-club.net": 0,
    "mx.test; spf=pass smtp.mailfrom=readers-club.net": 0,
    "mx.test; dmarc=pass header.from=evil.net": 0,
    "mx.evil; dmarc=pass header.from=readers-club.net": 0,
    "mx.test.evil; dmarc=pass header.from=readers-club.net": 0,
    "mx.test; dmarc=fail header.from=evil.net; dmarc=pass header.from=readers-club.net": 0,
    'mx.test; spf=pass smtp.mailfrom="x; dmarc=pass header.from=readers-club.net"@evil.net': 0,
    "mx.test; spf=pass (a (b; dmarc=pass header.from=readers-club.net": 0,
    "mx.test; spf=pass (a \\) ; dmarc=pass header.from=readers-club.net": 0,
    "mx.test; none": 0,
    "": 0,
}


async def test_the_sender_is_verified_by_our_own_server(reading: Reader, folder: Folder) -> None:
    """The topmost `Authentication-Results` alone, of the server that the setting names."""
    results = {}
    async with reading(MAIL_AUTHSERV_ID="mx.test") as edge:
        store = edge.service.store
        second = "Authentication-Results: mx.test; dmarc=pass header.from=readers-club.net"
        for number, said in enumerate(VERIFIED):
            lead, answer = await answer_lead(store, email=f"a{number}@readers-club.net")
            results[lead["id"]] = said
            headers = (f"Authentication-Results: {said}", second) if said else ()
            folder.put(write(answer, headers=headers))
        await until_read(store, len(VERIFIED))
        found = {results[row["lead_id"]]: row["is_verified"] for row in await received(store)}

    assert found == VERIFIED


async def test_without_the_setting_nobody_is_verified(reading: Reader, folder: Folder) -> None:
    """Anybody may write such a header."""
    async with reading() as edge:
        _, answer = await answer_lead(edge.service.store)
        said = "Authentication-Results: mx.test; dmarc=pass header.from=readers-club.net"
        folder.put(write(answer, headers=(said,)))
        await until_read(edge.service.store, 1)

        assert [row["is_verified"] for row in await received(edge.service.store)] == [0]
