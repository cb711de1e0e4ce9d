"""The product as an MCP server; only `server` and `exchange` load the SDK."""
