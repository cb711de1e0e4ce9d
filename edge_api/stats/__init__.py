"""The stats: views of pages by people and programs, counted without watching anybody."""
