"""Scripts in which people write trials, each with what comes of it."""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import dedent
from typing import Any

from pitchpipe.runner.verdicts import LEFT_RUNNING, NO_RESULT

__all__ = ["ARGUMENTS", "HANGS", "PYTHON", "SHELL", "START_METHODS", "Kind", "X"]

X = "the value of x"
TWICE = "reported a final result 2 times; the first counts"
AFTER = "it failed after it had reported its final result"


@dataclass(frozen=True, kw_only=True)
class Kind:
    """What comes of a trial; the order of intermediate results does not matter."""

    final: Any = X
    intermediate: tuple[Any, ...] = ()
    status: str = "SUCCEEDED"
    reason: str = ""


UNFINISHED = Kind(final=None, status="FAILED", reason=NO_RESULT)
LEFT = Kind(final=None, status="FAILED", reason=LEFT_RUNNING)
START_METHODS = ("fork", "spawn", "forkserver")


def python(script: str, kind: Kind | None = None, **values: str) -> tuple[str, Kind]:
    """Return a script that knows its parameter as `x`, and `p` as Pitchpipe."""
    begin = "import os, sys, threading, time\nimport pitchpipe as p\nx = p.get_next_parameter()['x']\n"
    text = dedent(script)
    for name, value in values.items():
        text = text.replace(name, value)
    return begin + text, kind or Kind()


POOL = """
import multiprocessing
def work(number):
    p.report_intermediate_result(number)
    return x
if __name__ == "__main__":
    with multiprocessing.get_context("METHOD").Pool(2) as pool:
        p.report_final_result(max(pool.map(work, range(3))))
"""
PROCESS = """
import multiprocessing
def work():
    p.report_final_result(x)
if __name__ == "__main__":
    process = multiprocessing.get_context("METHOD").Process(target=work)
    process.start()
    process.join()
"""
DAEMON = """
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.closerange(0, 256)
        time.sleep(SECONDS)
        p.report_final_result(x)
        os.mkdir(f"{os.environ['PITCHPIPE_OUTPUT_DIR']}/done")
    os._exit(0)
"""

