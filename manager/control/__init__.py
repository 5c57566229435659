"""Changing a running experiment from another process."""
