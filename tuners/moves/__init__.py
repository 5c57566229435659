"""Ways to find the next point on a model."""
