"""What the service means: decisions over values and plans. No HTTP, no SQL, no clock of its own."""
