"""How it is spoken: the only package that knows aiohttp and HTTP messages."""
