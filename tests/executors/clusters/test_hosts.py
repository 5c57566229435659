"""Asking other machines, with a stand-in for ssh that runs the command here."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from pitchpipe.executors.clusters.ssh_cluster import ClusterError, _Hosts, _on_each

HERE = 'for word in "$@"; do last=$word; done; exec sh -c "$last"'


def test_request_is_done_by_the_named_python(programs: Callable[..., Path]) -> None:
    programs(ssh=HERE)
    reply = _Hosts(("ssh",), sys.executable).ask("ada", {"op": "look", "folder": "/no/such"})
    assert reply == {"is_running": False}


@pytest.mark.parametrize(
    ("program", "script", "op", "words"),
    [
        ("ssh", HERE, "dance", "^ada: there is no request 'dance'$"),
        ("ssh", "echo noise >&2; echo Permission denied >&2; exit 255", "check", "^ada: Permission denied$"),
        ("no-such-ssh", "", "check", "there is no no-such-ssh here"),
    ],
)
def test_what_ssh_and_the_node_say_is_the_reason(
    program: str, script: str, op: str, words: str, programs: Callable[..., Path]
) -> None:
    programs(ssh=script)
    with pytest.raises(ClusterError, match=words):
        _Hosts((program,), sys.executable).ask("ada", {"op": op})


def test_errors_of_some_hosts_do_not_hide_the_results_of_others() -> None:
    def action(host: str) -> str:
        if host == "bob":
            raise ClusterError("bob: is away")
        return host.upper()

    results = _on_each(["ada", "bob"], action)
    assert results["ada"] == "ADA"
    assert str(results["bob"]) == "bob: is away"
