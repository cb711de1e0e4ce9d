-- Searches of leads fold accents; the two leads of a long message know of each other.

ALTER TABLE leads ADD COLUMN other_part text COLLATE "C" CHECK (other_part LIKE '________-____-____-____-____________');

DROP INDEX leads_search;

CREATE OR REPLACE FUNCTION search_trigrams(given text) RETURNS text[] LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE COST 10000 AS $$
    SELECT coalesce(array_agg(DISTINCT a || b || c), '{}') FROM (SELECT letter AS a, lead(letter) OVER w AS b, lead(letter, 2) OVER w AS c FROM unnest(string_to_array(CASE WHEN octet_length(given) = length(given) THEN lower(given) ELSE normalize(translate(replace(replace(replace(lower(translate(regexp_replace(normalize(given, NFD), '[\u0300-\u036f]+', '', 'g'), U&'\0141\00d8\0110\0126\00c6\0152\1e9e\0391\0392\0393\0394\0395\0396\0397\0398\0399\039a\039b\039c\039d\039e\039f\03a0\03a1\03a2\03a3\03a4\03a5\03a6\03a7\03a8\03a9\0400\0401\0402\0403\0404\0405\0406\0407\0408\0409\040a\040b\040c\040d\040e\040f\0410\0411\0412\0413\0414\0415\0416\0417\0418\0419\041a\041b\041c\041d\041e\041f\0420\0421\0422\0423\0424\0425\0426\0427\0428\0429\042a\042b\042c\042d\042e\042f', U&'\0142\00f8\0111\0127\00e6\0153\00df\03b1\03b2\03b3\03b4\03b5\03b6\03b7\03b8\03b9\03ba\03bb\03bc\03bd\03be\03bf\03c0\03c1\03a2\03c3\03c4\03c5\03c6\03c7\03c8\03c9\0450\0451\0452\0453\0454\0455\0456\0457\0458\0459\045a\045b\045c\045d\045e\045f\0430\0431\0432\0433\0434\0435\0436\0437\0438\0439\043a\043b\043c\043d\043e\043f\0440\0441\0442\0443\0444\0445\0446\0447\0448\0449\044a\044b\044c\044d\044e\044f') COLLATE "default"), U&'\00df', 'ss'), U&'\00e6', 'ae'), U&'\0153', 'oe'), U&'\0131\00f8\0142\0111\0127\03c2', U&'ioldh\03c3'), NFC) END, NULL)) WITH ORDINALITY AS t (letter, place) WINDOW w AS (ORDER BY place)) AS triples WHERE c IS NOT NULL
$$;

CREATE INDEX leads_search ON leads USING gin (search_trigrams(name || ' ' || email || ' ' || message));
