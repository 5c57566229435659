"""Values in a command: a real shell receives exactly the value, or it is refused; nothing in it is executed."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from pitchpipe.trial_agent.placeholders import Misfit, filled, misfits

SHELLS = [shell for shell in ("/bin/bash", "/bin/dash") if shutil.which(shell)]
SHOW = r"printf '%s\0'"

# Each command, and what it prints for the value X; each value arrives or is refused, as PLACES says.
FREE = {
    f"{SHOW} {{x}}": "X",
    f"{SHOW} pre{{x}}post": "preXpost",
    f'{SHOW} "{{x}}"': "X",
    f"{SHOW} '{{x}}'": "X",
    f'{SHOW} "it\'s {{x}}, \\"{{x}}\\" and \'{{x}}\'"': "it's X, \"X\" and 'X'",
    f"{SHOW} 'say \"{{x}}\"'": 'say "X"',
    f'{SHOW} --name="{{x}}"/file': "--name=X/file",
    f'{SHOW} "C:\\{{x}}"': "C:\\X",
    f'{SHOW} "C:\\\\{{x}}"': "C:\\X",
    f"{SHOW} C:\\\\{{x}}": "C:\\X",
    f"{SHOW} 'C:\\{{x}}'": "C:\\X",
    f'V=v; {SHOW} "$V{{x}}" $V{{x}}': "vX\0vX",
    f"{SHOW} {{x}}>&1": "X",
    f"{SHOW} {{x}}{{x}} # {{x}}": "XX",
    f"{SHOW} y # it's {{x}}\n": "y",
    f"{SHOW} \"$({SHOW} '{{x}}.' | tr -d '\\0')\"": "X.",
    f"{SHOW} \"$(printf '%s.' {{x}})\"": "X.",
    f'{SHOW} "$(printf \'%s.\' "{{x}}")"': "X.",
    f'V={{x}}; {SHOW} "$V"': "X",
    f"V='{{x}}' && {SHOW} \"$V\" \\\n '{{x}}'": "X\0X",
    f'({SHOW} {{x}}; {SHOW} "{{x}}")': "X\0X",
    f"case {{x}} in '{{x}}') {SHOW} \"{{x}}\";; esac": "X",
    f"if [ {{x}} = \"{{x}}\" ]; then {SHOW} '{{x}}'; fi": "X",
    f'bash -c \'{SHOW.replace(chr(39), chr(34))} "$1"\' - "{{x}}"': "X",
    f"python3 -c 'import sys; sys.stdout.write(sys.argv[1])' {{x}} | tr -d '\\r'; {SHOW} ''": "X",
    f'f() {{ {SHOW} "$1"; }}; f {{x}}': "X",
}
CLOSED = {
    f"cat <<EOF\n[{{x}}]\nEOF\n{SHOW} ''": "[X]\n",
    f"cat <<'EOF'\n[{{x}}]\nEOF\n{SHOW} ''": "[X]\n",
    f"cat <<-EOF\n\tC:\\{{x}}\n\tEOF\n{SHOW} ''": "C:\\X\n",
    f"cat <<EOF\nEO{{x}}\nEOF\n{SHOW} ''": "EOX\n",
    f"cat <<EOF\n{{x}}\nEOF\n{SHOW} ''": "X\n",
    f"cat <<EOF\n$({SHOW} \"{{x}}\" | tr -d '\\0')\nEOF\n{SHOW} ''": "X\n",
    f"{SHOW} \"`printf '%s.' {{x}}`\"": "X.",
    f"{SHOW} \"`printf '%s.' '{{x}}'`\"": "X.",
    "bash -c \"printf '%s\\0' '{x}'\"": "X",
    'timeout 9 bash -euo pipefail -c \'printf "%s\\0" "{x}"\'': "X",
    f"A=1 eval \"{SHOW} '{{x}}'\"": "X",
    f"echo \"printf '%s.' '{{x}}'\" | sh; {SHOW} ''": "X.",
    f"bash <<EOF\nprintf '%s.' '{{x}}'\nEOF\n{SHOW} ''": "X.",
    f"python3 - <<'EOF'\nprint('{{x}}', end='')\nEOF\n{SHOW} ''": "X",
    f"python3 -c \"print('{{x}}', end='')\"; {SHOW} ''": "X",
    f"bash -c 'bash -c \"printf %s. {{x}}\"'; {SHOW} ''": "X.",
    f"awk 'BEGIN {{ printf \"%s\", \"{{x}}\" }}'; {SHOW} ''": "X",
    f"echo Y | sed 's/Y/{{x}}/'; {SHOW} ''": "X\n",
    f'{SHOW} "${{NOT_SET:-{{x}}}}"': "X",
    f"{SHOW} $'{{x}}'": "X",
    f"{SHOW} \"$(case a in a) {SHOW} {{x}};; esac | tr -d '\\0')\"": "X",
    f"trap \"{SHOW} '{{x}}'\" EXIT": "X",
}
NUMBERS = {
    f"{SHOW} $((1-{{x}}))": "",
    f"{SHOW} $[{{x}}]": "",
    "((x={x}))": "",
    "let x={x}": "",
    "[[ {x} -eq 1 ]]": "",
}

PIECES = [
    *"'\"\\$`*?~|&<()-x7=,/#!é \n\t",
    *("$(touch ran)", "`touch ran`", "; touch ran;", "\ntouch ran\n", "a[$(touch ran)]", "';touch ran;'"),
    *("EOF", "F", "EO", "\nEOF\n", "{a,b}", ">ran", "010", "resnet", "..", "C:\\new", "%s"),
    *("${HOME}", "$HOME", "$'", "\\n"),
]
VALUES = st.lists(st.sampled_from(PIECES), max_size=6).map("".join)


def outputs(shell: str, commands: list[str], place: Path) -> list[str]:
    """Return what each command prints in a shell of its own, which one shell forks."""
    script = "".join(f"(\n{command}\n)\nprintf '\\001'\n" for command in commands)
    done = subprocess.run([shell, "-c", script], cwd=place, capture_output=True, timeout=30, check=False)
    printed = done.stdout.decode(errors="replace").split("\1")
    assert len(printed) == len(commands) + 1
    return [text.removesuffix("\0") for text in printed[:-1]]


def output(shell: str, command: str, place: Path) -> str:
    return outputs(shell, [command], place)[0]


def printed(commands: dict[str, str], value: object) -> dict[str, str]:
    return {command: text.replace("X", str(value)) for command, text in commands.items()}


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
@example(value='it\'s $HOME; "touch ran" `touch ran` $(touch ran) \\')
@example(value="")
@example(value="7")
def test_every_value_arrives_exactly(shell: str, value: str, tmp_path: Path) -> None:
    found = outputs(shell, [filled(command, {"x": value}) for command in FREE], tmp_path)
    assert dict(zip(FREE, found, strict=True)) == printed(FREE, value)
    assert list(tmp_path.iterdir()) == []


def accepted(commands: dict[str, str], value: object) -> dict[str, str]:
    """Return the commands that take a value, with the value in it."""
    found = {}
    for command in commands:
        with contextlib.suppress(Misfit):
            found[command] = filled(command, {"x": value})
    return found


@pytest.mark.parametrize("shell", SHELLS)
@settings(max_examples=8, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(value=VALUES)
@example(value='it\'s $HOME; "touch ran" `touch ran` $(touch ran) \\')
@example(value="a[$(touch ran)]")
@example(value="\nEOF\ntouch ran\n")
@example(value="');import os;os.system('touch ran')#")
@example(value="F")
@example(value="a b")
def test_a_value_is_refused_rather_than_changed(shell: str, value: str, tmp_path: Path) -> None:
    closed = accepted(CLOSED, value)
    found = outputs(shell, [*closed.values(), *accepted(NUMBERS, value).values()], tmp_path)
    assert list(tmp_path.iterdir()) == []
    if shell == SHELLS[0]:
        assert dict(zip(closed, found, strict=False)).items() <= printed(CLOSED, value).items()


@pytest.mark.parametrize("value", ["resnet-50", 0.1, 7, -1e-05])
def test_plain_values_stand_anywhere(value: object, tmp_path: Path) -> None:
    found = outputs("/bin/bash", [filled(command, {"x": value}) for command in CLOSED], tmp_path)
    assert dict(zip(CLOSED, found, strict=True)) == printed(CLOSED, value)


def test_numbers_in_arithmetic(tmp_path: Path) -> None:
    assert (
        output("/bin/bash", filled(f"{SHOW} $((1-{{x}})) $((2*{{y}}))", {"x": -5, "y": 3.0}), tmp_path)
        == "6\x006"
    )


ARGUMENTS = {"model": "it's $HOME; touch ran *", "lr": 0.1, "fast": True, "off": False, "none": None}
ARGUMENTS |= {"list": [1, "a b"], "big": 1e300}


@pytest.mark.parametrize("shell", SHELLS)
def test_all_arguments_arrive_exactly(shell: str, tmp_path: Path) -> None:
    words = '--model=it\'s $HOME; touch ran *\0--lr=0.1\0--fast\0--list=[1, "a b"]\0--big=1e+300'
    nested = f"sh -c '{SHOW.replace(chr(39), chr(34))} \"$@\"' - {{args}}"
    for command in (f"{SHOW} {{args}}", f"({SHOW} {{args}})>&1", nested):
        assert output(shell, filled(command, ARGUMENTS), tmp_path) == words
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("value", ["a\0b", "\ud800"])
def test_what_no_argument_can_hold_is_refused(value: str) -> None:
    with pytest.raises(Misfit, match=r"which no argument|half of a surrogate pair"):
        filled("train {x}", {"x": value})


def test_misfits_are_found_for_all_options_before_a_trial_runs() -> None:
    options = {"model": ["plain", "a b"], "lr": [0.5]}
    found = list(misfits("eval \"train {model} '{lr}'\" && run '{model}'", options))
    assert [(one.at, "'a b'" in str(one)) for one in found] == [(12, True)]
    assert list(misfits("train {args}", options)) == []
    assert [one.at for one in misfits("sh -c 'train {args}'", options)] == [13]


def test_words_of_a_script_that_look_like_interpreters_are_arguments() -> None:
    for command in (
        "python main.py eval -c {x}",
        "bash run.sh -c '{x}'",
        "train --read {x}",
        "sed -f s.sed {x}",
    ):
        assert list(misfits(command, {"x": ["a b"]})) == []
