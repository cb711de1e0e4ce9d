"""One build: which files the site has, what each is made from, and the making of what changed."""
