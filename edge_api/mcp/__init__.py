"""The product as an MCP server; only `server`, `exchange` and `message` load the SDK."""
