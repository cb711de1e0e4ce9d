-- Keys that requests for access got are marked for review; a request says when its credential ends.

ALTER TABLE access_requests ADD COLUMN credential_expires_at TEXT
    CHECK (credential_expires_at GLOB '????-??-??T??:??:??.??????Z');

UPDATE access_requests SET credential_expires_at =
    strftime('%Y-%m-%dT%H:%M:%S', decided_at, '+90 days') || substr(decided_at, 20)
WHERE status = 'approved';

ALTER TABLE credentials ADD COLUMN needs_review INTEGER NOT NULL DEFAULT 0
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
UPDATE credentials SET needs_review = 1
WHERE expires_at IS NULL AND id IN (SELECT id FROM given);

DELETE FROM former_rows WHERE table_name = 'access_requests';
-- Links say who asked for them; a rotated key keeps the end that it had.

ALTER TABLE desk_links ADD COLUMN asked_by TEXT NOT NULL DEFAULT '';

ALTER TABLE credentials ADD COLUMN former_expires_at TEXT
    CHECK (former_expires_at GLOB '????-??-??T??:??:??.??????Z');

UPDATE credentials SET former_expires_at = expires_at WHERE rotated_at IS NOT NULL;
-- Nothing: no connection to SQLite is lost during a commit, so its writers leave no marks.

SELECT 1;
-- The keys of rows that were erased with the person whom they were about, so that no restore brings
-- them back.

CREATE TABLE erased_rows (
    id TEXT NOT NULL PRIMARY KEY CHECK (id GLOB '????????-????-????-????-????????????'),
    expires_at TEXT NOT NULL CHECK (expires_at GLOB '????-??-??T??:??:??.??????Z')
) STRICT;
CREATE INDEX erased_rows_expiry ON erased_rows (expires_at);
