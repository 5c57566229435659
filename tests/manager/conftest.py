"""The private Ray that the tests of the manager share."""

from .ray_support import ray_directory, shared_ray

__all__ = ["ray_directory", "shared_ray"]
