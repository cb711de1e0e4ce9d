"""What Pelican's templates look at, and what they saw."""
