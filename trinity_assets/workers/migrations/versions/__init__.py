"""One module per version of the schema, oldest first; a module that has been released never changes."""
