-- Version 1.1.0: subscribers of the newsletter, its mailings, and their queue of mail.

CREATE TABLE email_outbox_new (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    queue TEXT NOT NULL CHECK (queue IN ('auth', 'transactional', 'newsletter')),
    template_name TEXT NOT NULL CHECK (length(template_name) BETWEEN 1 AND 200),
    recipient_email TEXT NOT NULL CHECK (length(recipient_email) BETWEEN 3 AND 255),
    subject_id TEXT NOT NULL CHECK (subject_id GLOB '????????-????-????-????-????????????'),
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z'),
    queued_at TEXT NOT NULL CHECK (queued_at GLOB '????-??-??T??:??:??.??????Z'),
    due_at TEXT NOT NULL CHECK (due_at GLOB '????-??-??T??:??:??.??????Z'),
    lease TEXT,
    claims INTEGER NOT NULL DEFAULT 0 CHECK (claims BETWEEN -1000000000000000000 AND 1000000000000000000),
    attempts INTEGER NOT NULL DEFAULT 0 CHECK (attempts BETWEEN -1000000000000000000 AND 1000000000000000000),
    dead_at TEXT CHECK (dead_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

INSERT INTO email_outbox_new (id, queue, template_name, recipient_email, subject_id, created_at, queued_at, due_at, lease, claims, attempts, dead_at)
SELECT id, queue, template_name, recipient_email, subject_id, created_at, queued_at, due_at, lease, claims, attempts, dead_at FROM email_outbox;

DROP TABLE email_outbox;

ALTER TABLE email_outbox_new RENAME TO email_outbox;

CREATE INDEX email_outbox_due ON email_outbox (dead_at, due_at);

CREATE INDEX email_outbox_subject ON email_outbox (subject_id);

CREATE TABLE subscribers (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    email TEXT NOT NULL CHECK (length(email) BETWEEN 3 AND 255 AND email = lower(email)),
    status TEXT NOT NULL DEFAULT 'pending' CHECK (status IN ('pending', 'active', 'ended', 'bounced')),
    token TEXT NOT NULL CHECK (length(token) = 64),
    language TEXT NOT NULL DEFAULT '' CHECK (length(language) <= 35),
    source TEXT NOT NULL DEFAULT '' CHECK (length(source) <= 200),
    consent TEXT NOT NULL DEFAULT '' CHECK (length(consent) <= 1000),
    asked_at TEXT CHECK (asked_at GLOB '????-??-??T??:??:??.??????Z'),
    confirmed_at TEXT CHECK (confirmed_at GLOB '????-??-??T??:??:??.??????Z'),
    ended_at TEXT CHECK (ended_at GLOB '????-??-??T??:??:??.??????Z'),
    ended_by TEXT CHECK (length(ended_by) <= 200),
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE UNIQUE INDEX subscribers_email ON subscribers (email);

CREATE UNIQUE INDEX subscribers_token ON subscribers (token);

CREATE INDEX subscribers_status ON subscribers (status, id);

CREATE INDEX subscribers_asked ON subscribers (asked_at DESC);

CREATE TABLE mailings (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    slug TEXT NOT NULL CHECK (length(slug) BETWEEN 1 AND 200),
    subject TEXT NOT NULL CHECK (length(subject) <= 300),
    url TEXT NOT NULL CHECK (length(url) <= 2048),
    text_digest TEXT NOT NULL CHECK (length(text_digest) = 64),
    host TEXT NOT NULL CHECK (length(host) <= 255),
    waits_for TEXT NOT NULL DEFAULT '' CHECK (length(waits_for) <= 200),
    due_at TEXT CHECK (due_at GLOB '????-??-??T??:??:??.??????Z'),
    cursor TEXT NOT NULL DEFAULT '',
    recipients INTEGER NOT NULL DEFAULT 0 CHECK (recipients BETWEEN -1000000000000000000 AND 1000000000000000000),
    queued_at TEXT CHECK (queued_at GLOB '????-??-??T??:??:??.??????Z'),
    held_at TEXT CHECK (held_at GLOB '????-??-??T??:??:??.??????Z'),
    held_for TEXT CHECK (length(held_for) <= 200),
    resumed_at TEXT CHECK (resumed_at GLOB '????-??-??T??:??:??.??????Z'),
    ended_at TEXT CHECK (ended_at GLOB '????-??-??T??:??:??.??????Z'),
    ended_for TEXT CHECK (length(ended_for) <= 200),
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE UNIQUE INDEX mailings_slug ON mailings (slug);

CREATE INDEX mailings_recent ON mailings (created_at DESC, id DESC);

ALTER TABLE announced_posts ADD COLUMN texts TEXT NOT NULL DEFAULT '';
