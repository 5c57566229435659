"""NNI's import names in the processes of an experiment, unless a real nni is installed.

alias         the finder: `import nni` and its modules
names         which name of NNI is which of Pitchpipe
utils         helpers that only NNI has
expressions   NNI's `parameter_expressions`
path          what trial scripts have on PYTHONPATH
"""

from __future__ import annotations

from .alias import PATH, activate

__all__ = ["PATH", "activate"]
