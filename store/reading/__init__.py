"""The read model: one experiment as its folder tells it, for every reader."""
