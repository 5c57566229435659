"""The groups of the budget table: which probes run side by side, and which rows they fill."""

from __future__ import annotations

from collections.abc import Callable

from measuring import Probe
from rows import Group, Limit, Peer, Row

__all__ = ["GROUPS"]


def rate(value: float) -> str:
    return f"{value:,.0f}/s" if value >= 100 else f"{value:.3g}/s"


def unit(text: str, factor: float = 1.0) -> Callable[[float], str]:
    return lambda value: text.format(value * factor)


seconds = unit("{:.2f} s")
milliseconds = unit("{:.3g} ms", 1e3)
microseconds = unit("{:.0f} us", 1e6)
kib = unit("{:.2f} KiB", 1 / 1024)
count = unit("{:.2g}")

NNI, OPTUNA, TUNE, JOURNAL = Peer("NNI"), Peer("Optuna"), Peer("Ray Tune"), Peer("Optuna, journal")
RESULTS = (Peer("Optuna, SQLite"), JOURNAL, TUNE)
FUNCTIONS = (*RESULTS, Peer("Optuna, SQLite by gRPC"), Peer("Rustuna, SQLite"), Peer("Rustuna, journal"))
ON_JOURNAL, ON_SQLITE, ON_GRPC = (("--storage", name) for name in ("journal", "sqlite", "grpc"))
MACHINE = "the machine"


def machine(what: str, size: int, quick: int, name: str = MACHINE) -> Probe:
    """Return the probe of what the machine does at most."""
    return Probe(name, "machine.py", size, quick, ("--what", what))


def suggestions(results: int, limit: Limit | None) -> Row:
    what = f"TPE, 10 parameters: suggestion after {results:,} results (with learning the result before it)"
    return Row(what, f"after_{results}", limit, milliseconds, peers=(Peer("Optuna TPE"),))


