"""Each line of a list in docs/reference/security.md is held by a test."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
PAGE = TESTS.parent / "docs" / "reference" / "security.md"

#: The beginning of each line, and the tests that hold it: files and functions.
HELD = {
    "The folder of an experiment has mode 0700": "test_security_page.py::test_folder_of_an_experiment_is_private",
    "Sockets and tokens are in a runtime directory": (
        "store/test_runtime_folder.py::test_folder_is_private_and_found_again"
        " store/test_runtime_folder.py::test_folder_of_another_user_is_refused"
    ),
    "A manager answers only": (
        "manager/control/test_connection.py::test_another_user_is_not_answered"
        " manager/control/test_connection.py::test_socket_is_private_and_goes_with_the_server"
    ),
    "A local agent takes messages": (
        "trial_agent/test_unix_server.py::test_other_users_are_not_accepted"
        " trial_agent/test_unix_server.py::test_wrong_token_closes_the_connection"
    ),
    "An agent on Ray takes": "executors/ray/test_ray_agent.py::test_wrong_token_is_refused",
    "A private Ray has a token": (
        "executors/private_ray/test_head.py::test_ray_starts_apart_from_the_users_cluster_with_a_private_token"
    ),
    "Report files hide passwords": "server/report/test_report.py::test_secrets_are_not_handed_on",
    "On an address that other machines": "server/test_security.py::test_address_that_others_reach_needs_a_token",
    "A token has at least 16": "server/test_security.py::test_token_that_can_be_guessed_or_not_be_sent_is_refused",
    "With a token, every request": "server/test_security.py::test_token_opens_as_a_header_and_a_wrong_one_does_not",
    "A reader's token": (
        "server/test_security.py::test_reader_reads_and_changes_nothing"
        " server/pages/test_readers.py::test_reader_sees_every_page_and_no_button_that_changes_something"
        " server/pages/test_readers.py::test_event_that_a_reader_forges_for_the_page_of_the_owner_is_ignored"
        " server/pages/test_dialogs.py::test_changes_of_a_reader_are_refused_although_a_page_asks_for_them"
    ),
    "A token opens the server": (
        "server/test_security.py::test_link_of_a_reader_becomes_a_cookie_and_is_worth_nothing_elsewhere"
    ),
    "In a config, readers see": "server/test_security.py::test_reader_sees_no_secret_of_the_config",
    "`?token=TOKEN` in an address": (
        "server/test_security.py::test_browser_keeps_the_token_in_a_cookie_that_scripts_and_others_cannot_use"
        " server/pages/test_token.py::test_the_token_is_in_a_private_file_by_which_a_browser_gets_in"
    ),
    "`pitchpipe ui` passes the browser": (
        "server/pages/test_token.py::test_the_token_is_in_a_private_file_by_which_a_browser_gets_in"
    ),
    "Wrong tokens are slowed": "server/test_security.py::test_guessing_tokens_is_slowed_down",
    "A page of another site": (
        "server/test_security.py::test_page_of_another_site_can_ask_nothing"
        " server/test_security.py::test_what_a_form_can_send_changes_nothing"
        " server/test_security.py::test_other_names_are_not"
    ),
    "No address leads to a file": "server/test_security.py::test_no_path_leads_out_of_the_experiments",
    "These run its code": "test_strangers.py::test_verbs_that_run_the_code_do",
    "These run none of it": "test_strangers.py::test_verbs_that_read_or_refuse_do_not",
    "`stop` of an experiment": (
        "test_strangers.py::test_what_its_manager_left_is_stopped_and_deleted_without_its_code"
        " test_strangers.py::test_results_that_came_while_it_was_stopped_reach_the_tuner_later"
    ),
    "`update` of an experiment": "test_strangers.py::test_a_new_search_space_is_refused_before_the_tuner_is_asked",
    "`ui` and the HTTP API run": "test_strangers.py::test_pages_and_api_run_nothing",
    "The server contains nothing": "server/test_security.py::test_nothing_of_the_server_can_unpickle",
    "The pages never read": (
        "test_import_rules.py::test_tree_keeps_the_rules test_import_rules.py::test_variable_that_a_page_parses_is_seen"
    ),
    "In a report file": "test_hostile_faces.py::test_report_holds_every_text_and_runs_none",
    "Verbs print control characters": (
        "cli/test_hostile_texts.py::test_verb_prints_no_control_character_no_line_of_a_users_and_no_endless_one"
    ),
    "The log of a trial": "cli/test_hostile_texts.py::test_log_on_a_terminal_keeps_colours_and_escapes_the_rest",
    "In CSV, an apostrophe": "store/reading/test_csv_cells.py::test_names_are_read_back_and_no_text_begins_a_formula",
    "In a command, a value": (
        "trial_agent/test_placeholders.py::test_every_value_arrives_exactly"
        " trial_agent/test_placeholders.py::test_a_value_is_refused_rather_than_changed"
    ),
}


def lines() -> list[str]:
    return re.findall(r"^- (.+)$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def test_every_line_has_a_test() -> None:
    assert len(lines()) == len(HELD)
    assert [[line for line in lines() if line.startswith(start)] for start in HELD] == [
        [line] for line in lines()
    ]


@pytest.mark.parametrize("test", " ".join(HELD.values()).split())
def test_the_test_exists(test: str) -> None:
    file, _, name = test.partition("::")
    assert re.search(rf"^def {name}\(", (TESTS / file).read_text(encoding="utf-8"), re.MULTILINE)


def test_folder_of_an_experiment_is_private(tmp_path: Path) -> None:
    from pitchpipe.store import ExperimentFolder

    folder = ExperimentFolder.create(tmp_path / "runs", "e")
    assert folder.path.stat().st_mode & 0o777 == 0o700
    folder.remove()
