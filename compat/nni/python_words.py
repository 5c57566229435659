"""What verbs advise, in the words of a script that uses NNI's `Experiment`: calls in place of commands and options."""

from __future__ import annotations

import re

_DIRECTORY = re.compile(r" --dir (?:'[^']*'|\S+)")
_RESUME = re.compile(r"pitchpipe resume ([\w-]+)((?: --max-[a-z-]+ [A-Z]+)*)(?! --)\b")
_LIMIT = re.compile(r" --(max-[a-z-]+) ([A-Z]+)")
_OTHERS = (
    (re.compile(r"pitchpipe stop ([\w-]+)"), r'Experiment(id="\1").stop()'),
    (re.compile(r"--experiment-id"), "id"),
)


def in_words_of_python(text: str) -> str:
    """Return a message of a verb with the calls that do what it advises; what no call does stays a command.

    >>> print(in_words_of_python("it is DONE; to extend it: pitchpipe resume k3 --max-trial-number N --dir '/my runs'"))
    it is DONE; to extend it: Experiment(id="k3").update_max_trial_number(N)
    >>> print(in_words_of_python("pitchpipe resume k3 continues it; pitchpipe resume k3 --code-directory DIR"))
    Experiment.resume("k3") continues it; pitchpipe resume k3 --code-directory DIR
    """
    text = _RESUME.sub(_call_to_resume, _DIRECTORY.sub("", text))
    for command, call in _OTHERS:
        text = command.sub(call, text)
    return text


def _call_to_resume(command: re.Match[str]) -> str:
    limits = _LIMIT.findall(command[2])
    if not limits:
        return f'Experiment.resume("{command[1]}")'
    calls = (f".update_{name.replace('-', '_')}({value})" for name, value in limits)
    return f'Experiment(id="{command[1]}"){" and ".join(calls)}'
