-- Leads can be searched: an index of the trigrams of name, address and message.

CREATE TABLE leads_search_keys (number INTEGER PRIMARY KEY, row_id TEXT NOT NULL UNIQUE) STRICT;

CREATE VIRTUAL TABLE leads_search USING fts5(name, email, message, content='', tokenize='trigram', detail=none, columnsize=0);

CREATE TRIGGER leads_search_insert AFTER INSERT ON leads BEGIN INSERT INTO leads_search_keys (row_id) VALUES (new.id); INSERT INTO leads_search (rowid, name, email, message) SELECT number, new.name, new.email, new.message FROM leads_search_keys WHERE row_id = new.id; END;

CREATE TRIGGER leads_search_update AFTER UPDATE OF name, email, message ON leads BEGIN INSERT INTO leads_search (leads_search, rowid, name, email, message) SELECT 'delete', number, old.name, old.email, old.message FROM leads_search_keys WHERE row_id = old.id; INSERT INTO leads_search (rowid, name, email, message) SELECT number, new.name, new.email, new.message FROM leads_search_keys WHERE row_id = new.id; END;

CREATE TRIGGER leads_search_delete AFTER DELETE ON leads BEGIN INSERT INTO leads_search (leads_search, rowid, name, email, message) SELECT 'delete', number, old.name, old.email, old.message FROM leads_search_keys WHERE row_id = old.id; DELETE FROM leads_search_keys WHERE row_id = old.id; END;

INSERT INTO leads_search_keys (row_id) SELECT id FROM leads ORDER BY created_at, id;

INSERT INTO leads_search (rowid, name, email, message) SELECT number, name, email, message FROM leads_search_keys JOIN leads ON id = row_id ORDER BY number;