PYTHON = {
    **{f"pool, {one}": python(POOL, Kind(intermediate=(0, 1, 2)), METHOD=one) for one in START_METHODS},
    **{f"process, {one}": python(PROCESS, METHOD=one) for one in START_METHODS},
    "pool of joblib": python(
        """
        import joblib
        joblib.Parallel(n_jobs=2)(joblib.delayed(p.report_intermediate_result)(number) for number in range(3))
        p.report_final_result(x)
        """,
        Kind(intermediate=(0, 1, 2)),
    ),
    "executor of processes": python("""
        from concurrent.futures import ProcessPoolExecutor
        with ProcessPoolExecutor(2) as pool:
            pool.submit(p.report_final_result, x)
    """),
    "threads": python(
        """
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(3) as pool:
            list(pool.map(p.report_intermediate_result, range(5)))
        p.report_final_result(x)
        """,
        Kind(intermediate=(0, 1, 2, 3, 4)),
    ),
    "thread that outlives the script": python("""
        def late():
            threading.main_thread().join()
            p.report_final_result(x)
        threading.Thread(target=late).start()
    """),
    "future that outlives the script": python("""
        from concurrent.futures import ThreadPoolExecutor
        ThreadPoolExecutor(1).submit(lambda: (time.sleep(0.2), p.report_final_result(x)))
    """),
    "thread that ends with the script": python(
        """
        def late():
            threading.Event().wait()
            p.report_final_result(x)
        threading.Thread(target=late, daemon=True).start()
        """,
        UNFINISHED,
    ),
    "atexit": python("""
        import atexit
        atexit.register(p.report_final_result, x)
    """),
    "asyncio": python(
        """
        import asyncio
        async def work():
            await asyncio.to_thread(p.report_intermediate_result, 1)
            p.report_final_result(x)
        asyncio.run(work())
        """,
        Kind(intermediate=(1,)),
    ),
    "search inside": python("""
        def inner(parameters):
            p.report_intermediate_result(7)
            return parameters["y"]
        p.minimize(inner, {"y": p.uniform(0, 1)}, 3, tuner="Random", progress=False)
        p.report_final_result(x)
    """),
    "starts itself again": python("""
        if "AGAIN" not in os.environ:
            os.environ["AGAIN"] = "1"
            os.execv(sys.executable, [sys.executable, *sys.argv])
        p.report_final_result(x)
    """),
    "both sides of a fork": python(
        """
        child = os.fork()
        p.report_final_result(x)
        if child:
            os.wait()
        """,
        Kind(reason=TWICE),
    ),
    "child in a session of its own": python("""
        import subprocess
        script = f"import pitchpipe; pitchpipe.report_final_result({x})"
        subprocess.run([sys.executable, "-c", script], start_new_session=True, check=True)
    """),
    "daemon that the script waits for": python(
        DAEMON
        + """
while not os.path.exists(f"{os.environ['PITCHPIPE_OUTPUT_DIR']}/done"):
    time.sleep(0.01)
""",
        SECONDS="0",
    ),
    "daemon that the script leaves": python(DAEMON, LEFT, SECONDS="1"),
    "Lightning": python(
        """
        import subprocess
        if "LOCAL_RANK" not in os.environ:
            os.environ.update(WORLD_SIZE="2", NODE_RANK="0", LOCAL_RANK="0")
            other = subprocess.Popen([sys.executable, *sys.argv], env={**os.environ, "LOCAL_RANK": "1"})
        p.report_intermediate_result(int(os.environ["LOCAL_RANK"]))
        p.report_final_result(x)
        if os.environ["LOCAL_RANK"] == "0":
            other.wait()
        """,
        Kind(intermediate=(0,)),
    ),
    "reports after its final result": python(
        """
        p.report_final_result(x)
        p.report_intermediate_result(5)
        """,
        Kind(intermediate=(5,)),
    ),
    "reports in an except block": python("""
        try:
            1 / 0
        except ZeroDivisionError:
            p.report_final_result(x)
    """),
    "reports in an except block and fails": python(
        """
        try:
            1 / 0
        except ZeroDivisionError:
            p.report_final_result(x)
            raise
        """,
        Kind(status="FAILED", reason="ZeroDivisionError: division by zero"),
    ),
    "reports in a finally block and exits": python(
        """
        try:
            sys.exit(4)
        finally:
            p.report_final_result(x)
        """,
        Kind(status="FAILED", reason="exit code 4"),
    ),
    "crashes at its exit": python(
        """
        import atexit
        atexit.register(os.abort)
        p.report_final_result(x)
        """,
        Kind(reason=f"{AFTER} (killed by SIGABRT)"),
    ),
    "is killed after its final result": python(
        """
        p.report_final_result(x)
        os.kill(os.getpid(), 9)
        """,
        Kind(reason=f"{AFTER} (killed by SIGKILL)"),
    ),
}

# What such a script does after its final result.
HANGS = (
    "threading.Thread(target=threading.Event().wait).start()",
    "import multiprocessing; multiprocessing.Process(target=time.sleep, args=(600,)).start()",
    "import atexit; atexit.register(time.sleep, 600)",
    "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(600)",
)
HANGS = tuple(python(f"p.report_final_result(x)\n{hang}\n")[0] for hang in HANGS)


def shell(script: str, kind: Kind | None = None) -> tuple[str, Kind]:
    """Return a script in which $REPORT is a program in Python, and $RANK one for each of several ranks."""
    report = "import pitchpipe as p; x = p.get_next_parameter().get('x', 0); p.report_final_result(x)"
    rank = report.replace("p.report_final", "p.report_intermediate_result(1); p.report_final")
    return f'REPORT="{report}"\nRANK="{rank}"\n{dedent(script)}', kind or Kind()


def launched(variables: str, ranks: str = "0 1 2") -> tuple[str, Kind]:
    """Return a script that starts a process with such variables for each rank, as a launcher does."""
    script = f'for r in {ranks}; do {variables} python -c "$RANK" & done; wait'
    return shell(script, Kind(intermediate=(1,)))


