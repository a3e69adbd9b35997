"""Tests of checkpoints/."""
