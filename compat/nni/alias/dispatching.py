"""What NNI's plug-ins and its own tests use: `MsgDispatcher`, the `send` of advisors, a channel over two files.

Two of NNI's tuners are here as well, which are classes of another kind there.
"""

from __future__ import annotations

from typing import Any, BinaryIO

from ....dispatcher import Channel, UnsupportedCommand, dispatcher_at_work
from ....dispatcher import MsgDispatcher as OwnDispatcher
from ....protocol import CommandType, Frame, FrameDecoder, ParameterRecord, dumps, encode_frame
from ....tuners import Tuner

_HEADER = 16


class MsgDispatcher(OwnDispatcher):
    """NNI's dispatcher: `command_channel_url` has no effect, and the channel is `_channel`."""

    def __init__(
        self, command_channel_url: str | None = None, tuner: Any = None, assessor: Any = None
    ) -> None:
        del command_channel_url
        super().__init__(_NoTuner() if tuner is None else tuner, assessor)

    @property
    def _channel(self) -> Channel:
        return super()._channel

    @_channel.setter
    def _channel(self, channel: Channel) -> None:
        self.connect(channel, None)

    def process_command(self, command: CommandType, data: Any) -> None:
        """Call the handler of a command; raise AssertionError if there is none, as NNI does."""
        try:
            super().process_command(command, data)
        except UnsupportedCommand as error:
            raise AssertionError(f"Unsupported command: {command}") from error


class _NoTuner(Tuner):
    """Takes the place of a tuner where only an assessor is wanted."""

    def update_search_space(self, search_space: Any) -> None:
        pass


class _Files:
    """The two files of this process, as NNI has them: its functions take no others."""

    incoming: BinaryIO
    outgoing: BinaryIO


_files = _Files()


def set_in_file(in_file: BinaryIO) -> None:
    """Set the file from which `receive` reads."""
    _files.incoming = in_file


def set_out_file(out_file: BinaryIO) -> None:
    """Set the file to which `send` writes."""
    _files.outgoing = out_file


def send(command: CommandType, data: str) -> None:
    """Send a command to the manager in the handlers of an advisor; elsewhere, write it to the file.

    >>> import io
    >>> file = io.BytesIO()
    >>> set_out_file(file)
    >>> send(CommandType.RequestTrialJobs, "2")
    >>> _ = file.seek(0)
    >>> set_in_file(file)
    >>> receive()
    Frame(command=<CommandType.RequestTrialJobs: b'GE'>, payload='2')
    """
    advisor = dispatcher_at_work()
    if advisor is None:
        _write(command, data)
    else:
        advisor.send(command, data)


def _write(command: CommandType, data: str) -> None:
    _files.outgoing.write(encode_frame(command, data))
    _files.outgoing.flush()


def receive() -> tuple[CommandType | None, str | None]:
    """Read a command and its payload; None and None at the end of the file."""
    header = _files.incoming.read(_HEADER)
    if len(header) < _HEADER:
        return None, None
    frame = header + _files.incoming.read(int(header[2:]))
    return FrameDecoder().feed(frame)[0]


class LegacyCommandChannel:
    """Frames over the two files; the end of the first one becomes Terminate."""

    def __init__(self) -> None:
        self._interrupted = False

    def receive(self) -> Frame | None:
        """Return the next frame; None after `interrupt`."""
        command, payload = receive()
        if self._interrupted:
            return None
        return Frame(command or CommandType.Terminate, payload or "")

    def send(self, command: CommandType, payload: str = "") -> None:
        """Write a frame."""
        _write(command, payload)

    def flush(self) -> None:
        """Do nothing: `send` writes at once."""

    def interrupt(self) -> None:
        """Make `receive` return None."""
        self._interrupted = True


def packed_parameter(
    parameter_id: int,
    params: Any,
    customized: bool = False,
    trial_job_id: str | None = None,
    parameter_index: int | None = None,
) -> str:
    """Return the record of a trial's parameters, as JSON.

    >>> packed_parameter(0, {"x": 1})
    '{"parameter_id": 0, "parameter_source": "algorithm", "parameters": {"x": 1}, "parameter_index": 0}'
    """
    record: ParameterRecord = {
        "parameter_id": parameter_id,
        "parameter_source": "customized" if customized else "algorithm",
        "parameters": params,
        "parameter_index": parameter_index or 0,
    }
    return dumps(record if trial_job_id is None else {**record, "trial_job_id": trial_job_id})


def HyperoptTuner(algorithm_name: str, optimize_mode: str = "minimize", **class_args: Any) -> Tuner:
    """Return the tuner of the algorithm, `anneal` or `tpe`, with its own arguments; raise ValueError for another.

    >>> type(HyperoptTuner("anneal")).__name__
    'AnnealTuner'
    """
    from ....tuners import AnnealTuner, TpeTuner  # they import numpy, which a dispatcher may not need

    classes = {"anneal": AnnealTuner, "tpe": TpeTuner}
    if algorithm_name not in classes:
        raise ValueError(f"HyperoptTuner has anneal and tpe, not {algorithm_name!r}")
    class_args = {"optimize_mode": optimize_mode, **class_args}
    tuner = classes[algorithm_name](**class_args)
    vars(tuner)["hyperopt_config"] = {"name": algorithm_name, "class_args": class_args}
    return tuner


class RegularizedEvolutionTuner:
    """NNI's tuner for architecture search; refused with what is there for hyper-parameters."""

    def __init__(self, *_arguments: Any, **_class_args: Any) -> None:
        what = "RegularizedEvolutionTuner searches for architectures, which Pitchpipe does not"
        raise NotImplementedError(f"{what}; for hyper-parameters there is EvolutionTuner")
