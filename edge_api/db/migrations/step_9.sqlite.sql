-- Searches of leads fold accents; the two leads of a long message know of each other.

ALTER TABLE leads ADD COLUMN other_part TEXT CHECK (other_part GLOB '????????-????-????-????-????????????');

DROP TRIGGER leads_search_insert;

DROP TRIGGER leads_search_update;

DROP TRIGGER leads_search_delete;

CREATE TRIGGER leads_search_insert AFTER INSERT ON leads BEGIN INSERT INTO leads_search_keys (row_id) VALUES (new.id); INSERT INTO leads_search (rowid, name, email, message) SELECT number, fold_accents(new.name), fold_accents(new.email), fold_accents(new.message) FROM leads_search_keys WHERE row_id = new.id; END;

CREATE TRIGGER leads_search_update AFTER UPDATE OF name, email, message ON leads BEGIN INSERT INTO leads_search (leads_search, rowid, name, email, message) SELECT 'delete', number, fold_accents(old.name), fold_accents(old.email), fold_accents(old.message) FROM leads_search_keys WHERE row_id = old.id; INSERT INTO leads_search (rowid, name, email, message) SELECT number, fold_accents(new.name), fold_accents(new.email), fold_accents(new.message) FROM leads_search_keys WHERE row_id = new.id; END;

CREATE TRIGGER leads_search_delete AFTER DELETE ON leads BEGIN INSERT INTO leads_search (leads_search, rowid, name, email, message) SELECT 'delete', number, fold_accents(old.name), fold_accents(old.email), fold_accents(old.message) FROM leads_search_keys WHERE row_id = old.id; DELETE FROM leads_search_keys WHERE row_id = old.id; END;

INSERT INTO leads_search (leads_search) VALUES ('delete-all');

INSERT INTO leads_search (rowid, name, email, message) SELECT number, fold_accents(name), fold_accents(email), fold_accents(message) FROM leads_search_keys JOIN leads ON id = row_id ORDER BY number;
