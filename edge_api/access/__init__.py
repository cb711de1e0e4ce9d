"""Access requests: somebody requests a credential, the operator approves, a claim issues it."""
