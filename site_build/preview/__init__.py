"""The preview: the site as its editor has it in hand, served to that editor alone."""
