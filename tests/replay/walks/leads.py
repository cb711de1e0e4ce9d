"""Walks that send enquiries: by the API, by the form of the contact page, and by scripts."""

from typing import Any, Final

from tests.replay.walk import Walk, walk

LEADS: Final = "/api/public/v1/leads"
ADMIN: Final = "/api/public/v1/admin/leads"
LEAD: Final = {
    "name": "Ann Lee",
    "email": "ann@example.org",
    "budget_tier": "5k-10k",
    "message": "We would like to move our blog.",
}
STORED: Final = f"{ADMIN}?order=created_at.desc&limit=1"
FAULTS: Final[tuple[Any, ...]] = (
    {},
    [],
    "x",
    None,
    {**LEAD, "name": 5},
    {**LEAD, "name": None},
    {**LEAD, "name": ""},
    {**LEAD, "name": " \t "},
    {**LEAD, "name": "x" * 101},
    {**LEAD, "name": "a\x00b"},
    {**LEAD, "name": "a\nb"},
    {**LEAD, "email": "ann"},
    {**LEAD, "email": "a@b"},
    {**LEAD, "email": f"{'a' * 250}@example.org"},
    {**LEAD, "email": "ann@example..org"},
    {**LEAD, "email": "Ann <ann@example.org>"},
    {**LEAD, "budget_tier": "x" * 51},
    {**LEAD, "message": "x" * 2001},
    {**LEAD, "message": ""},
    {**LEAD, "message": "a\x07"},
    {"name": "Ann"},
    {"email": "ann@example.org"},
    {**LEAD, "message": ["x"]},
)
GOOD: Final[tuple[dict[str, Any], ...]] = (
    {**LEAD},
    {**LEAD, "name": " Zoe\u0308 "},
    {**LEAD, "name": "x" * 100},
    {**LEAD, "message": "y" * 2000},
    {**LEAD, "message": "a\n\tb\r"},
    {**LEAD, "more": 1},
    {**LEAD, "email": "ANN@Example.ORG"},
    {**LEAD, "email": "ann@site.test"},
    {**LEAD, "email": "ä@exämple.org"},
    {**LEAD, "id": "x", "status": "won"},
    {**LEAD, "_gotcha": ""},
    {**LEAD, "_gotcha": "bot"},
    {**LEAD, "consent": True},
    {**LEAD, "consent_text": "Yes."},
    {**LEAD, "message": "CHEAP VIAGRA http://a.b http://c.d"},
    {**LEAD, "message": "casino casino <a href=http://x.y>x</a> http://x.y http://x.z http://z.y"},
)
FORM: Final = {**LEAD, "message": "Hello,\r\ntell me more.", "_gotcha": ""}
SCRIPT: Final = {"Accept": "application/json"}
FORMS: Final[tuple[dict[str, str], ...]] = (
    {},
    {**FORM, "name": " "},
    {**FORM, "email": "ann at example", "name": ""},
    {**FORM, "message": "x" * 2001},
    {**FORM, "name": "<b>\"'</b>{{ 7*7 }}", "email": "<"},
    {**FORM, "budget_tier": ""},
    {**FORM, "consent": "on", "email": ""},
    {"a": "b"},
)


@walk("leads-by-api")
def by_api(w: Walk) -> None:
    """Create leads, good and faulty ones, and see what is stored."""
    for lead in GOOD:
        w.post(LEADS, lead)
        w.get(STORED, key="all")
    for lead in FAULTS:
        w.post(LEADS, lead)
    for credential in ("all", "leads", "posts", "revoked", "reading"):
        w.post(LEADS, {**LEAD, "message": f"By {credential}."}, key=credential)
        w.post(
            LEADS, {**LEAD, "message": "CHEAP VIAGRA http://a.b", "_gotcha": "x"}, key=credential
        )
        w.get(f"{ADMIN}?order=created_at.desc&limit=2", key="all")
    for query in (
        "",
        "?limit=1",
        "?limit=200",
        "?limit=0",
        "?limit=201",
        "?limit=x",
        "?limit=",
        "?x=1",
        "?limit=2&limit=3",
        "?limit=1.5",
        "?limit=-1",
    ):
        w.get(f"{LEADS}{query}", key="leads")
    w.ask("HEAD", LEADS, key="leads")
    w.get(LEADS, key="leads", headers={"Accept-Encoding": "gzip"})
    w.audit()
    w.command("privacy", "export", "ann@example.org")
    w.command("privacy", "erase", "--yes", "ann@example.org")
    w.get(LEADS, key="leads")


