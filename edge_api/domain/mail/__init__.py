"""Mail: what is said to whom, when, and what became of it. No SMTP is spoken here."""
