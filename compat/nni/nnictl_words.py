"""nnictl's command lines, translated: verbs and flags that have an equivalent are accepted.

A command line of nnictl is recognised by its words (`experiment list`, `trial ls`, `update duration`) or by a flag
that only nnictl has (`create --config FILE`); every other one is left as it is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from ...cli import Failure

#: nnictl's words -> Pitchpipe's. `{ID}` is the id, if one is given.
REPLACED: Mapping[tuple[str, ...], tuple[str, ...]] = MappingProxyType(
    {
        ("experiment", "list"): ("list",),
        ("experiment", "show"): ("status",),
        ("experiment", "status"): ("status",),
        ("experiment", "delete"): ("delete",),
        ("experiment", "export"): ("export",),
        ("experiment", "import"): ("import",),
        ("trial", "ls"): ("trials",),
        ("update", "concurrency"): ("update",),
        ("update", "trialnum"): ("update",),
        ("update", "duration"): ("update",),
        ("update", "searchspace"): ("update",),
        ("log", "trial"): ("trial", "log"),
        ("view",): ("ui",),
        ("webui", "url"): ("ui",),
    }
)

#: Commands of nnictl without an equivalent -> what to do instead.
WITHOUT_EQUIVALENT: Mapping[tuple[str, ...], str] = MappingProxyType(
    {
        ("experiment", "save"): (
            "copy its folder, which pitchpipe status names, into a folder FOLDER; or set storage_path in the config"
        ),
        ("experiment", "load"): (
            "pitchpipe resume ID --from FOLDER, with the copy FOLDER/ID; pitchpipe import FOLDER for one of NNI"
        ),
        ("config", "show"): "pitchpipe export ID --format json contains the config",
        ("log", "stdout"): "the manager's log is logs/manager.log in the folder that pitchpipe status names",
        ("log", "stderr"): "the manager's log is logs/manager.log in the folder that pitchpipe status names",
        ("algo",): "the script nnictl has it: nnictl algo register, unregister, show, list",
        ("platform", "clean"): "pitchpipe stop --all",
        ("ss_gen",): "pitchpipe init SCRIPT",
        ("tensorboard",): "tensorboard --logdir FOLDER/trials, in the folder that pitchpipe status names",
        ("hello",): "pitchpipe init SCRIPT writes a first config, and examples/ has whole experiments",
        ("jupyter-extension",): "pitchpipe ui shows experiments in a browser",
        ("package",): "nnictl algo register, or class_name and code_directory in the config",
        ("trainingservice",): "training_service in the config is local or ray: see docs/reference/config.md",
    }
)

#: Words of nnictl with a flag without an equivalent -> what to do instead.
_REFUSED_FLAGS: Mapping[tuple[str, ...], tuple[frozenset[str], str]] = MappingProxyType(
    {
        ("experiment", "delete"): (frozenset({"--all"}), "name each one: pitchpipe delete ID ID"),
        ("stop",): (frozenset({"--port", "-p"}), "experiments have no port: pitchpipe stop ID"),
    }
)

# nnictl's flag -> the option that takes its value; None: the value becomes an argument; "" drops the flag (and its
# value).
_FLAGS: Mapping[tuple[str, ...], Mapping[str, str | None]] = MappingProxyType(
    {
        ("create",): {"--config": None, "-c": None, "--url_prefix": "", "-u": "", "--port": "", "-p": ""},
        ("resume",): {"--foreground": "", "--port": "", "-p": "", "--experiment_dir": "--dir", "-e": "--dir"},
        ("view",): {"--experiment_dir": "--dir", "-e": "--dir", "-p": "--port"},
        ("stop",): {"-a": "--all"},
        ("update", "concurrency"): {"--value": "--trial-concurrency", "-v": "--trial-concurrency"},
        ("update", "trialnum"): {"--value": "--max-trial-number", "-v": "--max-trial-number"},
        ("update", "duration"): {"--value": "--max-experiment-duration", "-v": "--max-experiment-duration"},
        ("update", "searchspace"): {"--filename": "--search-space", "-f": "--search-space"},
        ("experiment", "export"): {
            "--filename": "--output",
            "-f": "--output",
            "--type": "--format",
            "-t": "--format",
        },
        ("experiment", "import"): {"--filename": "--file", "-f": "--file"},
        ("trial", "kill"): {"--trial_id": None, "-T": None},
        ("log", "trial"): {"--trial_id": None, "-T": None},
        # To nnictl the best result is the highest, whatever the direction, and the worst the lowest.
        ("trial", "ls"): {
            "--head": "--status SUCCEEDED --sort highest --limit",
            "--tail": "--status SUCCEEDED --sort lowest --limit",
        },
        ("experiment", "list"): {"--all": ""},
        ("top",): {"--time": "--every", "-t": "--every"},
    }
)
# What these do is in the value of a flag; the line shows how.
_NEEDED: Mapping[tuple[str, ...], str] = MappingProxyType(
    {
        ("update", "concurrency"): "--value 8",
        ("update", "trialnum"): "--value 200",
        ("update", "duration"): "--value 2h",
        ("update", "searchspace"): "--filename FILE",
        ("experiment", "import"): "--filename FILE",
    }
)
# These take no value.
_SWITCHES = frozenset({"--all", "-a", "--debug", "-d", "--foreground", "--intermediate", "-i"})
# Flags without effect here, whatever the verb.
_DROPPED = frozenset({"--debug", "-d", "--intermediate", "-i"})


def translated(arguments: Sequence[str]) -> list[str]:
    """Return the equivalent of one of nnictl's command lines, and any other as it is; raise `Failure` without one.

    >>> translated(["create", "--config", "experiment.yml", "--port", "8080"])
    ['create', 'experiment.yml']
    >>> translated(["update", "concurrency", "abc", "--value", "8"])
    ['update', 'abc', '--trial-concurrency', '8']
    >>> translated(["trials", "--sort", "best"])
    ['trials', '--sort', 'best']
    """
    if list(arguments) == ["-v"]:
        return ["--version"]
    words = tuple(arguments[:2])
    _refuse_what_has_no_equivalent(words, arguments)
    verb = next((known for known in (words, words[:1]) if known in REPLACED or known in _FLAGS), None)
    if verb is None:
        return list(arguments)
    rest = list(arguments[len(verb) :])
    _refuse_what_is_incomplete(verb, rest)
    if verb not in REPLACED and not any(word.partition("=")[0] in _FLAGS[verb] for word in rest):
        return list(arguments)
    if verb == ("create",) and {"-f", "--foreground"} & set(rest):
        return ["run", *_with_our_flags(verb, [word for word in rest if word not in ("-f", "--foreground")])]
    running = ["--running"] if verb == ("experiment", "list") and "--all" not in rest else []
    return [*REPLACED.get(verb, verb), *running, *_with_our_flags(verb, rest)]


def _refuse_what_has_no_equivalent(words: tuple[str, ...], arguments: Sequence[str]) -> None:
    for known, instead in WITHOUT_EQUIVALENT.items():
        if words[: len(known)] == known:
            raise Failure(f"nnictl's `{' '.join(known)}` has no equivalent: {instead}")
    names = {word.partition("=")[0] for word in arguments}
    for known, (flags, instead) in _REFUSED_FLAGS.items():
        if words[: len(known)] == known and (refused := sorted(flags & names)):
            raise Failure(f"nnictl's `{' '.join((*known, *refused))}` has no equivalent: {instead}")
    if words == ("log", "trial") and not {"--trial_id", "-T"} & names:
        instead = "pitchpipe trial log ID TRIAL prints what one trial printed; pitchpipe trials ID lists them"
        raise Failure(f"nnictl's `log trial` without --trial_id has no equivalent: {instead}")


def _refuse_what_is_incomplete(verb: tuple[str, ...], rest: Sequence[str]) -> None:
    names = {word.partition("=")[0] for word in rest}
    enough = {"--help", "-h", *_FLAGS.get(verb, {}), *filter(None, _FLAGS.get(verb, {}).values())}
    if verb in _NEEDED and not names & enough:
        name = " ".join(verb)
        raise Failure(f"nnictl's `{name}` needs a flag, as in: nnictl {name} ID {_NEEDED[verb]}")


def in_the_users_words(arguments: Sequence[str], message: str) -> str:
    """Return what is said of a command line, with its own flags in place of those that they were translated to.

    >>> in_the_users_words(["update", "concurrency", "-v", "abc"], "'--trial-concurrency' is wrong")
    "'-v' is wrong"
    """
    flags = next(
        (_FLAGS[words] for words in (tuple(arguments[:2]), tuple(arguments[:1])) if words in _FLAGS), {}
    )
    for name in (word.partition("=")[0] for word in arguments):
        if ours := flags.get(name):
            message = message.replace(ours.split()[-1], name)
    return message


def _with_our_flags(verb: tuple[str, ...], rest: Sequence[str]) -> list[str]:
    flags = _FLAGS.get(verb, {})
    ours: list[str] = []
    last: list[str] = []  # values that become arguments come after the id
    words = iter(rest)
    for word in words:
        name, equals, value = word.partition("=")
        if name not in flags:
            ours += [] if name in _DROPPED else [word]
            continue
        replaced = flags[name]
        if name in _SWITCHES:
            ours += [replaced] if replaced else []
            continue
        value = value if equals else next(words, "")
        if replaced is None:
            last.append(value)
        elif replaced:
            ours += [*replaced.split(), value]
    return ours + last
