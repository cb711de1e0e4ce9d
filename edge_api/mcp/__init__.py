"""The product as an MCP server; only `server`, `exchange` and `resources` load the SDK."""
