"""Ray clusters that Pitchpipe starts on several machines: over ssh, or in an allocation of Slurm."""

from __future__ import annotations

from .slurm_job import SlurmError, SlurmJob, batch_script, submit
from .ssh_cluster import Cluster, ClusterError, cluster_down, cluster_status, cluster_up, token_path_of
