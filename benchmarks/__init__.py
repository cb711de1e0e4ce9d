"""The figures, against peers measured in the same run: `python -m benchmarks.edge`, `.build`."""
