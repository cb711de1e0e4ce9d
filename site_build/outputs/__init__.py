"""Everything of the site that no template makes: pure functions from the site to text."""
