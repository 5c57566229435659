"""Where the rooms of `compat/`, which hold the interfaces of other tuners, plug into the rooms below them.

Those rooms do not know how scripts, configs, command lines and results of another tuner are read. They ask for the
modules of a seam, which are imported on first use. The pipe, its statuses and the plug-in API are NNI's throughout.
"""

from __future__ import annotations

TYPE_CHECKING = False  # `typing` costs 2 ms at import, and trial scripts import this
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
