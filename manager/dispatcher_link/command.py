"""A numbered command to the dispatcher, as it is committed and sent."""

from __future__ import annotations

from dataclasses import dataclass

from ...protocol import CommandType, encode_frame, loads
from ...store import RecordRow


@dataclass(slots=True)
class Command:
    """Command number `n`; `is_periodical` marks an intermediate result, which goes to other queues."""

    n: int
    type: CommandType
    payload: str
    is_periodical: bool = False

    @classmethod
    def recorded(cls, record: RecordRow) -> Command:
        """Return the command that the store holds.

        >>> Command.recorded((7, "ME", '{"type":"PERIODICAL"}')).is_periodical
        True
        """
        n, code, payload = record
        command = CommandType(code.encode())
        is_metric = command is CommandType.ReportMetricData
        return cls(n, command, payload, is_metric and loads(payload).get("type") == "PERIODICAL")

    def record(self) -> RecordRow:
        """Return the row that the store keeps."""
        return self.n, self.type.code, self.payload

    def frame(self) -> bytes:
        """Return the bytes for the pipe."""
        return encode_frame(self.type, self.payload)
