"""The seams at which `compat/` plugs into the rooms below it.

Where scripts, configs, command lines or results of another tuner have to be read, a room asks for the modules of a
seam. What is NNI's in the rooms themselves: the pipe, the API of plug-ins, and fields of a config without an effect.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs 2 ms at import
if TYPE_CHECKING:
    from typing import Any

# Seam -> the modules of `compat/` that plug into it; the comment says what each of them offers, and for what.
_SEAMS = {
    "import alias": ("nni.alias",),  # PATH, activate, variables: what scripts and plug-ins import and read
    "config": ("nni.config_forms",),  # draft_of: how a config is read
    "earlier results": ("nni.results",),  # find_results, read_results: what a warm start learns from
    "import": ("nni.importing",),  # import_experiment: another tuner's experiment, to look at
    "routes": ("nni.rest", "tune.routes"),  # router: HTTP
    "command line": ("nni.nnictl_words",),  # translated, in_the_users_words
}


def foreign(seam: str) -> list[Any]:
    """Return the modules that plug into a seam.

    >>> [module.__name__ for module in foreign("import alias")]
    ['pitchpipe.compat.nni.alias']
    """
    from importlib import import_module

    return [import_module(f"..compat.{module}", __package__) for module in _SEAMS[seam]]
