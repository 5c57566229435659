"""NNI's words: everything that lets what was written for NNI work unchanged.

alias                        what `import nni` finds in trial scripts and plug-ins
script                       `python -m pitchpipe.nni SCRIPT`
config_forms, config_v1      configs of any version of NNI, in today's words
config, experiment           `nni.experiment` for scripts that start experiments
nnictl_words                 nnictl's command lines, translated to `pitchpipe`
nnictl_script, nnictl_algo   the command `nnictl`
results, importing           the experiments that NNI ran
rest, rest_forms             NNI's REST API
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...cli import ended_by_interrupts, main
from ...protocol import lazy_names

if TYPE_CHECKING:
    from .script import run_script
else:
    __getattr__ = lazy_names(__name__, __file__)


def nnictl() -> None:
    """Run a command line of NNI's `nnictl` and exit: 0 done, 1 failed, 2 bad usage, 130 interrupted."""
    with ended_by_interrupts():
        from .nnictl_script import execute
    main(execute)
