"""Changed limits and search spaces are numbers, durations and spaces, for every caller."""

from __future__ import annotations

import math
from dataclasses import fields

import pytest

from pitchpipe.cli.verbs.resume import resume
from pitchpipe.cli.verbs.update import update
from pitchpipe.manager.control import extension
from pitchpipe.manager.control.connection import ControlError
from pitchpipe.manager.control.extension import problems_of
from pitchpipe.manager.control.operations import changed_config
from pitchpipe.runner import LimitsChanged
from pitchpipe.runner.events import Event
from pitchpipe.server.api import models
from pitchpipe.server.pages import settings_page as page

from ..experiments import config


def test_changes_that_make_sense_are_made() -> None:
    changes = {"max_trial_number": None, "max_experiment_duration": "2h", "trial_concurrency": 4}
    changed = changed_config(config(), changes)
    limits = changed.max_trial_number, changed.max_experiment_duration, changed.trial_concurrency
    assert limits == (None, 7200.0, 4)


def test_search_space_with_numbers_that_json_cannot_hold_is_refused() -> None:
    with pytest.raises(ControlError, match=r"search_space\.x\._value\[1\]"):
        changed_config(config(), {"search_space": {"x": {"_type": "choice", "_value": [1, math.inf]}}})


def test_change_without_a_check_raises() -> None:
    with pytest.raises(LookupError, match="max_cost has no check"):
        problems_of({"max_cost": 5})


def test_every_changeable_limit_can_be_changed_everywhere() -> None:
    names = set(extension.LIMITS)
    assert {field.name for field in fields(LimitsChanged)} - {field.name for field in fields(Event)} == names
    assert {*models.Change.model_fields} - {"search_space"} == names
    assert {*models.Limits.model_fields} == names
    assert {limit.name for limit in page.LIMITS} == names
    for verb in (resume, update):
        assert {option.name for option in verb.params} >= names
