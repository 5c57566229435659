"""The process of a local agent.

    python -m pitchpipe.trial_agent --agent ID --listen-fd N --folder DIR [--token-fd M]

The manager makes the listening socket and passes it on, so it can connect before the agent is up. The token
comes through a descriptor or the environment. SIGTERM and SIGINT kill what runs and end the agent; so does a
manager that does not come back.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from pathlib import Path
from types import FrameType

from ..sdk import TrialStopped
from . import environ
from .core import LAST_RESORT, Agent
from .forks import shield_forks
from .unix_server import UnixServer

_INSIST_EVERY = 0.5  # seconds
USAGE = "usage: python -m pitchpipe.trial_agent --agent ID --listen-fd N --folder DIR [--token-fd M]"


def main(arguments: list[str]) -> int:
    """Run an agent until it is asked to leave, or has waited too long for a manager; return the exit code."""
    options = dict(zip(arguments[::2], arguments[1::2], strict=False))
    if len(arguments) % 2 or not {"--agent", "--listen-fd", "--folder"} <= options.keys():
        print(USAGE, file=sys.stderr)
        return 2
    token = _token(options.get("--token-fd"))
    agent = Agent(options["--agent"], Path(options["--folder"], "agents"), is_alone=True)
    server = UnixServer(agent, socket.socket(fileno=int(options["--listen-fd"])), token)
    _handle_signals(agent, server)
    thread = threading.Thread(target=_serve, args=(server, agent), daemon=True)
    thread.start()
    agent.run()
    server.close()
    thread.join(timeout=1.0)
    agent.close()
    return 0


def _serve(server: UnixServer, agent: Agent) -> None:
    """Serve; if no manager comes back, end by force an agent whose function cannot be interrupted."""
    server.serve()
    _leave_by_force(after=agent.grace + LAST_RESORT)


def _token(descriptor: str | None) -> str:
    from_environment = os.environ.pop(environ.TOKEN, "")
    if descriptor is None:
        return from_environment
    with open(int(descriptor), encoding="ascii") as file:
        return file.read().strip()


def _handle_signals(agent: Agent, server: UnixServer) -> None:
    """Let SIGTERM, SIGINT and a `shutdown` message end the agent, whatever its trial does."""
    leaving = threading.Event()

    def leave(number: int, frame: FrameType | None) -> None:
        del number, frame
        if leaving.is_set():
            return  # a second exception would break into the cleaning up after the first
        leaving.set()
        _leave_by_force(after=agent.grace + LAST_RESORT)
        agent.shutdown()
        if agent.in_user_code:
            raise TrialStopped

    def insist() -> None:
        # A signal that comes just before the function blocks does not wake it: Python has not run `leave` then.
        while not leaving.is_set():
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGTERM)
            leaving.wait(_INSIST_EVERY)

    def interrupt() -> None:
        if not leaving.is_set():
            _leave_by_force(after=agent.grace + LAST_RESORT)
            threading.Thread(target=insist, daemon=True).start()

    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, leave)
    agent.interrupt = interrupt
    shield_forks((signal.SIGTERM, signal.SIGINT), lambda handler: handler is leave, server.abandon)
    signal.set_wakeup_fd(server.wakeup_descriptor, warn_on_full_buffer=False)


def _leave_by_force(after: float) -> None:
    timer = threading.Timer(after, os._exit, [1])
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
