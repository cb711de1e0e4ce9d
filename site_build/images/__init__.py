"""Pictures: measures, the forms they are published in, and cards; it knows no Markdown."""
