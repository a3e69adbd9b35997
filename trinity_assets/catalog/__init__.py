"""From a directory of YAML to frozen specs.

Belongs here: reading the five files, composing the specs that each package defines, and reporting every fault at once
with where it is and what is allowed. Does not belong here: what any field means (the package that owns the spec says).
"""
