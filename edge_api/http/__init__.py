"""HTTP: the only package, with mcp and net, that knows aiohttp and messages."""
