"""From the content folder to checked documents; it knows neither Pelican nor pages."""
