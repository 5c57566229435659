"""Surrogate models: what predicts a result before it is measured."""
