-- Version 1.1.0: answers to leads, what comes back, how far a mailbox was read, and reminders.

ALTER TABLE leads ADD COLUMN remind_at TEXT CHECK (remind_at GLOB '????-??-??T??:??:??.??????Z');

CREATE INDEX leads_remind ON leads (remind_at);

CREATE TABLE lead_messages (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    lead_id TEXT NOT NULL CHECK (lead_id GLOB '????????-????-????-????-????????????'),
    kind TEXT NOT NULL CHECK (kind IN ('draft', 'sent', 'received')),
    email TEXT NOT NULL CHECK (length(email) BETWEEN 3 AND 255),
    subject TEXT NOT NULL DEFAULT '' CHECK (length(subject) <= 200),
    body TEXT NOT NULL DEFAULT '' CHECK (length(body) <= 100000),
    message_digest TEXT CHECK (length(message_digest) = 64),
    message_id TEXT CHECK (length(message_id) <= 250),
    is_verified INTEGER NOT NULL DEFAULT 0 CHECK (is_verified BETWEEN 0 AND 1),
    is_automatic INTEGER NOT NULL DEFAULT 0 CHECK (is_automatic BETWEEN 0 AND 1),
    attachments TEXT CHECK (attachments IS NULL OR json_valid(attachments)),
    audit_id TEXT CHECK (audit_id GLOB '????????-????-????-????-????????????'),
    created_at TEXT NOT NULL CHECK (created_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE INDEX lead_messages_lead ON lead_messages (lead_id, created_at);

CREATE INDEX lead_messages_kind ON lead_messages (kind, created_at DESC, id DESC);

CREATE UNIQUE INDEX lead_messages_digest ON lead_messages (message_digest);

CREATE TABLE mailbox_state (
    id INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    mailbox_digest TEXT NOT NULL DEFAULT '',
    uid_validity INTEGER NOT NULL DEFAULT 0 CHECK (uid_validity BETWEEN -1000000000000000000 AND 1000000000000000000),
    last_uid INTEGER NOT NULL DEFAULT 0 CHECK (last_uid BETWEEN -1000000000000000000 AND 1000000000000000000),
    turn_until TEXT CHECK (turn_until GLOB '????-??-??T??:??:??.??????Z'),
    checked_at TEXT CHECK (checked_at GLOB '????-??-??T??:??:??.??????Z'),
    fault TEXT
) STRICT;
