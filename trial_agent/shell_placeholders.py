"""Where in a shell command its placeholders stand.

One pass over the command follows the shell's own reading: quotes, `$( )`, here-documents, comments. A placeholder in a
place that is read once more (backticks, `$(( ))`, `${ }`, the code of `bash -c` or `python -c`) is restricted to texts
without special characters.
"""

from __future__ import annotations

import re
from collections.abc import Container
from itertools import takewhile

from .shell_patterns import (
    BARE,
    FILTER_CODE,
    HERE_DOCUMENT,
    NEVER,
    NUMBER,
    OTHER_CODE,
    PLACEHOLDER,
    PLAIN,
    PYTHON_CODE,
    READS_CODE,
    REDIRECTION,
    SHELL_CODE,
)

ALL = "args"  # the placeholder of all parameters

ONE_WORD = "is in quotes, which make one word of all arguments"
_AS_ARGUMENT = 'pass it after the code, which reads it as "$1" in a shell, sys.argv[1] in Python'
_AS_VARIABLE = "assign it to a variable of the shell in a line before: v={%s}"


class Placeholder:
    """A placeholder in a command, and what the shell would do with a text in its place.

    `place` is "word", "double", "single", "ansi" (`$' '`), "here" or "raw" (a here-document with expansions, and one
    without). `only` accepts the texts that may stand here if not all may; `why` and `hint` say it to the user.
    """

    def __init__(self, name: str, start: int, end: int, place: str) -> None:
        self.name, self.start, self.end, self.place = name, start, end, place
        self.is_all = False
        self.only: re.Pattern[str] | None = None
        self.why = self.hint = ""
        self.before = self.after = ""
        self.delimiter: str | None = None  # of the here-document, if a value could complete a line to it
        self.is_here = self.strips_tabs = False

    def restrict(self, only: re.Pattern[str], why: str, hint: str) -> None:
        """Accept only some texts from now on; the first reason counts."""
        if self.only is None:
            self.only, self.why, self.hint = only, why, hint


def placeholders_of(command: str, names: Container[str]) -> list[Placeholder]:
    """Return the placeholders of a command in their order; those in comments and `${NAME}` are none.

    >>> [(found.name, found.place) for found in placeholders_of("./train {lr} '{k}' # {k}", ["lr", "k"])]
    [('lr', 'word'), ('k', 'single')]
    """
    scan = _Scan(command, names)
    scan.read(0, len(command))
    scan.end()
    return scan.placeholders


class _Frame:
    """A construct that is open: a command, or quotes, an expansion or a here-document inside of one.

    `kind` is "command", "double" (quotes), "parameter" (`${ }`), "arithmetic" or "here". A frame ends when the
    character `closes` has come `depth` times; each `(` inside adds one. The other fields are those of a command.
    """

    def __init__(self, kind: str, closes: str = "", depth: int = 1) -> None:
        self.kind, self.closes, self.depth = kind, closes, depth
        self.words: list[str] = []  # those that are complete
        self.text: str | None = None  # of the current word; None between two words
        self.placeholders: list[Placeholder] = []  # of the current word
        self.own: list[Placeholder] = []  # of the complete words
        self.piped: list[Placeholder] = []  # of the commands in front, whose output this one reads
        self.has_case = False  # whether a word was `case`, whose patterns end with a `)` of their own


