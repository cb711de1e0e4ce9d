-- Version 1.0.1: keys of requests are reviewed and end, links and rotated keys keep what an undo needs,
-- writers mark their groups, erased rows are remembered by their ids, and searches of leads fold accents.

ALTER TABLE access_requests ADD COLUMN credential_expires_at text COLLATE "C"
    CHECK (credential_expires_at LIKE '____-__-__T__:__:__.______Z');

UPDATE access_requests SET credential_expires_at =
    to_char(decided_at::timestamptz AT TIME ZONE 'UTC' + interval '90 days', 'YYYY-MM-DD"T"HH24:MI:SS')
    || substr(decided_at, 20)
WHERE status = 'approved';

UPDATE access_requests SET status = 'pending', decided_at = NULL, credential_expires_at = NULL
WHERE status = 'approved' AND trim(replace(replace(scopes, 'posts:read', ''), 'mcp', '')) <> '';

ALTER TABLE credentials ADD COLUMN needs_review bigint NOT NULL DEFAULT 1
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

ALTER TABLE desk_links ADD COLUMN asked_by text COLLATE "C" NOT NULL DEFAULT '';

ALTER TABLE credentials ADD COLUMN former_expires_at text COLLATE "C"
    CHECK (former_expires_at LIKE '____-__-__T__:__:__.______Z');

CREATE TABLE write_marks (
    writer uuid NOT NULL PRIMARY KEY,
    number bigint NOT NULL,
    marked_at timestamptz NOT NULL DEFAULT now()
);

CREATE TABLE erased_rows (
    id text COLLATE "C" NOT NULL PRIMARY KEY CHECK (id LIKE '________-____-____-____-____________'),
    expires_at text COLLATE "C" NOT NULL CHECK (expires_at LIKE '____-__-__T__:__:__.______Z')
);

CREATE INDEX erased_rows_expiry ON erased_rows (expires_at);

ALTER TABLE leads ADD COLUMN other_part text COLLATE "C" CHECK (other_part LIKE '________-____-____-____-____________');

DROP INDEX leads_search;

CREATE OR REPLACE FUNCTION search_trigrams(given text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$
    SELECT coalesce(array_agg(DISTINCT a || b || c), '{}') FROM (SELECT letter AS a, lead(letter) OVER w AS b, lead(letter, 2) OVER w AS c FROM unnest(string_to_array(CASE WHEN octet_length(given) = length(given) THEN lower(given) ELSE normalize(translate(replace(replace(replace(lower(translate(regexp_replace(normalize(given, NFD), '[\u0300-\u036f]+', '', 'g'), U&'\0141\00d8\0110\0126\00c6\0152\1e9e\0391\0392\0393\0394\0395\0396\0397\0398\0399\039a\039b\039c\039d\039e\039f\03a0\03a1\03a2\03a3\03a4\03a5\03a6\03a7\03a8\03a9\0400\0401\0402\0403\0404\0405\0406\0407\0408\0409\040a\040b\040c\040d\040e\040f\0410\0411\0412\0413\0414\0415\0416\0417\0418\0419\041a\041b\041c\041d\041e\041f\0420\0421\0422\0423\0424\0425\0426\0427\0428\0429\042a\042b\042c\042d\042e\042f', U&'\0142\00f8\0111\0127\00e6\0153\00df\03b1\03b2\03b3\03b4\03b5\03b6\03b7\03b8\03b9\03ba\03bb\03bc\03bd\03be\03bf\03c0\03c1\03a2\03c3\03c4\03c5\03c6\03c7\03c8\03c9\0450\0451\0452\0453\0454\0455\0456\0457\0458\0459\045a\045b\045c\045d\045e\045f\0430\0431\0432\0433\0434\0435\0436\0437\0438\0439\043a\043b\043c\043d\043e\043f\0440\0441\0442\0443\0444\0445\0446\0447\0448\0449\044a\044b\044c\044d\044e\044f') COLLATE "default"), U&'\00df', 'ss'), U&'\00e6', 'ae'), U&'\0153', 'oe'), U&'\0131\00f8\0142\0111\0127\03c2', U&'ioldh\03c3'), NFC) END, NULL)) WITH ORDINALITY AS t (letter, place) WINDOW w AS (ORDER BY place)) AS triples WHERE c IS NOT NULL
$$;

CREATE INDEX leads_search ON leads USING gin (search_trigrams(name || ' ' || email || ' ' || message));
