"""The figures, against peers measured in the same run: `make bench`, `python -m benchmarks`."""
