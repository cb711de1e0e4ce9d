"""The desk: pages for the owner of the journal, under `/desk/`."""
