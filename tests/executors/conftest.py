"""The private Ray that the tests of the manager share."""

from .cluster_support import cluster, real_cluster
from .ray_support import ray_directory, shared_ray

__all__ = ["cluster", "ray_directory", "real_cluster", "shared_ray"]
