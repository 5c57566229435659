"""A real sshd on loopback, with its own port, keys and configuration in one folder."""

from __future__ import annotations

import getpass
import os
import shutil
import socket
import subprocess
import tempfile
import time
from pathlib import Path

__all__ = ["SshServer", "why_no_sshd"]

_SSHD = "/usr/sbin/sshd"


def why_no_sshd() -> str:
    """Return why there can be no server here; empty if there can."""
    missing = [name for name in (_SSHD, "ssh", "ssh-keygen") if shutil.which(name) is None]
    return f"NOTICE: no {', '.join(missing)} (openssh-server of Debian)" if missing else ""


class SshServer:
    """Runs until `close`; `command` is an ssh that logs in, and knows the machine by several names."""

    def __init__(self, names: list[str]) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="pp-ssh-", dir="/tmp"))
        for name in ("host", "user"):
            subprocess.run(
                ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(self.folder / name)], check=True
            )
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
        if os.getuid() == 0:
            Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it for privilege separation
        (self.folder / "sshd_config").write_text(
            f"Port {port}\nListenAddress 127.0.0.1\nHostKey {self.folder}/host\nPidFile none\n"
            f"AuthorizedKeysFile {self.folder}/user.pub\nStrictModes no\nUsePAM no\nPermitRootLogin yes\n"
            "PasswordAuthentication no\nAcceptEnv PPTEST_*\n"
        )
        hosts = f"Host {' '.join(names)}\n HostName 127.0.0.1\n Port {port}\n User {getpass.getuser()}\n"
        (self.folder / "ssh_config").write_text(
            f"{hosts} IdentityFile {self.folder}/user\n UserKnownHostsFile {self.folder}/known\n"
            " StrictHostKeyChecking accept-new\n SendEnv PPTEST_*\n"
        )
        self.command = f"ssh -F {self.folder}/ssh_config"
        command = [_SSHD, "-D", "-e", "-f", str(self.folder / "sshd_config")]
        with (self.folder / "log").open("wb") as log:
            self._process = subprocess.Popen(command, stderr=log)
        self._await(port)

    def close(self) -> None:
        """End the server and remove its folder."""
        self._process.terminate()
        self._process.wait(10)
        shutil.rmtree(self.folder)

    def _await(self, port: int) -> None:
        deadline = time.monotonic() + 10
        while True:
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except ConnectionRefusedError:
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise RuntimeError((self.folder / "log").read_text()) from None
                time.sleep(0.02)
