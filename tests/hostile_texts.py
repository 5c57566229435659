"""Texts that break what shows them, and one stored experiment with each of them in every place of a user's text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from pitchpipe.runner.trial import Trial
from pitchpipe.store import Annotation, Annotations, tags_of

from .stored import MadeExperiment, a_config, a_trial, results

# What any of these runs in a browser opens a dialog.
HOSTILE = {
    "plain": "relu",
    "backslash": "C:\\Users\\me\\",
    "attribute": "\" :style=\"alert('attribute')\" :id='alert(2)' \\",
    "single quote": "' onload='alert(3)' \\",
    "quote": '"quoted"',
    "unicode escape": "C:\\users\\x41\\N{DASH}",
    "HTML": "<img src=nowhere onerror=alert('HTML')><script>alert(5)</script></td></title>",
    "link": '<a href="javascript:alert(6)">here</a><br><b>bold</b>',
    "entity": "&lt;b&gt; &amp; &#36;",
    "Markdown": "[here](javascript:alert(7)) `code` **bold** | cell |",
    "Rich": "[bold red]gone[/bold red] [/] [link=file:///etc/passwd]x[/link] [green",
    "Vue": "{{ alert(8) }} ${alert(9)} `%{x} %s {0}",
    "lines": "first line\nbest: 1e9 (trial 99)\r\n\tlast line",
    "carriage return": "all of this\ris hidden",
    "NUL": "before\x00after",
    "clear screen": "\x1b[2J\x1b[H\x1b[8mhidden\x1b[31;1m",
    "clipboard": "\x1b]52;c;cm0gLXJmIH4=\x07 \x1b]0;title\x1b\\\\",
    "hyperlink": "\x1b]8;;http://example.com\x07here\x1b]8;;\x07",
    "C1": "\x9b2J \x9d52;c;eA==\x9c \x84 \x7f\x08\x08",
    "formula": '=HYPERLINK("http://example.com","here")',
    "plus": "+1+cmd|' /C calc'!A0",
    "minus": "-2+3",
    "at": "@SUM(1+1)*cmd|' /C calc'!A0",
    "tab": "\t=1+1",
    "apostrophe": "'=1+1",
    "right to left": "abc\u202egpj.exe\u2066\u200f",
    "invisible": "re\u200blu\ufeff",
    "long word": "w" * 10_000,
    "surrogate": "half \ud83d of a character",
    "separator": "a\u2028b\u2029c",
    "spaces": "  two  words  ",
    "command": "$(touch /tmp/x); `id` && rm -rf ~",
    "colon": ":onclick=alert(10)",
    "number": "0.1",
    "true": "true",
}
TEXTS = list(HOSTILE.values())


UNIT = {"_type": "uniform", "_value": [0, 1]}
METRICS = ["default", HOSTILE["attribute"], HOSTILE["clear screen"]]


def stored_text(text: str) -> str:
    """Return a text as the store holds it: half a character becomes its escape."""
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def hostile_experiment(path: Path) -> MadeExperiment:
    """Store an experiment: trial n succeeded with the n-th text in its parameters, the next ones failed with it."""
    options = [*TEXTS, 0.1, True]
    space: dict[str, Any] = {text: {"_type": "choice", "_value": options} for text in TEXTS}
    space["nested"] = {"_type": "choice", "_value": [{"_name": text, text: UNIT} for text in TEXTS]}
    name = HOSTILE["attribute"]
    more = {
        "experimentName": name,
        "searchSpace": {**space, "lr": UNIT},
        "trialCommand": " ".join(TEXTS),
        "trialCodeDirectory": f"/tmp/{name}",
        "trialEnvironment": dict(zip(TEXTS, reversed(TEXTS), strict=True)),
        "objectives": [{"name": one, "direction": "maximize"} for one in METRICS],
    }
    made = MadeExperiment(path, a_config(), name=name, more=json.loads(json.dumps(more)))
    count = len(TEXTS)
    good = [_good(number, text) for number, text in enumerate(TEXTS)]
    bad = [_bad(count + number, text) for number, text in enumerate(TEXTS)]
    pairs = zip(good, TEXTS, strict=True)
    rows = [row for trial, text in pairs for row in results(trial, [{"default": 0.5, text: 1.0}] * 2)]
    reason, error = HOSTILE["lines"], traceback_of(name)
    made.commit(*good, *bad, metrics=rows, status="ERROR", reason=reason, error=error, end_time=500.0)
    notes = Annotations(made.folder)
    for number, text in enumerate(TEXTS):
        notes.write(number, _noted(text))
        made.folder.trial(number).mkdir(parents=True)
        for file in ("stdout", "stderr"):
            (made.folder.trial(number) / file).write_text(text, errors="backslashreplace")
    notes.write(None, _noted(HOSTILE["attribute"]))
    (made.folder.logs / "manager.log").write_text("\n".join(map(stored_text, TEXTS)))
    (made.folder.path / "experiment.yml").write_text("\n".join(map(stored_text, TEXTS)))
    return made


def traceback_of(text: str) -> str:
    return (
        f"Traceback (most recent call last):\n  File {text}, line 1, in f\n    f({text})\nValueError: {text}"
    )


def _noted(text: str) -> Annotation:
    kept = stored_text(text)
    return Annotation(kept[:9_000], tags_of(kept[:60]))


def _good(number: int, text: str) -> Trial:
    others = {TEXTS[(number + step) % len(TEXTS)]: text for step in range(3)}
    values = {METRICS[0]: number / 10, METRICS[1]: float(number % 7), METRICS[2]: float(number % 5)}
    parameters = {**others, "nested": {"_name": text, text: 0.5}, "lr": 0.25}
    final = json.dumps({**values, "note": text})
    return a_trial(number, parameters=parameters, final=final, values=tuple(values.values()), finals=1)


def _bad(number: int, text: str) -> Trial:
    kept = stored_text(text)
    parameters = {"lr": 0.25, text: text}
    return a_trial(number, "FAILED", parameters=parameters, reason=kept, error=traceback_of(kept), agent=kept)