THROUGHPUT = [
    Group(
        "scripts",
        [
            Probe("Pitchpipe", "ours_scripts.py", 400, 4),
            Probe("Pitchpipe, warm", "ours_scripts.py", 2000, 4, ("--start", "warm")),
            Probe("NNI", "nni_scripts.py", 20, 4, needs="nni"),
            machine("scripts", 400, 4),
            machine("forks", 2000, 4, "forks of the machine"),
        ],
        [
            Row(
                "script trials, no-op `python trial.py`, cold, 2 at once",
                "trials_per_second",
                Limit(60, at_least=True),
                rate,
                peers=(NNI,),
                machine=MACHINE,
            ),
            Row(
                "script trials, started warm",
                "trials_per_second",
                Limit(150, at_least=True),
                rate,
                ours="Pitchpipe, warm",
                machine="forks of the machine",
            ),
        ],
    ),
    Group(
        "functions",
        [
            Probe("Pitchpipe, local", "ours_functions.py", 5000, 200),
            Probe("Optuna, SQLite", "optuna_functions.py", 500, 20, ON_SQLITE, "optuna"),
            Probe("Pitchpipe, Ray", "ours_functions.py", 3000, 200, ("--platform", "ray")),
            Probe("Optuna, journal", "optuna_functions.py", 500, 50, ON_JOURNAL, "optuna"),
            Probe("Ray Tune", "tune_functions.py", 500, 10, needs="ray"),
            Probe("Optuna, SQLite by gRPC", "optuna_functions.py", 500, 20, ON_GRPC, "optuna"),
            Probe("Rustuna, SQLite", "rustuna_functions.py", 300, 20, ON_SQLITE, "rustuna"),
            Probe("Rustuna, journal", "rustuna_functions.py", 1000, 50, ON_JOURNAL, "rustuna"),
            machine("functions", 20_000, 200),
        ],
        [
            Row(
                "function trials, no-op, 2 at once, every result committed, local",
                "trials_per_second",
                Limit(5000, at_least=True),
                rate,
                ours="Pitchpipe, local",
                peers=FUNCTIONS,
                machine=MACHINE,
            ),
            Row(
                "the same on Ray",
                "trials_per_second",
                Limit(2500, at_least=True),
                rate,
                ours="Pitchpipe, Ray",
                peers=FUNCTIONS,
                machine=MACHINE,
            ),
        ],
    ),
    Group(
        "results",
        [
            Probe("Pitchpipe", "ours_results.py", 100_000, 1_000),
            Probe("Optuna, SQLite", "optuna_results.py", 500, 50, ON_SQLITE, "optuna"),
            Probe("Optuna, journal", "optuna_results.py", 2000, 50, ON_JOURNAL, "optuna"),
            Probe("Ray Tune", "tune_results.py", 2000, 50, needs="ray"),
            machine("results", 200_000, 1_000),
        ],
        [
            Row(
                "intermediate results stored and assessed, 2 trials at once",
                "results_per_second",
                Limit(60_000, at_least=True),
                rate,
                peers=RESULTS,
                machine=MACHINE,
            ),
        ],
    ),
]
JUDGING = [
    Group(
        "verdicts",
        [
            Probe("Pitchpipe", "ours_verdicts.py", 60, 2),
            Probe("NNI", "nni_verdicts.py", 8, 2, needs="nni"),
            machine("verdicts", 60, 2),
        ],
        [
            Row(
                "report -> bad verdict -> process gone, p50, script trials",
                "seconds",
                Limit(0.005),
                milliseconds,
                peers=(NNI,),
                machine=MACHINE,
            )
        ],
    ),
    Group(
        "dispatcher",
        [Probe("Pitchpipe", "ours_dispatcher.py", 100_000, 500), machine("dispatcher", 5_000, 50)],
        [
            Row(
                "dispatcher: request -> new trial round trip, p50",
                "round_trip",
                Limit(40e-6),
                microseconds,
                machine=MACHINE,
            ),
            Row(
                "dispatcher: metric frames assessed", "frames_per_second", Limit(150_000, at_least=True), rate
            ),
        ],
    ),
    Group(
        "tpe",
        [
            Probe("Pitchpipe", "ours_tpe.py", 50_000, 1_000),
            Probe("Optuna TPE", "optuna_tpe.py", 50_000, 1_000, needs="optuna"),
        ],
        [
            suggestions(1_000, Limit(1e-3)),
            suggestions(10_000, Limit(5e-3)),
            suggestions(50_000, None),
        ],
    ),
]
STARTING = [
    Group(
        "start",
        [
            Probe("Pitchpipe, local", "ours_start.py", 5, 1),
            Probe("Pitchpipe, Ray", "ours_start.py", 1, 1, ("--platform", "ray")),
            Probe("NNI", "nni_start.py", 1, 1, needs="nni"),
            Probe("Ray Tune", "tune_start.py", 1, 1, needs="ray"),
            machine("start", 9, 1),
        ],
        [
            Row(
                "`pitchpipe run` to first trial running, local",
                "seconds",
                Limit(0.4),
                seconds,
                ours="Pitchpipe, local",
                peers=(NNI, TUNE),
                machine=MACHINE,
            ),
            Row(
                "`pitchpipe run` to first trial running, with a private Ray",
                "seconds",
                None,
                seconds,
                ours="Pitchpipe, Ray",
                peers=(NNI, TUNE),
            ),
            Row(
                "of that, beyond Ray's own start",
                "beyond_ray",
                Limit(0.3),
                seconds,
                ours="Pitchpipe, Ray",
                note="Ray's own start is python, `import ray` and `ray.init(address='local')`, side by side",
            ),
            Row(
                "the next `pitchpipe run`, while that Ray is kept",
                "kept",
                Limit(0.7),
                seconds,
                ours="Pitchpipe, Ray",
            ),
            Row("`pitchpipe validate`", "validate", Limit(0.3), seconds, ours="Pitchpipe, local"),
        ],
    ),
    Group(
        "imports",
        [
            Probe("Pitchpipe", "imports.py", 15, 1, ("--module", "pitchpipe", "--command", "pitchpipe")),
            Probe("NNI", "imports.py", 5, 1, ("--module", "nni", "--command", "nnictl"), "nni"),
            Probe("Optuna", "imports.py", 10, 1, ("--module", "optuna", "--command", "optuna"), "optuna"),
            Probe("Ray Tune", "imports.py", 5, 1, ("--module", "ray.tune"), "ray"),
        ],
        [
            Row(
                "`import pitchpipe` in a trial (beyond bare python)",
                "import",
                Limit(0.030),
                milliseconds,
                peers=(NNI, OPTUNA, TUNE),
            ),
            Row("`pitchpipe --help`", "help", Limit(0.150), milliseconds, peers=(NNI, OPTUNA)),
        ],
    ),
]
MEMORY = Group(
    "memory",
    [
        Probe("Pitchpipe", "ours_memory.py", 6000, 60),
        Probe("Pitchpipe, local", "ours_functions.py", 500, 50, ("--reports", "10")),
        Probe("Optuna, journal", "optuna_functions.py", 500, 20, (*ON_JOURNAL, "--reports", "10"), "optuna"),
        Probe("Ray Tune", "tune_functions.py", 500, 10, ("--reports", "10"), "ray", repetitions=2),
    ],
    [
        Row(
            "manager memory per finished trial with 10 results",
            "bytes_per_trial",
            Limit(1024),
            kib,
            peers=(JOURNAL, TUNE),
        ),
        Row(
            "files per function trial with 10 results (all files / trials)",
            "files_per_trial",
            Limit(0.1),
            count,
            ours="Pitchpipe, local",
            peers=(JOURNAL, TUNE),
        ),
    ],
)
TPE_KILLED = ("--tuner", "TPE", "--ending", "killed")
PARTS, SCRIPTS, ON_RAY = "Pitchpipe, timed inside", "Pitchpipe, scripts", ("--platform", "ray")


