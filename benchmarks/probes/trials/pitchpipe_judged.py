"""A trial that reports once and then waits to be killed; it sends its process id and the time of its report."""

import os
import time

import pitchpipe

pitchpipe.get_next_parameter()
pipe = os.open(os.environ["BENCHMARK_PIPE"], os.O_WRONLY)
os.write(pipe, f"{os.getpid()}\n".encode())
time.sleep(0.05)
os.write(pipe, f"{os.getpid()} {time.time()!r}\n".encode())
pitchpipe.report_intermediate_result(0.5)
time.sleep(60)
