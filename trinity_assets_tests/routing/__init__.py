"""Tests of routing/."""
