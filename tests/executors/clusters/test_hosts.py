"""Asking other machines, with a stand-in for ssh that runs the command here."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from pitchpipe.executors.clusters.hosts import ClusterError, Hosts, on_each


def ssh(folder: Path, script: str) -> tuple[str, ...]:
    program = folder / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return (str(program),)


def test_request_is_done_by_the_named_python(tmp_path: Path) -> None:
    here = ssh(tmp_path, 'for word in "$@"; do last=$word; done; exec sh -c "$last"')
    assert Hosts(here, sys.executable).ask("ada", {"op": "look", "folder": "/no/such"}) == {
        "is_running": False
    }
    with pytest.raises(ClusterError, match=r"^ada: there is no request 'dance'$"):
        Hosts(here, sys.executable).ask("ada", {"op": "dance"})


def test_what_ssh_says_is_the_reason(tmp_path: Path) -> None:
    refusing = ssh(tmp_path, "echo noise >&2; echo Permission denied >&2; exit 255")
    with pytest.raises(ClusterError, match=r"^ada: Permission denied$"):
        Hosts(refusing, sys.executable).ask("ada", {"op": "check"})


def test_missing_ssh_is_named() -> None:
    with pytest.raises(ClusterError, match="there is no no-such-ssh here"):
        Hosts(("no-such-ssh",), sys.executable).ask("ada", {"op": "check"})


def test_errors_of_some_hosts_do_not_hide_the_results_of_others() -> None:
    def action(host: str) -> str:
        if host == "bob":
            raise ClusterError("bob: is away")
        return host.upper()

    results = on_each(["ada", "bob"], action)
    assert results["ada"] == "ADA"
    assert str(results["bob"]) == "bob: is away"
