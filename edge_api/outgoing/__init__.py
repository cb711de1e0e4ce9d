"""How the service reaches others: documents it fetches, mail it sends, events it tells."""