class _Scan:
    """One reading of a command, character by character, with a stack of what is open."""

    def __init__(self, command: str, names: Container[str]) -> None:
        self.command = command
        self.names = names
        self.placeholders: list[Placeholder] = []
        self.stack = [_Frame("command")]
        # Here-documents: delimiter, is raw, strips tabs, place.
        self.pending: list[tuple[str, bool, bool, int]] = []
        # A `)` may have ended a pattern of `case` and not the `$(`: what follows may be in either command.
        self.is_lost = False
        self.limit = len(command)

    def read(self, start: int, end: int) -> None:
        """Read a part of the command."""
        before, self.limit = self.limit, end
        at = start
        while at < end:
            at = self._step(at)
        self.limit = before

    def end(self) -> None:
        """Complete what is open at the end."""
        for frame in self.stack:
            self._end_command(frame)

    def _step(self, at: int) -> int:
        kind = self.stack[-1].kind
        end = self._expansion(at)
        if end is not None:
            return end
        if kind == "command":
            return self._in_command(at)
        return self._inside(at)

    @property
    def _words(self) -> _Frame:
        """The innermost command."""
        return next(frame for frame in reversed(self.stack) if frame.kind in ("command", "here"))

    def _say(self, text: str) -> None:
        frame = self._words
        frame.text = (frame.text or "") + text

    def _expansion(self, at: int) -> int | None:
        """Read what every place but single quotes has: a backslash, an expansion, a placeholder."""
        text, frame = self.command, self.stack[-1]
        if text[at] == "\\":
            return self._backslash(at)
        if placeholder := self._placeholder(at, frame.kind if frame.kind in ("double", "here") else "word"):
            return placeholder.end
        if text[at] == "`":
            return self._backtick(at)
        if text[at] != "$":
            return None
        for opening, kind, closes, depth in _OPENINGS:
            if text.startswith(opening, at):
                self._say("$()")
                self.stack.append(_Frame(kind, closes, depth))
                return at + len(opening)
        if text.startswith("$'", at) and frame.kind == "command":
            return self._until_quote(at + 2, "ansi")
        self._say("$")
        return at + (2 if text.startswith("$$", at) else 1)

    def _backslash(self, at: int) -> int:
        kind = self.stack[-1].kind
        if kind in ("double", "here") and self._match(at + 1):
            self._say("\\")
            return at + 1  # it is literal in front of a brace
        if placeholder := self._placeholder(at + 1, "word"):
            hint = f"write \\\\{{{placeholder.name}}} for a backslash and the value"
            placeholder.restrict(NEVER, "follows a backslash", hint)
            return placeholder.end
        if self.command[at + 1 : at + 2] != "\n":
            self._say(self.command[at + 1 : at + 2])
        return at + 2

    def _backtick(self, at: int) -> int:
        depth = next((i for i, frame in enumerate(self.stack) if frame.closes == "`"), None)
        if depth is None:
            self._say("$()")
            self.stack.append(_Frame("command", "`"))
        else:
            for frame in self.stack[depth:]:
                self._end_command(frame)
            del self.stack[depth:]
        return at + 1

    def _inside(self, at: int) -> int:
        """Read a character between double quotes, in `${ }`, in `$(( ))` or in a here-document."""
        char, frame = self.command[at], self.stack[-1]
        if char == '"' and frame.kind not in ("double", "here"):
            self.stack.append(_Frame("double", '"'))
        elif char == "'" and not self._is_quoted():
            return self._until_quote(at + 1, "single")
        elif char == "(" and frame.closes == ")":
            frame.depth += 1
        elif char == frame.closes:
            frame.depth -= 1
            if frame.depth == 0:
                self.stack.pop()
            return at + 1
        self._say(char if frame.kind in ("double", "here") else "")
        return at + 1

    def _is_quoted(self) -> bool:
        """Return whether double quotes or a here-document make single quotes literal."""
        kinds = (frame.kind for frame in reversed(self.stack))
        return next(kind for kind in kinds if kind in ("command", "double", "here")) != "command"

    def _in_command(self, at: int) -> int:
        """Read a character of a command that is not quoted."""
        char, frame = self.command[at], self.stack[-1]
        if char == "'":
            return self._until_quote(at + 1, "single")
        if char == '"':
            self._say("")
            self.stack.append(_Frame("double", '"'))
        elif char == "#" and frame.text is None:
            end = self.command.find("\n", at, self.limit)
            return self.limit if end < 0 else end
        elif char == "\n":
            self._end_command(frame)
            return self._here_documents(at + 1)
        elif char in " \t":
            self._end_word(frame)
        elif char in "<>":
            return self._redirection(at)
        elif char in ";|&":
            return self._operator(at)
        elif char in "()":
            return self._parenthesis(at)
        else:
            self._say(char)
        return at + 1

    def _until_quote(self, at: int, place: str) -> int:
        """Read until the closing single quote."""
        self._say("")
        while at < self.limit:
            if self.command[at] == "'":
                return at + 1
            if placeholder := self._placeholder(at, place):
                at = placeholder.end
            elif place == "ansi" and self.command[at] == "\\" and not self._match(at + 1):
                at += 2
            else:
                self._say(self.command[at])
                at += 1
        return at

    def _operator(self, at: int) -> int:
        frame, text = self.stack[-1], self.command
        if text[at] == "&" and (text[at - 1 : at] in ("<", ">") or text[at + 1 : at + 2] == ">"):
            return at + 1  # a redirection
        is_pipe = text[at] == "|" and text[at + 1 : at + 2] != "|" and text[at - 1 : at] != "|"
        self._end_word(frame)
        if "[[" in frame.words and "]]" not in frame.words:
            return at + 1
        self._end_command(frame, is_pipe=is_pipe)
        return at + 1

    def _parenthesis(self, at: int) -> int:
        frame = self.stack[-1]
        if self.command[at] == "(":
            if self.command.startswith("((", at) and frame.text is None and frame.words in ([], ["for"]):
                self.stack.append(_Frame("arithmetic", ")", 2))
                return at + 2
            self._say("()")
            self.stack.append(_Frame("command", ")"))
        elif frame.closes == ")":
            self._end_command(frame)
            self.is_lost |= frame.has_case
            self.stack.pop()
        else:
            self._end_command(frame)
        return at + 1

    def _redirection(self, at: int) -> int:
        frame, text = self.stack[-1], self.command
        if text.startswith(("<(", ">("), at):
            self._say("()")
            self.stack.append(_Frame("command", ")"))
            return at + 2
        self._end_word(frame)
        if text.startswith("<<<", at):
            frame.words.append("<<<")
            return at + 3
        if opening := HERE_DOCUMENT.match(text, at):
            delimiter = re.sub(r"['\"\\]", "", opening[2])
            self.pending.append((delimiter, delimiter != opening[2], bool(opening[1]), at))
            self._refuse_in_delimiter(opening.start(2), opening.end())
            return opening.end()
        return at + 1

    def _refuse_in_delimiter(self, start: int, end: int) -> None:
        for at in range(start, end):
            if placeholder := self._placeholder(at, "word"):
                placeholder.restrict(NEVER, "is in the end mark of a here-document", "write another word")

    def _here_documents(self, at: int) -> int:
        """Read the bodies that begin behind the line that is complete."""
        pending, self.pending = self.pending, []
        for delimiter, is_raw, strips, place in pending:
            indent = "\t*" if strips else ""
            end_mark = re.compile(rf"^{indent}{re.escape(delimiter)}$", re.MULTILINE)
            last = end_mark.search(self.command, at, self.limit)
            end = self.limit if last is None else last.start()
            self._body(at, end, is_raw, (delimiter, strips, self._is_read_as_code(place)))
            at = end if last is None else min(last.end() + 1, self.limit)
        return at

    def _body(self, start: int, end: int, is_raw: bool, how: tuple[str, bool, bool]) -> None:
        delimiter, strips, is_code = how
        first = len(self.placeholders)
        if is_raw:
            for at in range(start, end):
                self._placeholder(at, "raw")
        else:
            depth = len(self.stack)
            self.stack.append(_Frame("here"))
            self.read(start, end)
            del self.stack[depth:]
        for placeholder in self.placeholders[first:]:
            placeholder.is_here, placeholder.strips_tabs = True, strips
            placeholder.delimiter = delimiter if self._could_end(placeholder, delimiter, strips) else None
            if is_code:
                placeholder.restrict(
                    BARE, "is in code that a here-document passes to a program", _AS_ARGUMENT
                )

    def _could_end(self, placeholder: Placeholder, delimiter: str, strips: bool) -> bool:
        """Return whether a value could make the placeholder's line the last one of its here-document."""
        start = self.command.rfind("\n", 0, placeholder.start) + 1
        end = self.command.find("\n", placeholder.end)
        line = self.command[start : end if end >= 0 else None]
        parts = PLACEHOLDER.split(line.lstrip("\t") if strips else line)[::2]
        return re.fullmatch(".*".join(map(re.escape, parts)), delimiter) is not None

    def _is_read_as_code(self, at: int) -> bool:
        """Return whether a here-document is the input of an interpreter without a script, directly or by a pipe."""
        start, end = self.command.rfind("\n", 0, at) + 1, self.command.find("\n", at)
        line = REDIRECTION.sub(" ", self.command[start:end])
        return any(READS_CODE.search(" ".join(part.split())) for part in re.split(r"[|;&()]+", line))

    def _match(self, at: int) -> re.Match[str] | None:
        braces = PLACEHOLDER.match(self.command, at, self.limit)
        return braces if braces is not None and (braces[1] in self.names or braces[1] == ALL) else None

    def _placeholder(self, at: int, place: str) -> Placeholder | None:
        """Return the placeholder that begins here, noted with its place, if there is one."""
        braces = self._match(at)
        if braces is None:
            return None
        placeholder = Placeholder(braces[1], at, braces.end(), place)
        placeholder.is_all = braces[1] not in self.names
        placeholder.before, placeholder.after = self.command[:at], self.command[braces.end() :]
        self._restrict_by_frames(placeholder)
        self.placeholders.append(placeholder)
        if place != "raw":
            self._say(braces[0])
            for frame in takewhile(lambda inner: inner.kind != "here", reversed(self.stack)):
                frame.placeholders.append(placeholder)
        return placeholder

    def _restrict_by_frames(self, placeholder: Placeholder) -> None:
        by_variable = _AS_VARIABLE % placeholder.name
        if self.is_lost:
            placeholder.restrict(PLAIN, "follows a `case` inside $( )", by_variable)
        for frame in reversed(self.stack):
            if frame.kind == "arithmetic":
                why = "is in an arithmetic expression, where only numbers are read"
                placeholder.restrict(NUMBER, why, by_variable)
            elif frame.kind == "parameter":
                placeholder.restrict(PLAIN, "is inside ${ }", by_variable)
            elif frame.kind in ("command", "here"):
                break
        if any(frame.closes == "`" for frame in self.stack):
            placeholder.restrict(PLAIN, "is inside backticks", "write $( ) in place of the backticks")

    def _end_word(self, frame: _Frame) -> None:
        if frame.text is None:
            return
        for placeholder in frame.placeholders:
            self._judge(placeholder, frame)
        frame.has_case |= frame.text == "case"
        frame.words.append(frame.text)
        frame.own += frame.placeholders
        frame.text, frame.placeholders = None, []

    def _end_command(self, frame: _Frame, *, is_pipe: bool = False) -> None:
        self._end_word(frame)
        if frame.piped and READS_CODE.fullmatch(" ".join(frame.words)):
            for placeholder in frame.piped:
                placeholder.restrict(PLAIN, "is piped into an interpreter as code", _AS_ARGUMENT)
        frame.piped = [*frame.piped, *frame.own] if is_pipe else []
        frame.words, frame.own = [], []

    def _judge(self, placeholder: Placeholder, frame: _Frame) -> None:
        """Restrict a placeholder in a word that is read as code."""
        before, word = " ".join(frame.words), frame.text or ""
        written = f"{{{placeholder.name}}}"
        is_alone, is_of_all = word == written, placeholder.is_all and written in word
        if (
            PYTHON_CODE.search(before)
            or OTHER_CODE.search(before)
            or (FILTER_CODE.search(before) and not is_alone)
        ):
            placeholder.restrict(BARE, "is in code", _AS_ARGUMENT)
        elif (
            SHELL_CODE.search(before)
            or word.startswith("--wrap=")
            or re.match(r"\w+\[", word)
            or (before.endswith(" <<<") and READS_CODE.search(before.removesuffix(" <<<")))
        ):
            placeholder.restrict(PLAIN, "is in code that a shell reads once more", _AS_ARGUMENT)
        elif is_of_all and placeholder.place == "word" and not is_alone:
            placeholder.restrict(NEVER, "is a part of a word", f"write {{{ALL}}} as a word of its own")
        elif is_of_all and is_alone and placeholder.place != "word":
            placeholder.restrict(NEVER, ONE_WORD, f"write {{{ALL}}} without them")


_OPENINGS = (
    ("$((", "arithmetic", ")", 2),
    ("$(", "command", ")", 1),
    ("${", "parameter", "}", 1),
    ("$[", "arithmetic", "]", 1),
)
