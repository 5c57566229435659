"""The addresses that `ui` and `run --ui` print, and the tokens in them."""

from __future__ import annotations

import pytest

from pitchpipe.cli.failures import Failure
from pitchpipe.cli.page_addresses import addresses_for_others, page_address, page_settings
from pitchpipe.server import security

TOKEN, READER = "the-token-of-the-owner", "the-token-of-readers"
VARIABLES = {"token": "PITCHPIPE_SERVER_TOKEN", "share": "PITCHPIPE_SHARE_TOKEN"}
HERE = "http://127.0.0.1:8080"


@pytest.fixture(autouse=True)
def no_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in VARIABLES.values():
        monkeypatch.delenv(name, raising=False)


def test_without_a_token_there_is_one_address() -> None:
    settings = page_settings("127.0.0.1")
    assert page_address(settings, HERE, "/ui/") == f"{HERE}/ui/"
    assert [*addresses_for_others(settings, HERE, "/ui/")] == []


def test_shared_pages_have_a_token_for_the_owner_and_one_for_readers() -> None:
    settings = page_settings("127.0.0.1", share=True)
    assert settings.token is not None
    assert settings.share_token not in (None, settings.token)
    assert page_address(settings, HERE, "/ui/") == f"{HERE}/ui/?token={settings.token}"
    (line,) = addresses_for_others(settings, HERE, "/ui/")
    assert line == f"to read only: {HERE}/ui/?token={settings.share_token}"


def test_open_pages_have_an_address_that_others_can_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLES["token"], TOKEN)
    monkeypatch.setenv(VARIABLES["share"], READER)
    monkeypatch.setattr(security, "_outgoing_address", lambda: "192.168.1.5")
    settings = page_settings("0.0.0.0")
    assert page_address(settings, HERE, "/ui/e") == f"{HERE}/ui/e?token={TOKEN}"
    assert [*addresses_for_others(settings, HERE, "/ui/e")] == [
        f"from other machines: http://192.168.1.5:8080/ui/e?token={TOKEN}",
        f"to read only: http://192.168.1.5:8080/ui/e?token={READER}",
    ]


def test_pages_on_one_address_have_that_for_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLES["share"], READER)
    here = "http://192.168.1.5:8080"
    settings = page_settings("192.168.1.5")
    (line,) = addresses_for_others(settings, here, "/ui/")
    assert line == f"to read only: {here}/ui/?token={READER}"


def test_sign_in_a_token_reaches_the_server(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLES["token"], "a+token/with=signs~")
    address = page_address(page_settings("127.0.0.1"), HERE, "/ui/")
    assert address == f"{HERE}/ui/?token=a%2Btoken%2Fwith%3Dsigns~"


def test_token_that_cannot_be_one_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLES["share"], "short")
    with pytest.raises(Failure, match="a token has 16"):
        page_settings("127.0.0.1")
    monkeypatch.setenv(VARIABLES["token"], TOKEN)
    monkeypatch.setenv(VARIABLES["share"], TOKEN)
    with pytest.raises(Failure, match="give them another one"):
        page_settings("127.0.0.1")


def test_machine_without_a_network_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(security, "_FAR", ())
    monkeypatch.setattr(security.socket, "gethostname", lambda: "mybox")
    assert security.url_for_others("0.0.0.0", HERE) == "http://mybox:8080"
