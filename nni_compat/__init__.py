"""NNI's import names in the processes of an experiment, unless a real nni is installed.

Other rooms only call `activate`, or put `PATH` on PYTHONPATH. What a name stands for is imported on first use.

    alias         the finder: `import nni` and its modules
    names         which name of NNI is which of Pitchpipe
    utils         helpers that only NNI has
    hpo_utils     search spaces as NNI's tuners see them
    expressions   NNI's `parameter_expressions`
    path          what trial scripts have on PYTHONPATH
"""

from __future__ import annotations

from .alias import PATH, activate

__all__ = ["PATH", "activate"]
