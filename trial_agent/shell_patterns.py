"""Regular expressions for the commands of trials, each with what it matches: `<>` is where the placeholder would be.

Those whose name ends with `CODE` are searched in the words of a command before a placeholder, joined by single spaces.
"""

from __future__ import annotations

import re

PLACEHOLDER = re.compile(r"\{([^{}\s]+)\}")  # {lr}, {args}

# The texts that a restricted placeholder accepts.
NUMBER = re.compile(r"[-+]?(?:0|[1-9]\d*)(?:\.\d+)?(?:e[-+]?\d+)?", re.ASCII)  # 0.1, -3, 1e-05
# What no shell, quoted or not, reads as anything but itself; `=` would assign, and `,` expands between braces.
PLAIN = re.compile(r"(?:[\w/.+]|--?\w)[\w@%+:./-]*", re.ASCII)  # relu, runs/7, -1
# In code of another language, a slash could end a pattern.
BARE = re.compile(r"[\w.+-]*", re.ASCII)  # relu, 0.1
NEVER = re.compile(r"(?!)")  # nothing

# From the start of a command to the program: "A=1 exec /usr/bin/"
_FIRST = (
    r"^(?:(?:\w+=\S*|if|then|elif|else|while|until|do|!|\{|time|exec|command|builtin|env|sudo|nohup|nice) )*"
    r"(?:\S*/)?"
)
# "bash", " /bin/sh", " $SHELL", "python3.12"
_INTERPRETER = (
    r"(?:^| )(?:\S*/)?(?:(?:ba|da|z|k|a|c|tc|fi)?sh|\$\{?(?:SHELL|BASH)\}?|python[\d.]*|pypy[\d.]*)"
)
# "perl", " /usr/bin/ruby"
_OTHER_INTERPRETER = r"(?:^| )(?:\S*/)?(?:perl|ruby|node|php|lua|R|Rscript|julia)"
# " -x", " -o pipefail", " --rcfile=x"
_OPTIONS = r"(?: -[\w-]*[oOWX] \S+| [-+][\w-]+(?:=\S*)?)*"

# bash -c <>; su ada -c <>; sbatch --wrap <>; ssh host <>; [[ -f <>
SHELL_CODE = re.compile(
    rf"{_INTERPRETER}{_OPTIONS} -\w*c$|(?:^| )(?:su|runuser|flock|script)(?: \S+)* -\w*c$| --wrap$"
    rf"|{_FIRST}(?:eval|ssh|trap|tmux|watch|parallel|let|unset|read|(?:declare|typeset|local) -\w*i)(?: |$)"
    rf"|{_FIRST}\[\[ (?!.*\]\])|{_FIRST}\[\[$"
)
# python -u -c <>
PYTHON_CODE = re.compile(rf"(?:^|[ /])(?:python|pypy)[\d.]*{_OPTIONS} -\w*c$")
# perl -ne <>; node --eval <>
OTHER_CODE = re.compile(rf"{_OTHER_INTERPRETER}{_OPTIONS} (?:-\w*[eErp]|--eval|--print)$")
# awk -v n=1 <>; sed <>
FILTER_CODE = re.compile(rf"{_FIRST}(?:awk|gawk|mawk|sed|jq)(?: |$)")

# A command that takes its program from its input: "bash", "python -", "sh -s 0.1"
READS_CODE = re.compile(rf"(?:{_INTERPRETER}|{_OTHER_INTERPRETER}){_OPTIONS}(?: -s?(?: .*)?)?$")
# The start of a here-document and its delimiter: <<END, <<-'END'
HERE_DOCUMENT = re.compile(r"<<(-?)[ \t]*((?:\\.|'[^']*'|\"[^\"]*\"|[^\s;|&<>()'\"\\])+)")
REDIRECTION = re.compile(r"<<-?\s*\S+|\d*[<>]+&?\s*\S+")  # <<END, 2>&1, > log
