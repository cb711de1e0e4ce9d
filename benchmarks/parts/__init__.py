"""What is measured: each module is one part of the report, `measure(ground)` gives its section."""
