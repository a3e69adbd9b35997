"""Tests of ``trinity_assets.backbones``."""
