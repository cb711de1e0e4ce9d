"""Access requests: somebody asks for a credential, a person approves, a claim hands it out."""
