"""Who may ask the server, and how much."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pitchpipe.server.experiments import Experiments
from pitchpipe.server.request_guard import host_name
from pitchpipe.server.security import SecurityError, ServerLimits, ServerSettings

from ..stored import MadeExperiment, a_config, a_trial
from .asking import Asking, Reply

TOKEN = "a-token-of-enough-characters"
READER = "a-token-of-those-who-read"
WHERE = "/api/v1/experiments/made1234"


@pytest.fixture
def asking(made: MadeExperiment) -> Asking:
    made.commit(a_trial(0, value=0.5))
    return Asking(Experiments(made.folder.path.parent))


def open_to_others(made: MadeExperiment, **fields: Any) -> Asking:
    settings = ServerSettings(host="0.0.0.0", token=TOKEN, **fields)
    return Asking(Experiments(made.folder.path.parent), settings)


# ---------------------------------------------------------------------- where it listens


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.5", "", "example.org"])
def test_address_that_others_reach_needs_a_token(host: str) -> None:
    with pytest.raises(SecurityError, match="give it a token"):
        ServerSettings(host=host)
    assert ServerSettings(host=host, token=TOKEN).token == TOKEN


@pytest.mark.parametrize("token", ["", "short", "ä" * 30, "a" * 20 + "\r\nx: y", "a" * 20 + ";"])
def test_token_that_can_be_guessed_or_not_be_sent_is_refused(token: str) -> None:
    with pytest.raises(SecurityError, match="a token has 16"):
        ServerSettings(token=token)


@pytest.mark.parametrize(
    ("tokens", "why"),
    [
        ({"share_token": READER}, "everyone may change everything"),
        ({"token": TOKEN, "share_token": TOKEN}, "give them another one"),
        ({"token": TOKEN, "share_token": "short"}, "a token has 16"),
    ],
)
def test_token_of_readers_is_a_second_one(tokens: dict[str, str], why: str) -> None:
    with pytest.raises(SecurityError, match=why):
        ServerSettings(**tokens)


# ---------------------------------------------------------------------- Host: DNS rebinding


@pytest.mark.parametrize("host", ["localhost", "localhost:1", "127.0.0.1:8000", "[::1]:8000", "LOCALHOST."])
def test_names_of_this_machine_are_served(asking: Asking, host: str) -> None:
    assert asking.get(WHERE, {"host": host}).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *(
            "evil.example",
            "evil.example:8000",
            "",
            "localhost.evil.example",
            "127.0.0.1.nip.io",
            "192.168.1.5",
        ),
        *("a b", "[::1", "user@localhost", "localhost/x", "localhost:80:80"),
    ],
)
def test_other_names_are_not(asking: Asking, host: str) -> None:
    reply = asking.get(WHERE, {"host": host})
    assert reply.status == 421
    assert "made1234" not in reply.body.decode()


def test_open_server_is_asked_by_address_or_by_a_name_it_was_given(made: MadeExperiment) -> None:
    asking = open_to_others(made, allowed_hosts=("tuning.example",))
    bearer = {"authorization": f"Bearer {TOKEN}"}
    for host, status in (("10.0.0.7:80", 200), ("tuning.example", 200), ("evil.example", 421)):
        assert asking.get(WHERE, {"host": host, **bearer}).status == status


@given(st.text(st.characters(max_codepoint=255), max_size=30))
def test_no_host_header_confuses_the_guard(host: str) -> None:
    is_loopback = host.lower().rstrip(".").partition(":")[0] in ("localhost", "127.0.0.1") or host.startswith(
        "[::1]"
    )
    assert is_loopback or not ServerSettings().is_ours(host_name(host))


# ---------------------------------------------------------------------- Origin: pages of other sites


@pytest.mark.parametrize(
    "origin",
    ["http://evil.example", "null", "http://localhost:9999", "https://localhost", "file://", "http://["],
)
def test_page_of_another_site_can_ask_nothing(asking: Asking, origin: str) -> None:
    assert asking.get(WHERE, {"origin": origin}).status == 403
    reply = asking.ask("POST", f"{WHERE}/stop", {}, {"origin": origin})
    assert (reply.status, "other sites" in reply.error) == (403, True)
    assert asking.open_websocket("/ui/_nicegui_ws/socket.io/", {"origin": origin}).closed_with == 1008


def test_our_own_pages_may(asking: Asking) -> None:
    assert asking.get(WHERE, {"origin": "http://localhost:8000"}).status == 200


def test_browser_that_says_cross_site_changes_nothing(asking: Asking) -> None:
    for site, status in (("cross-site", 403), ("same-site", 403), ("same-origin", 409), ("none", 409)):
        assert asking.ask("POST", f"{WHERE}/stop", {}, {"sec-fetch-site": site}).status == status
    assert asking.get(WHERE, {"sec-fetch-site": "cross-site"}).status == 200  # a link from elsewhere


@pytest.mark.parametrize(
    "kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_what_a_form_can_send_changes_nothing(asking: Asking, kind: str) -> None:
    for method, path in (
        ("POST", f"{WHERE}/stop"),
        ("PATCH", WHERE),
        ("POST", "/trials"),
        ("PUT", "/stop_experiment"),
    ):
        assert asking.ask(method, path, raw=b"{}", headers={"content-type": kind}).status == 415


# ---------------------------------------------------------------------- the token


def test_token_opens_as_a_header_and_a_wrong_one_does_not(made: MadeExperiment) -> None:
    asking = open_to_others(made)
    assert asking.get(WHERE, {"authorization": f"Bearer {TOKEN}"}).status == 200
    wrong = [{}, {"authorization": "Bearer wrong"}, {"authorization": f"Basic {TOKEN}"}]
    for headers in (*wrong, {"cookie": "pitchpipe_token=x"}):
        reply = asking.get(WHERE, headers)
        assert (reply.status, reply.headers["www-authenticate"]) == (401, "Bearer")
        assert TOKEN not in reply.body.decode()
    assert asking.open_websocket("/ui/_nicegui_ws/", {}).closed_with == 1008


def test_browser_keeps_the_token_in_a_cookie_that_scripts_and_others_cannot_use(made: MadeExperiment) -> None:
    asking = open_to_others(made)
    reply = asking.get("/ui/", token=TOKEN, x="1 2")
    assert (reply.status, reply.headers["location"]) == (303, "/ui/?x=1+2")
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert asking.get(WHERE, {"cookie": cookie.partition(";")[0]}).status == 200


def test_page_elsewhere_that_leads_here_with_the_token_is_led_on_by_one_of_ours(made: MadeExperiment) -> None:
    asking = open_to_others(made)
    reply = asking.get("/ui/", {"sec-fetch-site": "cross-site"}, token=TOKEN, x='"><script>')
    assert (reply.status, "location" in reply.headers) == (200, False)
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert reply.headers["content-security-policy"].startswith("default-src 'none'")
    assert reply.headers["set-cookie"].startswith(f"pitchpipe_token={TOKEN}; HttpOnly; SameSite=Strict")
    body = reply.body.decode()
    assert body == '<meta http-equiv="refresh" content="0; url=/ui/?x=%22%3E%3Cscript%3E">'


def test_address_that_holds_markup_leads_on_without_it(made: MadeExperiment) -> None:
    target = f'/ui/"><script>?token={TOKEN}'  # the server has decoded it
    reply = open_to_others(made).ask("GET", target, headers={"sec-fetch-site": "cross-site"})
    assert reply.status == 200
    assert b"<script>" not in reply.body


def test_redirect_stays_on_this_server(made: MadeExperiment) -> None:
    reply = open_to_others(made).ask("GET", f"//evil.example/?token={TOKEN}")
    assert reply.headers["location"] == "/evil.example/"


def test_guessing_tokens_is_slowed_down(made: MadeExperiment) -> None:
    asking = open_to_others(made, limits=ServerLimits(wrong_tokens_at_once=3))
    statuses = [asking.get(WHERE, {"authorization": "Bearer wrong"}).status for _ in range(5)]
    assert statuses == [401, 401, 401, 429, 429]
    assert asking.get(WHERE, {"authorization": f"Bearer {TOKEN}"}).status == 429
    asking.peer = "10.0.0.8"  # no other peer is locked out
    assert asking.get(WHERE, {"authorization": f"Bearer {TOKEN}"}).status == 200


def test_link_with_another_token_changes_no_cookie(made: MadeExperiment) -> None:
    reply = open_to_others(made).get(WHERE, {"cookie": f"pitchpipe_token={TOKEN}"}, token="evil\r\nx: y")
    assert (reply.status, "set-cookie" in reply.headers) == (200, False)


# ---------------------------------------------------------------------- the token for reading

CHANGES = (
    ("PATCH", WHERE),
    ("POST", f"{WHERE}/stop"),
    ("POST", f"{WHERE}/trials"),
    ("POST", f"{WHERE}/trials/0/kill"),
    ("PUT", "/stop_experiment"),
    ("DELETE", "/api/v1/experiments/made1234"),
    ("POST", "/ui/_nicegui_ws/socket.io/"),
)


def shared(made: MadeExperiment, share_token: str = READER) -> Asking:
    made.commit(a_trial(0, value=0.5))
    return open_to_others(made, share_token=share_token)


@pytest.mark.parametrize(("method", "path"), CHANGES)
def test_reader_reads_and_changes_nothing(made: MadeExperiment, method: str, path: str) -> None:
    asking = shared(made)
    for headers in ({"authorization": f"Bearer {READER}"}, {"cookie": f"pitchpipe_token={READER}"}):
        assert asking.get(WHERE, headers).status == 200
        reply = asking.ask(method, path, {}, headers)
        assert (reply.status, "read-only" in reply.error) == (403, True)
    owner = {"authorization": f"Bearer {TOKEN}"}
    assert asking.ask(method, path, {}, owner).status != 403
    assert asking.ask(method, path, {}, {**owner, "cookie": f"pitchpipe_token={READER}"}).status != 403


def test_link_of_a_reader_becomes_a_cookie_and_is_worth_nothing_elsewhere(made: MadeExperiment) -> None:
    reply = shared(made).get("/ui/", token=READER)
    assert (reply.status, reply.headers["location"]) == (303, "/ui/")
    cookie = {"cookie": reply.headers["set-cookie"].partition(";")[0]}
    assert READER in cookie["cookie"]
    for other in (open_to_others(made), shared(made, "the-token-of-other-readers")):
        assert other.get(WHERE, cookie).status == 401
        assert other.ask("POST", f"{WHERE}/stop", {}, cookie).status == 401
        assert other.get("/ui/", token=READER).status == 401


def test_reader_sees_no_secret_of_the_config(tmp_path: Path) -> None:
    fields = {"trial_command": "./train --token=abcdef", "trial_environment": {"WANDB_API_KEY": "abcdef"}}
    made = MadeExperiment(tmp_path / "exps" / "made1234", a_config(**fields))
    asking = shared(made)
    paths = [f"{WHERE}/config", f"{WHERE}/export", "/api/v1/nni/experiment"]
    for path in paths:
        owner, reader = (
            asking.get(path, {"authorization": f"Bearer {token}"}).body for token in (TOKEN, READER)
        )
        assert (b"abcdef" in owner, b"abcdef" in reader, b"(hidden)" in reader) == (True, False, True)
    assert b"abcdef" not in asking.get("/trials", {"authorization": f"Bearer {READER}"}).body
    made.store.close()


# ---------------------------------------------------------------------- bounds


def test_large_bodies_are_refused_before_they_are_taken_in(made: MadeExperiment) -> None:
    asking = Asking(Experiments(made.folder.path.parent), ServerSettings(limits=ServerLimits(body=1000)))
    assert asking.ask("POST", f"{WHERE}/stop", {"reason": "x" * 2000}).status == 413
    assert asking.ask("POST", f"{WHERE}/stop", {"reason": "x"}, {"content-length": "9" * 30}).status == 413
    endless = {"content-length": "", "transfer-encoding": "chunked"}
    refused = asking.ask("POST", f"{WHERE}/stop", {"reason": "x" * 2000}, endless)
    assert refused.status == 413  # without a stated length


def test_changes_come_at_a_bounded_rate(made: MadeExperiment) -> None:
    limits = ServerLimits(changes_per_second=1e-6, changes_at_once=2)
    asking = Asking(Experiments(made.folder.path.parent), ServerSettings(limits=limits))
    replies: list[Reply] = [asking.ask("POST", f"{WHERE}/stop", {}) for _ in range(3)]
    assert [reply.status for reply in replies] == [409, 409, 429]
    assert replies[2].headers["retry-after"] == "1"
    assert asking.get(WHERE).status == 200


def test_answers_carry_the_headers_that_browsers_heed(asking: Asking) -> None:
    headers = asking.get(WHERE).headers
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert "default-src 'none'" in headers["content-security-policy"]
    assert not any(name.startswith("access-control") for name in headers)


# ---------------------------------------------------------------------- what is received is data


def test_no_path_leads_out_of_the_experiments(made: MadeExperiment, asking: Asking) -> None:
    outside = made.folder.path.parent.parent / "outside"
    MadeExperiment(outside).store.close()
    for name in (
        "..",
        "../outside",
        "..%2foutside",
        "%2e%2e/outside",
        "made1234/../../outside",
        str(outside),
        "a\0b",
    ):
        assert asking.get(f"/api/v1/experiments/{name}/config").status == 404
    (made.folder.logs / "manager.log").write_text("x")
    for name in ("../experiment.db", "..%2fexperiment.db", "%2e%2e", "/etc/passwd", "\0"):
        assert asking.get(f"{WHERE}/logs/{name}").status == 404
        assert asking.get(f"{WHERE}/trials/0/logs/{name}").status == 404


def test_server_of_one_experiment_shows_no_other(made: MadeExperiment) -> None:
    MadeExperiment(made.folder.path.parent / "other").store.close()
    asking = Asking(Experiments(made.folder.path.parent, "made1234"))
    assert [each["id"] for each in asking.get("/api/v1/experiments").json] == ["made1234"]
    assert asking.get("/api/v1/experiments/other").status == 404
    assert asking.get("/api/v1/experiments/current").json["id"] == "made1234"


def test_nothing_of_the_server_can_unpickle(tree: Any) -> None:
    sources = [path.read_text() for path in (tree / "server").rglob("*.py")]
    assert len(sources) > 10
    for word in (
        "import pickle",
        "cloudpickle",
        "import marshal",
        "import shelve",
        " eval(",
        " exec(",
        "yaml.load",
    ):
        assert not any(word in source for source in sources)