@walk("leads-again")
def again(w: Walk) -> None:
    """Send leads again with the same key, and with another body."""
    for key, credential in (("one", ""), ("one", "leads"), ("two", ""), ("x" * 255, "")):
        headers = {"Idempotency-Key": key}
        for lead in (LEAD, LEAD, {**LEAD, "message": "Other."}, {**LEAD, "email": "b@example.org"}):
            w.post(LEADS, lead, key=credential, headers=headers)
    for key in ("", "x" * 256, "a b", "\xe9", "a,b"):
        w.post(LEADS, LEAD, headers={"Idempotency-Key": key})
    w.post(LEADS, {}, headers={"Idempotency-Key": "faulty"})
    w.post(LEADS, LEAD, headers={"Idempotency-Key": "faulty"})
    w.get(
        f"{ADMIN}?select=email,message&order=created_at",
        key="all",
        headers={"Prefer": "count=exact"},
    )


@walk("leads-by-form")
def by_form(w: Walk) -> None:
    """Fill in the form of the contact page, as a person and as its script."""
    for _ in range(2):
        w.post("/contact/", form=FORM)
    w.post("/contact/", form=FORM, headers=SCRIPT)
    w.get(STORED, key="all")
    w.post("/contact/", form={**FORM, "consent": "on", "consent_text": "You may write."})
    for more in ({}, {"rest": "second"}):
        w.post("/contact/", form={**FORM, "message": "A long brief. " * 200, **more})
    w.post("/contact/", form={**FORM, "message": "x" * 4001, "rest": "second"})
    w.get(STORED, key="all")
    w.post("/contact/", form={**FORM, "_gotcha": "x"})
    w.get(STORED, key="all")
    for fields in FORMS:
        w.post("/contact/", form=fields)
        w.post("/contact/", form=fields, headers=SCRIPT)
    for _ in range(2):
        w.post("/contact/", form=FORM, headers={**SCRIPT, "Idempotency-Key": "k-1"})
    w.post("/contact/", form={**FORM, "name": "B"}, headers={**SCRIPT, "Idempotency-Key": "k-1"})
    w.post("/contact/", form={**FORM, "name": "B"}, headers={"Idempotency-Key": "k-1"})
    for path in ("/contact/", "/contact/access/"):
        for headers in (
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Sec-Fetch-Site": "same-origin"},
            {"Sec-Fetch-Site": "none"},
            {"Origin": "https://other.example"},
            {"Origin": "null"},
            {"Origin": "http://journal.test"},
            {"Sec-Fetch-Site": "cross-site", "Accept": "application/json"},
            {"Accept": "text/html, application/json;q=0.9"},
            {"Accept": "application/json, text/html;q=0.5"},
            {"Accept": "text/markdown"},
        ):
            w.post(path, form={"name": "x"}, headers=headers)
        w.post(path, form=[("x", "y")] * 60)
        w.post(path, {"name": "x"})
        w.post(
            path, body=b"name=%ff", headers={"Content-Type": "application/x-www-form-urlencoded"}
        )
    w.get(f"{ADMIN}?select=name,source,status&order=created_at", key="all")


@walk("leads-mail", kind="mail")
def with_mail(w: Walk) -> None:
    """Create leads where mail is set up, and see what waits to be sent."""
    w.get("/api/public/v1/readiness")
    w.post(LEADS, LEAD)
    w.post(LEADS, {**LEAD, "message": "CHEAP VIAGRA http://a.b", "_gotcha": "x"})
    w.post("/contact/", form=FORM)
    w.get("/api/public/v1/admin/email_send_log?order=template_name,created_at", key="all")
    w.get("/api/public/v1/admin/email_unsubscribe_tokens?select=email", key="all")
    w.get("/api/public/v1/admin/email_send_state", key="all")