def processor_rows(
    what: str, roles: dict[str, str], show: Callable[[float], str], total: str = "total", **row: str
) -> list[Row]:
    """Return a row for the CPU of all processes, and one for each role."""
    parts = (Row(f"- {name}", role, None, show, **row) for role, name in roles.items())
    return [Row(f"{what}: CPU of all processes", total, None, show, **row), *parts]


PROCESSES = {"manager": "manager", "dispatcher": "dispatcher", "agents": "agents"}
RAYS = {"ray": "Ray's own processes", "supervisor": "supervisor of the private Ray"}
FORKS = {
    "children of agents": "trials",
    "others": "zygotes, which fork the trials",
    "children of others": "forks between zygotes and trials",
}
CHECKED = {"children of manager": "check of the plug-ins"}
PROFILES = [
    Group(
        "profile",
        [
            Probe("Pitchpipe", "ours_profile.py", 5000, 100),
            Probe(PARTS, "ours_profile.py", 5000, 100, ("--parts", "1")),
            Probe(SCRIPTS, "ours_profile.py", 1000, 10, ("--scripts", "1")),
        ],
        [
            *processor_rows("function trial, local", PROCESSES, microseconds),
            *(
                Row(f"- manager, {part}", part, None, microseconds, ours=PARTS)
                for part in ("receiving", "deciding", "committing", "sending")
            ),
            Row("- commits", "turns", None, count),
            Row("- waits of a thread", "waits", None, count),
            *processor_rows("script trial, warm", PROCESSES | FORKS, microseconds, ours=SCRIPTS),
        ],
    ),
    Group(
        "profile-start",
        [Probe("Pitchpipe", "ours_start_profile.py", 5, 1)],
        processor_rows("`pitchpipe run` to its first trial, local", PROCESSES | CHECKED, milliseconds),
    ),
    Group(
        "profile-ray",
        [
            Probe("Pitchpipe", "ours_profile.py", 2000, 100, ON_RAY),
            Probe("Pitchpipe, start", "ours_start_profile.py", 1, 1, ON_RAY),
        ],
        [
            *processor_rows("function trial, on Ray", PROCESSES | RAYS, microseconds),
            *processor_rows(
                "`pitchpipe run` to its first trial, with a private Ray",
                PROCESSES | CHECKED | RAYS,
                milliseconds,
                ours="Pitchpipe, start",
            ),
            *processor_rows(
                "the next one, while that Ray is kept",
                {f"kept: {role}": name for role, name in (PROCESSES | CHECKED | RAYS).items()},
                milliseconds,
                total="kept",
                ours="Pitchpipe, start",
            ),
        ],
    ),
]
RECOVERY = [
    Group(
        "resume",
        [
            Probe("Pitchpipe", "ours_resume.py", 100_000, 20, timeout=900.0, repetitions=1),
            machine("rows", 100_000, 20),
            Probe(
                "Pitchpipe, TPE, killed",
                "ours_resume.py",
                100_000,
                20,
                TPE_KILLED,
                timeout=1800.0,
                repetitions=1,
            ),
        ],
        [
            Row(
                "resume of a 100,000-trial experiment, to its next trial done",
                "seconds",
                Limit(2.0),
                seconds,
                machine=MACHINE,
            ),
            Row(
                "the same with TPE, after `kill -9` of its manager",
                "seconds",
                Limit(5.0),
                seconds,
                ours="Pitchpipe, TPE, killed",
            ),
        ],
    ),
    Group(
        "recovery",
        [Probe("Pitchpipe", "ours_recovery.py", 9, 1)],
        [
            Row(what, key, None, milliseconds if key == "trial" else seconds)
            for what, key in (
                ("after `kill -9` of a trial: its next attempt has reported", "trial"),
                ("after `kill -9` of an agent: the next attempt has reported", "agent"),
                ("after `kill -9` of the dispatcher: a trial of the new one is there", "dispatcher"),
                ("after `kill -9` of the manager: `pitchpipe resume` has committed a result", "manager"),
            )
        ],
    ),
]
GROUPS = [*THROUGHPUT, *JUDGING, *STARTING, MEMORY, *PROFILES, *RECOVERY]
