"""Trials on a Ray cluster."""
