"""The dispatcher process: descriptors 3 (commands in) and 4 (commands out), its log, its exit code.

    python -m pitchpipe.dispatcher --exp_params BASE64            serve an experiment
    python -m pitchpipe.dispatcher --check --exp_params BASE64    print what is wrong with its plug-ins
    python -m pitchpipe.dispatcher --check --exp_params -         the same, of what comes by the standard input
    python -m pitchpipe.dispatcher --standby                      import, then serve what comes by the standard input

Pitchpipe's manager gives the configuration in the environment instead, where other users of the machine cannot read it.
Exit codes: 0 terminated by the manager, or the manager is gone; 1 a plug-in or the dispatcher failed; 2 bad usage;
3 the checkpoint given by --restore cannot be used.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import signal
import sys
from collections.abc import Sequence
from dataclasses import asdict
from importlib import import_module
from pathlib import Path
from typing import NoReturn

from ..protocol import PARAMETERS_ENVIRONMENT, CheckpointMessage, CommandType, Config, ErrorMessage, dumps
from .channel import FdChannel
from .checkpointing import CheckpointUnusable, Saver, read_checkpoint
from .dispatcher_settings import DispatcherSettings, decode_exp_params, dispatcher_from
from .errors import ChannelClosed, PluginFailed, PluginNotLoaded, error_report
from .msg_dispatcher import MsgDispatcher
from .msg_dispatcher_base import Ending, MsgDispatcherBase
from .plugin import Plugin

_IN_FD, _OUT_FD = 3, 4
_UNUSABLE = 3
_LEVELS = {
    "fatal": logging.CRITICAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
    "trace": 1,
}
_FORMAT = "[%(asctime)s] %(levelname)s (%(name)s/%(threadName)s) %(message)s"

_log = logging.getLogger(__package__)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the process and return its exit code."""
    if (sys.argv[1:] if argv is None else list(argv)) == ["--standby"]:
        return main([]) if _is_called() else 0
    parser = argparse.ArgumentParser(prog="python -m pitchpipe.dispatcher", description=__doc__)
    given = os.environ.pop(PARAMETERS_ENVIRONMENT, None)  # processes started by plug-ins must not inherit it
    parser.add_argument(
        "--exp_params",
        default=given,
        required=given is None,
        help=f"the configuration, JSON in base64; -: from the standard input (default: ${PARAMETERS_ENVIRONMENT})",
    )
    parser.add_argument(
        "--check", action="store_true", help="check the plug-ins, print problems as JSON, and end"
    )
    parser.add_argument("--restore", type=Path, help="the checkpoint to start from")
    arguments, _ = parser.parse_known_args(argv)
    try:
        config = decode_exp_params(_awaited() if arguments.exp_params == "-" else arguments.exp_params)
        if arguments.check:
            _check(config)
        return _serve(DispatcherSettings.read(config, os.environ), arguments.restore)
    except ValueError as error:
        print(error, file=sys.stderr)
        return 2


