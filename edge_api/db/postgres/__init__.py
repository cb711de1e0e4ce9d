"""The engine for more than one machine: a store in a PostgreSQL database, many edges on it."""
