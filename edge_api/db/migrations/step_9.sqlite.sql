-- Version 1.0.1: keys of requests are reviewed and end, links and rotated keys keep what an undo needs,
-- erased rows are remembered by their ids, and searches of leads fold accents.

ALTER TABLE access_requests ADD COLUMN credential_expires_at TEXT
    CHECK (credential_expires_at GLOB '????-??-??T??:??:??.??????Z');

UPDATE access_requests SET credential_expires_at =
    strftime('%Y-%m-%dT%H:%M:%S', decided_at, '+90 days') || substr(decided_at, 20)
WHERE status = 'approved';

UPDATE access_requests SET status = 'pending', decided_at = NULL, credential_expires_at = NULL
WHERE status = 'approved' AND trim(replace(replace(scopes, 'posts:read', ''), 'mcp', '')) <> '';

ALTER TABLE credentials ADD COLUMN needs_review INTEGER NOT NULL DEFAULT 1
    CHECK (needs_review BETWEEN 0 AND 1);

WITH RECURSIVE given (id) AS (
    SELECT id FROM credentials
    WHERE 'credential:' || id IN (
        SELECT actor FROM audit_log WHERE verb = 'claim' AND table_name = 'access_requests'
    )
    OR id IN (SELECT credential_id FROM access_requests WHERE credential_id IS NOT NULL)
    UNION
    SELECT successor.id FROM given
    JOIN credentials former ON former.id = given.id
    JOIN credentials successor ON successor.created_at = former.rotated_at
        AND successor.name = former.name
)
UPDATE credentials SET needs_review = 0
WHERE expires_at IS NOT NULL OR id NOT IN (SELECT id FROM given);

DELETE FROM former_rows WHERE table_name = 'access_requests';

ALTER TABLE desk_links ADD COLUMN asked_by TEXT NOT NULL DEFAULT '';

ALTER TABLE credentials ADD COLUMN former_expires_at TEXT
    CHECK (former_expires_at GLOB '????-??-??T??:??:??.??????Z');

CREATE TABLE erased_rows (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    expires_at TEXT NOT NULL CHECK (expires_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;

CREATE INDEX erased_rows_expiry ON erased_rows (expires_at);

ALTER TABLE leads ADD COLUMN other_part TEXT CHECK (other_part GLOB '????????-????-????-????-????????????');

DROP TRIGGER leads_search_insert;

DROP TRIGGER leads_search_update;

DROP TRIGGER leads_search_delete;

ALTER TABLE leads_search_keys ADD COLUMN renewed INTEGER NOT NULL DEFAULT 0;

CREATE TRIGGER leads_search_update AFTER UPDATE OF name, email, message ON leads BEGIN UPDATE leads_search_keys SET renewed = renewed - 1 WHERE row_id = new.id; END;

CREATE TRIGGER leads_search_delete AFTER DELETE ON leads BEGIN UPDATE leads_search_keys SET renewed = renewed - 1 WHERE row_id = old.id; END;

CREATE TRIGGER leads_search_empty AFTER UPDATE ON leads_search_keys WHEN new.renewed < 0 BEGIN INSERT INTO leads_search (leads_search) VALUES ('delete-all'); DELETE FROM leads_search_keys; END;

INSERT INTO leads_search (leads_search) VALUES ('delete-all');

DELETE FROM leads_search_keys;
