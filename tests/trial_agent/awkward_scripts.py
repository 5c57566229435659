"""Scripts that show what a process has inherited: each must not see whether it was started cold or warm."""

SCRIPTS: dict[str, str] = {
    "wrong arguments": """
        import argparse
        argparse.ArgumentParser().parse_args()
    """,
    "names": """
        import argparse
        import json
        import sys
        print(__name__, __file__, __spec__, __package__, __cached__, __doc__, __builtins__, __loader__.path)
        print(sorted(vars(sys.modules["__main__"])), "sitecustomize" in sys.modules)
        print(sys.path, sys.flags, sys.executable)
        print(sorted(sys.modules.keys() - {*sys.builtin_module_names, "__future__"}))
        print([getattr(each, "__name__", type(each)) for each in (*sys.meta_path, *sys.path_hooks)])
        parser = argparse.ArgumentParser()
        parser.add_argument("--lr", type=float)
        parser.add_argument("rest", nargs="*")
        print(parser.parse_args(), parser.prog, sys.argv, sys.orig_argv[1:], type(sys.argv))
    """,
    "children": """
        import multiprocessing
        print("in", __name__)
        def double(x):
            return 2 * x
        if __name__ == "__main__":
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(double, range(5)), multiprocessing.current_process(), multiprocessing.parent_process())
            with multiprocessing.get_context("spawn").Pool(1) as pool:
                print(pool.map(double, range(3)))
    """,
    "threads": """
        import os
        import threading
        from concurrent.futures import ThreadPoolExecutor
        with ThreadPoolExecutor(3) as pool:
            print(list(pool.map(len, ["a", "bb", "ccc"])))
        threading.Thread(target=threading.Event().wait, daemon=True).start()
        late = threading.Thread(target=lambda: print("late", threading.main_thread().is_alive()))
        print(threading.current_thread().name, threading.get_native_id() == os.getpid(), threading.active_count())
        late.start()
    """,
    "atexit": """
        import atexit
        import weakref
        class Last:
            def __del__(self):
                print("deleted")
        last = Last()
        weakref.finalize(last, print, "finalized")
        atexit.register(print, "first")
        atexit.register(print, "second", flush=True)
    """,
    "logging and warnings": """
        import logging
        import sys
        import warnings
        logging.getLogger("a").warning("unconfigured")
        logging.basicConfig(level="INFO", format="%(levelname)s %(name)s %(module)s %(processName)s %(message)s")
        logging.getLogger("a.b").info("to stderr")
        handler = logging.FileHandler("log.txt")
        logging.getLogger().addHandler(handler)
        logging.getLogger("c").error("to both")
        print(logging.root.handlers[0].stream is sys.stderr, logging.Logger.manager.loggerDict.keys())
        def f():
            warnings.warn("once")
        f(); f()
        warnings.warn("old", DeprecationWarning)
        print([each[:3] for each in warnings.filters])
        warnings.simplefilter("error")
        f()
    """,
    "exit code": "import sys\nsys.exit(7)",
    "exit sentence": "import sys\nsys.exit('no data')",
    "exit at once": "import os\nprint('lost or not', end='')\nos._exit(3)",
    "exception": """
        import json
        import traceback
        traceback.print_stack()
        def f():
            json.loads("{")
        try:
            f()
        except ValueError as error:
            raise RuntimeError("second") from error
    """,
    "own hook": """
        import sys
        def hook(kind, error, trace):
            print(kind.__name__, error, trace.tb_lineno, trace.tb_next, sys.last_value is error)
        sys.excepthook = hook
        1 / 0
    """,
    "interrupt": "import json\nraise KeyboardInterrupt",
    "signals": """
        import os
        import signal
        print([signal.getsignal(each) for each in signal.valid_signals() if each != signal.SIGINT])
        print(signal.getsignal(signal.SIGINT) is signal.default_int_handler)
        print(signal.pthread_sigmask(signal.SIG_BLOCK, []), signal.getitimer(signal.ITIMER_REAL))
        signal.signal(signal.SIGUSR1, lambda number, frame: print("handled", number))
        os.kill(os.getpid(), signal.SIGUSR1)
        os.kill(os.getpid(), signal.SIGALRM)
    """,
    "modules beside and pickle": """
        import dataclasses
        import json
        import pickle
        import random
        import tempfile
        from helper import VALUE
        import package.inner
        print(VALUE, package.inner.NAME, json.dumps(package.inner.HERE))
        @dataclasses.dataclass
        class Point:
            x: int
        def f(x): ...
        print(pickle.loads(pickle.dumps(Point(3))), pickle.dumps(f), Point.__module__)
        random.seed(4)
        print(random.random(), random.Random(3).random())
        print(tempfile.gettempdir())
    """,
    "another program": """
        import os
        import sys
        print("before", flush=True)
        code = "import sys, os; print('after', sys.argv, sorted(os.environ))"
        os.execv(sys.executable, [sys.executable, "-c", code, "x"])
    """,
    "subprocesses": """
        import os
        import subprocess
        import sys
        code = "import os, sys; print(sys.path, os.environ.get('PYTHONPATH'), sorted(os.listdir('/proc/self/fd')))"
        print(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout)
        print(subprocess.run("echo $0 $PITCHPIPE_REPORTS; exit 3", shell=True).returncode)
        try:
            os.wait()
        except ChildProcessError as error:
            print(error)
    """,
    "what is open": """
        import os
        import resource
        import sys
        print(sorted(int(each) for each in os.listdir("/proc/self/fd")), os.umask(0o77), os.getcwd(), os.nice(0))
        print(os.getpgid(0) == os.getsid(0) == os.getpid(), os.sched_getaffinity(0))
        print([resource.getrlimit(getattr(resource, each)) for each in dir(resource) if "RLIMIT" in each])
        open("private", "w").close()
        print(oct(os.stat("private").st_mode))
        print(repr(sys.stdin.read()), sys.stdin, sys.stdout, sys.stderr, sys.stdout.line_buffering)
        print(input())
    """,
    "buffered in another directory": """
        import os
        import sys
        os.mkdir("deeper")
        os.chdir("deeper")
        open("made", "w").write("here")
        print(__file__)
        sys.stdout.write("no newline")
        sys.stderr.write("neither")
        file = open("unclosed", "w")
        file.write("flushed at the end")
        sys.modules["json"] = file
    """,
    "environment": """
        import json
        import os
        print(json.dumps(dict(os.environ), indent=0))
        print(sorted(filter(None, open("/proc/self/environ").read().split("\\0"))))
        os.system("env | grep -v '^_=' | sort")
        os.environ["LATE"] = "1"
        import late
    """,
    "set at import": """
        import os
        os.environ["BEFORE_IMPORT"] = "1"
        import statistics
        import helper
        print(helper.BEFORE)
    """,
    "numpy and joblib": """
        import os
        import numpy as np
        import numpy.random
        from joblib import Parallel, delayed
        np.random.seed(0)
        print(np.random.rand(2), np.random.default_rng(1).normal(), np.dot(np.ones((300, 300)), np.ones(300)).sum())
        np.save("array.npy", np.arange(3))
        print(Parallel(n_jobs=2, prefer="threads")(delayed(abs)(x) for x in range(-3, 3)))
        print(sorted(name for name in os.environ if name.startswith(("KMP", "JOBLIB", "OMP"))))
    """,
}

BESIDE = {
    "helper.py": "import os\nVALUE = 42\nBEFORE = os.environ.get('BEFORE_IMPORT')\n",
    "late.py": "import os\nprint('late', os.environ['LATE'])\n",
    "package/__init__.py": "",
    "package/inner.py": "import os\nfrom . import other\nNAME = __name__ + other.NAME\nHERE = os.getcwd()\n",
    "package/other.py": "from decimal import Decimal\nNAME = __package__\n",
}
