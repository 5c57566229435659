"""NNI's import names in the processes of an experiment, unless a real nni is installed.

Other rooms call `activate`, put `PATH` on PYTHONPATH and `variables` into the environment. What a name stands for is
imported on first use.

    finder           `import nni`, its modules, and which name of NNI is which of Pitchpipe
    utils            helpers that only NNI has
    tracing          `nni.trace`
    hpo_utils        search spaces as NNI's tuners see them
    drawing          random values (NNI's `parameter_expressions`) and points, as its helpers make them
    trial_functions  what trial scripts call, and their channel
    dispatching      the dispatcher, its channel of files, and tuners that are classes of another kind
    path             what trial scripts have on PYTHONPATH
"""

from __future__ import annotations

from .finder import PATH, activate, variables
