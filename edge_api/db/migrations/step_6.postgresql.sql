-- Leads can be searched: an index of the trigrams of name, address and message.

CREATE FUNCTION search_trigrams(given text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$
    SELECT coalesce(array_agg(DISTINCT a || b || c), '{}') FROM (SELECT letter AS a, lead(letter) OVER w AS b, lead(letter, 2) OVER w AS c FROM unnest(string_to_array(lower(given COLLATE "default"), NULL)) WITH ORDINALITY AS t (letter, place) WINDOW w AS (ORDER BY place)) AS triples WHERE c IS NOT NULL
$$;

CREATE INDEX leads_search ON leads USING gin (search_trigrams(name || ' ' || email || ' ' || message));