def _is_called() -> bool:
    """Import what most plug-ins need, and wait for a manager's word; return False if the manager is gone."""
    import_module("numpy")
    text = sys.stdin.read()
    if not text:
        return False
    word = json.loads(text)
    os.environ.clear()
    os.environ.update(word["environment"])
    output = os.open(word["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    for descriptor, stream in ((os.open(os.devnull, os.O_RDONLY), 0), (output, 1), (output, 2)):
        os.dup2(descriptor, stream)
    return True


def _awaited() -> str:
    """Return what comes by the standard input; until then, import what most plug-ins need."""
    for name in ("numpy", f"{__package__}.check"):
        import_module(name)
    text = sys.stdin.read()
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    return text


def _check(config: Config) -> NoReturn:
    from .check import check, directions, warnings

    output = os.dup(1)  # what plug-ins print must not get into it
    _configure_logging(None, "error")
    problems = list(map(asdict, check(config)))
    with os.fdopen(output, "w") as stream:
        reply = {"problems": problems, "directions": directions(config), "warnings": warnings(config)}
        stream.write(json.dumps(reply) + "\n")
    _leave_at_once(0)  # an orderly end takes 10 to 30 ms, for which a start would wait


def _serve(settings: DispatcherSettings, restored: Path | None) -> int:
    try:
        for fd in (_IN_FD, _OUT_FD):
            os.set_inheritable(fd, False)  # or a child of a plug-in would keep the manager's pipe open
    except OSError:
        raise ValueError("descriptors 3 and 4 are not open: this process is started by the manager") from None
    _configure_logging(os.environ.get("NNI_LOG_DIRECTORY"), os.environ.get("NNI_LOG_LEVEL"))
    # Ctrl-C reaches the whole process group, but the manager decides what to do. A handler, unlike SIG_IGN, is
    # not inherited by processes that plug-ins start.
    signal.signal(signal.SIGINT, lambda *_: None)
    channel = FdChannel(_IN_FD, _OUT_FD)
    try:
        dispatcher = dispatcher_from(settings, channel)
    except PluginNotLoaded as error:
        _log.error("%s", error, exc_info=error)
        if settings.protocol is not None:
            report = error_report(error.__cause__ or error)
            report["plugin"], report["message"] = str(error.problems[0].path[0]), str(error)
            _send_last(channel, CommandType.Error, report, "the error")
        return 1
    try:
        _prepare_checkpoints(dispatcher, restored, synced=settings.synced)
    except CheckpointUnusable as error:
        _log.warning("%s", error)
        _send_last(channel, CommandType.Checkpoint, {"unusable": error.why}, "why")
        return _UNUSABLE
    return _run(dispatcher, settings)


def _prepare_checkpoints(dispatcher: MsgDispatcherBase, restored: Path | None, *, synced: bool) -> None:
    """Restore a checkpoint, and save new ones for a manager that supports them."""
    if restored is not None:
        n, halves = read_checkpoint(restored)
        try:
            dispatcher.restore(n, halves)
        except Exception as error:
            raise CheckpointUnusable(restored, f"does not fit: {error!r}") from error
        _log.info("Restored from %s, after command %d", restored, n)
    folder = dispatcher.get_checkpoint_path()
    if dispatcher.protocol is not None and folder is not None:
        dispatcher.save_into(Saver(Path(folder), synced=synced))


def _send_last(
    channel: FdChannel, command: CommandType, message: ErrorMessage | CheckpointMessage, what: str
) -> None:
    try:
        channel.send(command, dumps(message))
        channel.flush()
    except ChannelClosed:
        _log.warning("The manager is gone and cannot be sent %s", what)


def _run(dispatcher: MsgDispatcherBase, settings: DispatcherSettings) -> int:
    """Serve to the end, let the plug-ins clean up, and return the exit code."""
    if settings.resume and settings.protocol is None:  # a peer replays commands instead
        dispatcher.load_checkpoint()
    ending = dispatcher.run()
    if not dispatcher.abandoned:  # else a plug-in is still busy, and must not be called from a second thread
        _clean_up(dispatcher, "_on_error" if ending is Ending.FAILED else "_on_exit")
    code = 1 if ending is Ending.FAILED else 0
    if dispatcher.abandoned:
        _leave_at_once(code)
    return code


def _clean_up(dispatcher: MsgDispatcherBase, hook: str) -> None:
    if not isinstance(dispatcher, MsgDispatcher):
        return
    for role, instance in (("tuner", dispatcher.tuner), ("assessor", dispatcher.assessor)):
        if hasattr(instance, hook):
            try:
                Plugin(role, instance).call(hook)
            except PluginFailed as error:
                _log.error("%s", error, exc_info=error)


def _leave_at_once(code: int) -> NoReturn:
    """Exit without waiting for threads that do not end, as a normal exit might."""
    logging.shutdown()
    sys.stdout.flush()
    os._exit(code)


def _configure_logging(directory: str | None, level: str | None) -> None:
    """Send the root logger, and everything written to standard output, to `directory`/dispatcher.log.

    Without a directory both go to standard error. `level` is one of NNI's names; info for an unknown one.
    """
    target = 2
    if directory:
        file = Path(directory, "dispatcher.log")
        target = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    if sys.stdout is not None:
        sys.stdout.flush()
    os.dup2(target, 1)  # the descriptor itself, for the output of C code and child processes
    sys.stdout = os.fdopen(1, "w", buffering=1, errors="backslashreplace", closefd=False)
    handler = logging.StreamHandler(sys.stdout)
    handler.setFormatter(logging.Formatter(_FORMAT, "%Y-%m-%d %H:%M:%S"))
    logging.root.handlers = [handler]
    logging.root.setLevel(_LEVELS.get((level or "info").lower(), logging.INFO))


if __name__ == "__main__":
    sys.exit(main())
