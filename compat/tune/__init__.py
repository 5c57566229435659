"""Ray Tune's words: its TuneServer and the client, the routes that they use, and the names of its statuses.

server     TuneServer and TuneClient
routes     what the server serves, and Tune's names for the statuses of a trial
variants   the trials of a spec, as by Tune's variant generator
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...protocol import lazy_names

if TYPE_CHECKING:
    from .server import TuneClient, TuneServer, TuneServerError
else:
    __getattr__ = lazy_names(__name__, __file__)