SHELL = {
    "pipeline": shell('set -o pipefail; python -c "$REPORT" 2>&1 | tee log | cat'),
    "pipeline that hides a failure": shell('python -c "1 / 0" 2>&1 | cat', UNFINISHED),
    "here-document": shell("""
        python - one two << END
        $REPORT
        END
    """),
    "from a pipe": shell('echo "$REPORT" | python'),
    "python -m": shell("""
        mkdir pack
        echo "$REPORT" > pack/work.py
        echo "from . import work" > pack/train.py
        exec python -m pack.train
    """),
    "from another folder": shell('mkdir deep; echo "$REPORT" > deep/train.py; cd deep; python train.py'),
    "isolated": shell('python -I -c "$REPORT"'),
    "in the background": shell('python -c "$REPORT" & wait $!'),
    "in the background, left": shell('(sleep 30; python -c "$REPORT") &', LEFT),
    "subshells": shell('( ( python -c "$REPORT" ) )'),
    "timeout": shell('timeout 60 python -c "$REPORT"'),
    "nohup": shell('nohup python -c "$REPORT"'),
    "setsid": shell('setsid --wait python -c "$REPORT"'),
    "closed streams": shell('exec 0<&- 1>&- 2>&-; python -c "$REPORT"'),
    "empty environment": shell('env -i PATH="$PATH" python -c "$REPORT"', UNFINISHED),
    "fails after the result": shell(
        'python -c "$REPORT"; exit 5', Kind(status="FAILED", reason="exit code 5")
    ),
    "a child crashes after the result": shell(
        "exec 2> /dev/null; python -c \"$REPORT\"; sh -c 'kill -SEGV $$'; exit $?",
        Kind(reason=f"{AFTER} (killed by SIGSEGV)"),
    ),
    "torchrun": launched("RANK=$r LOCAL_RANK=$r WORLD_SIZE=3 LOCAL_WORLD_SIZE=3 GROUP_RANK=0"),
    "torchrun of one": launched("RANK=$r LOCAL_RANK=$r WORLD_SIZE=1", ranks="0"),
    "accelerate": launched("RANK=$r LOCAL_RANK=$r WORLD_SIZE=3 ACCELERATE_MIXED_PRECISION=no"),
    "mpirun": launched("OMPI_COMM_WORLD_RANK=$r OMPI_COMM_WORLD_SIZE=3 PMIX_RANK=$r"),
    "mpiexec of MPICH": launched("PMI_RANK=$r PMI_SIZE=3 PMI_FD=7"),
    "srun": launched("SLURM_PROCID=$r SLURM_LOCALID=$r SLURM_NTASKS=3 SLURM_JOB_ID=17 SLURM_STEP_ID=0"),
    "horovodrun": launched("HOROVOD_RANK=$r HOROVOD_SIZE=3"),
}

ARGPARSE = """
import argparse, pitchpipe
parser = argparse.ArgumentParser()
parser.add_argument("--x", type=float)
pitchpipe.report_final_result(parser.parse_args().x)
"""
CLICK = """
import click, pitchpipe
@click.command()
@click.option("--x", type=float, required=True)
def main(x):
    pitchpipe.report_final_result(x)
main()
"""
HYDRA = """
import sys, pitchpipe
(name, value) = sys.argv[1].lstrip("+").split("=")
assert name == "model.x"
pitchpipe.report_final_result(float(value))
"""
POSITION = """
import sys, pitchpipe
pitchpipe.report_final_result(float(sys.argv[1]))
"""
VARIABLE = """
import os, pitchpipe
pitchpipe.report_final_result(float(os.environ["MODEL_X"]))
"""
ARGUMENTS = {
    "python SCRIPT {args}": ARGPARSE,
    "python  SCRIPT {args}": CLICK,
    "python SCRIPT --x {x}": CLICK,
    "python SCRIPT model.x={x}": HYDRA,
    "python SCRIPT +model.x='{x}'": HYDRA,
    "python SCRIPT {x}": POSITION,
    "MODEL_X={x} python SCRIPT": VARIABLE,
}
