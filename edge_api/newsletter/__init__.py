"""The newsletter: subscribers, mailings, and the letter that each of them gets."""
