"""Appending whole lines to a file to which any number of processes append. For the SDK: imports only `os`."""

import os


class LineFile:
    """An append-only file; each line is one `write` on an O_APPEND descriptor, so lines never mix.

    >>> import tempfile
    >>> path = os.path.join(tempfile.mkdtemp(), "reports-1.jsonl")
    >>> file = LineFile(path)
    >>> file.append('{"final": 0.9}')
    >>> file.close()
    >>> open(path).read()
    '{"final": 0.9}\\n'
    """

    def __init__(self, path: str) -> None:
        self._descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o666)

    def append(self, line: str) -> None:
        """Append one line; raise OSError when the disk does not take all of it."""
        data = line.encode() + b"\n"
        written = os.write(self._descriptor, data)
        if written != len(data):
            raise OSError(
                f"only {written} of {len(data)} bytes of a report could be written: is the disk full?"
            )

    def close(self) -> None:
        """Close the file; what was appended is in it already."""
        os.close(self._descriptor)
