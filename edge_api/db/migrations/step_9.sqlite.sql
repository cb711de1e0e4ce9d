-- Nothing: no connection to SQLite is lost during a commit, so its writers leave no marks.

SELECT 1;
