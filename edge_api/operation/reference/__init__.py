"""The reference of the API for people: values made from the declarations, and their Markdown."""
