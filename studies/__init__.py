"""What routers gain on tables of outcomes that others published: each page of `docs/` that says so, by one command."""
