"""Channels: policies that no trainer writes, and that get validated versions only."""
