"""The product as an MCP server. `operations` is the light part; the rest loads the SDK."""
