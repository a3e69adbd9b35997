"""Content-addressed artifacts.

Belongs here: writing and reading bytes by their sha256 on any fsspec URL, and the one Parquet dialect in which every
table of the graph is kept. Does not belong here: what a table means (each room has its own columns), Dagster, and the
ledger (``workers/``).
"""
