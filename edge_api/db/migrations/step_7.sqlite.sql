-- Webhooks of posts: the events that an endpoint chose, and the posts that were announced last.

ALTER TABLE webhook_endpoints ADD COLUMN events TEXT NOT NULL DEFAULT 'lead.created';

CREATE TABLE announced_posts (
    id INTEGER NOT NULL PRIMARY KEY DEFAULT 1 CHECK (id = 1),
    index_digest TEXT NOT NULL CHECK (length(index_digest) = 64),
    built_for TEXT NOT NULL CHECK (built_for GLOB '????-??-??T??:??:??.??????Z'),
    posts TEXT NOT NULL
) STRICT;
