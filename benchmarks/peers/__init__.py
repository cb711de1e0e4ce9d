"""The figures, against peers measured in the same run."""
