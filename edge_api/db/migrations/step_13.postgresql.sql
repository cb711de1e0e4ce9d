-- Version 1.1.0: the function of the search index of leads finds trigrams in half the time.

CREATE OR REPLACE FUNCTION search_trigrams(given text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$
    SELECT coalesce(array_agg(a || b || c), '{}') FROM (SELECT string_to_array(CASE WHEN octet_length(given) = length(given) THEN lower(given) ELSE normalize(translate(replace(replace(replace(lower(translate(regexp_replace(normalize(given, NFD), '[\u0300-\u036f]+', '', 'g'), 'ŁØĐĦÆŒẞΑΒΓΔΕΖΗΘΙΚΛΜΝΞΟΠΡ΢ΣΤΥΦΧΨΩЀЁЂЃЄЅІЇЈЉЊЋЌЍЎЏАБВГДЕЖЗИЙКЛМНОПРСТУФХЦЧШЩЪЫЬЭЮЯ', 'łøđħæœßαβγδεζηθικλμνξοπρ΢στυφχψωѐёђѓєѕіїјљњћќѝўџабвгдежзийклмнопрстуфхцчшщъыьэюя') COLLATE "default"), U&'\00df', 'ss'), U&'\00e6', 'ae'), U&'\0153', 'oe'), U&'\0131\00f8\0142\0111\0127\03c2', U&'ioldh\03c3'), NFC) END, NULL) AS letters OFFSET 0) AS folded, ROWS FROM (unnest(letters), unnest(letters[2:]), unnest(letters[3:])) AS t (a, b, c) WHERE c IS NOT NULL
$$;
