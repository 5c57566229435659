"""How an attempt ended, and why."""

from __future__ import annotations

from typing import Any

import pytest

from pitchpipe.protocol import LED_TO
from pitchpipe.runner import events as happened
from pitchpipe.runner.effects import StartTrial
from pitchpipe.runner.experiment_state import Retries
from pitchpipe.runner.trial import FailureKind, TrialStatus
from pitchpipe.runner.verdicts import LEFT_RUNNING, NO_RESULT

from .driver import of_type, running_trial

UNWRITTEN = "pitchpipe.sdk.errors.MachineError: [Errno 5] Input/output error: '/exp/reports-1.jsonl'"
FULL = "OSError: [Errno 28] No space left on device: 'model.bin'"
CAUSED = "\n\nDuring handling of the above exception, another exception occurred:\n\nTr\nRuntimeError: no"
UNREAD = "OSError: [Errno 5] Input/output error: 'images.tar'"
OVER_LIMIT = "used 500 MiB, more than the limit of 400 MiB"


# An exception whose message has several lines.
LONG = """Traceback (most recent call last):
  File "train.py", line 5, in <module>
ValueError: X has NaN.
Use another model.

See: docs"""
LONG_LINE = "ValueError: X has NaN. Use another model. See: docs"


@pytest.mark.parametrize(
    ("how", "kind", "reason"),
    [
        ({"exit_code": 3}, FailureKind.USER_ERROR, "exit code 3"),
        ({"exit_code": 2, "error": "t\nno such file\n"}, FailureKind.USER_ERROR, "exit code 2: no such file"),
        ({"exit_code": 2, "error": "error: too big\n"}, FailureKind.USER_ERROR, "exit code 2: error: too big"),
        ({"exit_code": 1, "error": "Traceback (most recent call last)\na.R: x\n"}, FailureKind.USER_ERROR, "a.R: x"),
        ({"exit_code": 1, "error": "a.NoSuchRow: x\n"}, FailureKind.USER_ERROR, "exit code 1: a.NoSuchRow: x"),
        ({"exit_code": 127, "error": "command not found: t"}, FailureKind.USER_ERROR, "command not found: t"),
        ({"exit_code": 1, "error": "Tr\nKeyError: 'l'\n"}, FailureKind.USER_ERROR, "KeyError: 'l'"),
        ({"exit_code": 1, "error": f"Tr\n{FULL}{CAUSED}"}, FailureKind.INFRA, "RuntimeError: no"),
        ({"exit_code": 1, "error": f"Tr\n{UNWRITTEN}{CAUSED}"}, FailureKind.INFRA, "RuntimeError: no"),
        ({"exit_code": 1, "error": f"Tr\n{UNREAD}{CAUSED}"}, FailureKind.USER_ERROR, "RuntimeError: no"),
        ({"exit_code": 1, "error": "a: Disk quota exceeded\nb: failed"}, FailureKind.INFRA, "exit code 1: b: failed"),
        ({"exit_code": 1, "error": f"{FULL}\n1\n2\n3"}, FailureKind.USER_ERROR, "exit code 1: 3"),
        ({"exit_code": None, "signal": 9}, FailureKind.KILLED, "killed by SIGKILL"),
        ({"exit_code": 139}, FailureKind.KILLED, "killed by SIGSEGV"),
        ({"exit_code": None, "signal": 9, "out_of_memory": True}, FailureKind.OOM, "killed by SIGKILL"),
        ({"exit_code": 1, "error": "Tr\nMemoryError"}, FailureKind.OOM, "MemoryError"),
        ({"signal": 15, "out_of_memory": True, "error": OVER_LIMIT}, FailureKind.OOM, OVER_LIMIT),
        ({"exit_code": 1, "error": "Tr\ntorch.OutOfMemoryError: no"}, FailureKind.OOM, "torch.OutOfMemoryError: no"),
        ({"exit_code": 1, "error": "Error: CUDA out of memory."}, FailureKind.OOM, "Error: CUDA out of memory."),
        ({"exit_code": 1, "error": "Tr\nModuleNotFoundError: No m"}, FailureKind.IMPORT, "ModuleNotFoundError: No m"),
        ({"exit_code": 1, "error": "ImportError: x"}, FailureKind.IMPORT, "ImportError: x"),
        ({"exit_code": None, "lost": True, "error": "gone"}, FailureKind.INFRA, "gone"),
        ({"exit_code": None, "error": "cannot start", "infra": True}, FailureKind.INFRA, "cannot start"),
        ({"exit_code": 1, "error": "Tr\nMemoryError", "infra": True}, FailureKind.INFRA, "MemoryError"),
        ({"exit_code": 1, "error": f"Tr\n{UNWRITTEN}"}, FailureKind.INFRA, UNWRITTEN),
        ({"exit_code": 1, "error": f"Tr\n{UNREAD}"}, FailureKind.USER_ERROR, UNREAD),
        ({"exit_code": 1, "error": LONG}, FailureKind.USER_ERROR, LONG_LINE),
        ({"exit_code": 1, "error": LONG + 400 * "x"}, FailureKind.USER_ERROR, f"{LONG_LINE:x<297}..."),
        ({}, FailureKind.USER_ERROR, NO_RESULT),
        ({"left_running": True}, FailureKind.USER_ERROR, LEFT_RUNNING),
    ],
)  # fmt: skip
def test_attempt_without_a_result_fails_with_a_readable_reason(
    how: dict[str, Any], kind: FailureKind, reason: str
) -> None:
    driver, trial = running_trial(retries=Retries(0))
    driver.end(trial, **how)
    assert (trial.status, trial.kind, trial.reason) == (TrialStatus.FAILED, kind, reason)


# What libraries say when the memory of a device or of the machine is used up, and the line that is shown.
_TRACE = 'Traceback (most recent call last):\n  File "train.py", line 9, in <module>\n    step(batch)\n'
_ASYNC = "\nCUDA kernel errors might be reported at some other API call.\nCompile with `TORCH_USE_CUDA_DSA`."
_GRAPH = """ Graph execution error:

Detected at node 'dense/MatMul' defined at (most recent call last):
File "train.py", line 20, in <module>
OOM when allocating tensor with shape[65536,65536] and type float on /device:GPU:0 by allocator GPU_0_bfc
\t [[{{node dense/MatMul}}]]
Hint: If you want to see a list of allocated tensors when OOM happens, add report_tensor_allocations_upon_oom.
 [Op:__inference_train_function_1234]"""
_XLA = "\nBufferAssignment OOM Debugging.\n\n--------------------\nFor simplicity, JAX has removed its internal frames."
OUT_OF_MEMORY = {
    "torch": (
        "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 20.00 GiB. GPU 0 has 1 GiB free",
        "",
    ),
    "torch 1": ("RuntimeError: CUDA out of memory. Tried to allocate 20.00 GiB (GPU 0; 79.15 GiB total)", ""),
    "torch, later": ("RuntimeError: CUDA error: out of memory", _ASYNC),
    "torch, cuBLAS": (
        "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        "",
    ),
    "torch, HIP": ("torch.OutOfMemoryError: HIP out of memory. Tried to allocate 20.00 GiB", ""),
    "torch, Mac": ("RuntimeError: MPS backend out of memory (MPS allocated: 9.01 GB)", ""),
    "torch, CPU": (
        "RuntimeError: [enforce fail at alloc_cpu.cpp:114] DefaultCPUAllocator: can't allocate memory",
        "",
    ),
    "TensorFlow": ("tensorflow.python.framework.errors_impl.ResourceExhaustedError:", _GRAPH),
    "TensorFlow, eager": (
        "ResourceExhaustedError: {{function_node Mul}} OOM when allocating tensor [Op:Mul]",
        "",
    ),
    "JAX": (
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate",
        _XLA,
    ),
    "JAX, TPU": ("jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Attempting to allocate 4.00G", _XLA),
    "cupy": ("cupy.cuda.memory.OutOfMemoryError: Out of memory allocating 8,000,000,000 bytes", ""),
    "numba": (
        "numba.cuda.cudadrv.driver.CudaAPIError: [2] Call to cuMemAlloc results in CUDA_ERROR_OUT_OF_MEMORY",
        "",
    ),
    "RAPIDS": ("MemoryError: std::bad_alloc: out_of_memory: CUDA error at: device_memory_resource.hpp", ""),
    "XGBoost": (
        "xgboost.core.XGBoostError: [10:00:00] Memory allocation error: cudaErrorMemoryAllocation",
        "",
    ),
    "numpy": ("numpy._core._exceptions._ArrayMemoryError: Unable to allocate 74.5 GiB for an array", ""),
    "fork": ("OSError: [Errno 12] Cannot allocate memory", ""),
    "a rank": ("torch.OutOfMemoryError: CUDA out of memory.", "\n\nrank 1 of 4 failed with exit code 1"),
    "a cause": ("MemoryError", f"\n\n{LED_TO[0]}\n\n{_TRACE}RuntimeError: the step has failed"),
}


@pytest.mark.parametrize("library", OUT_OF_MEMORY)
def test_trial_that_has_used_up_a_memory_is_run_again_as_often_as_allowed(library: str) -> None:
    says, more = OUT_OF_MEMORY[library]
    driver, trial = running_trial(trial_concurrency=1, retries=Retries(by_kind={FailureKind.OOM: 1}))
    driver.end(trial, exit_code=1, error=f"{_TRACE}{says}{more}")
    assert (trial.status, trial.attempt) == (TrialStatus.WAITING, 2)
    driver.end(trial, exit_code=1, error=f"{_TRACE}{says}{more}")
    assert (trial.status, trial.kind) == (TrialStatus.FAILED, FailureKind.OOM)
    assert trial.reason.startswith(says)


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ({"exit_code": 134, "error": "terminate called\n  what():  std::bad_alloc\n"}, FailureKind.OOM),
        (
            {"exit_code": 1, "error": f"{_TRACE}MemoryError\nnow on the CPU\nValueError: x"},
            FailureKind.USER_ERROR,
        ),
        ({"exit_code": 1, "error": "CUDA out of memory, halved\n1\n2\n3"}, FailureKind.USER_ERROR),
        (
            {"exit_code": 1, "error": "grpc.RpcError: code = StatusCode.RESOURCE_EXHAUSTED"},
            FailureKind.USER_ERROR,
        ),
        (
            {"exit_code": 1, "error": "ImportError: x\n\nrank 2 of 4 failed with exit code 1"},
            FailureKind.IMPORT,
        ),
    ],
)
def test_what_a_trial_says_at_its_end_counts(how: dict[str, Any], kind: FailureKind) -> None:
    driver, trial = running_trial(retries=Retries(0))
    driver.end(trial, **how)
    assert trial.kind is kind


def test_trial_that_finishes_after_a_kill_verdict_has_succeeded() -> None:
    driver, trial = running_trial()
    driver.handle(happened.KillVerdict(driver.now, trial.trial_id, "below the median"))
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=None, signal=15)
    assert trial.status is TrialStatus.SUCCEEDED
    assert trial.reason == "it had finished when it was to be stopped (below the median)"
    assert driver.runner.best.front == [trial]


@pytest.mark.parametrize(
    ("how", "what"),
    [({"lost": True}, "was lost"), ({"error": "the agent failed: no descriptors", "infra": True}, "failed")],
)
def test_agent_lost_after_the_final_result_leaves_a_success(how: dict[str, Any], what: str) -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=None, **how)
    reason = f"its agent {what} after it had reported its final result"
    assert (trial.status, trial.reason) == (TrialStatus.SUCCEEDED, reason)


def test_final_result_that_comes_after_the_machine_refused_a_checkpoint_counts() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.handle(happened.BadReport(driver.now, trial.trial_id, trial.attempt, FULL, infra=True))
    driver.report(trial, 0.5, "final")
    driver.end(trial)
    assert trial.status is TrialStatus.SUCCEEDED
    assert trial.reason == f"it had reported its final result ({FULL})"
    assert driver.runner.best.front == [trial]


@pytest.mark.parametrize("error", [UNWRITTEN, f"cannot save the model\n{FULL}"])
def test_script_that_the_machine_refuses_something_after_its_final_result_has_succeeded(error: str) -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=1, error=error)
    assert trial.status is TrialStatus.SUCCEEDED
    assert trial.reason.startswith("it failed after it had reported its final result (")


SEGV, TERM = {"exit_code": None, "signal": 11}, {"exit_code": None, "signal": 15}
AFTER = "it failed after it had reported its final result"


@pytest.mark.parametrize(
    ("verdict", "how", "reason"),
    [
        ("timeout", TERM, "it had reported its final result (ran longer than max_trial_duration (5 s))"),
        ("timeout", {}, "it had reported its final result (ran longer than max_trial_duration (5 s))"),
        ("timeout", {"exit_code": None, "lost": True}, "it had reported its final result (ran longer"),
        ("stop", TERM, "it had reported its final result (the experiment was stopped)"),
        ("stop", {"exit_code": 1}, "it had reported its final result (the experiment was stopped)"),
        (None, SEGV, f"{AFTER} (killed by SIGSEGV)"),
        (None, {"exit_code": 139}, f"{AFTER} (killed by SIGSEGV)"),
        (None, {"exit_code": None, "signal": 9, "out_of_memory": True}, f"{AFTER} (killed by SIGKILL)"),
        (None, {**TERM, "out_of_memory": True, "error": OVER_LIMIT}, f"{AFTER} ({OVER_LIMIT})"),
        (None, {**TERM, "killed": True}, "its agent was shut down after its final result"),
        (None, {"exit_code": 1, "killed": True}, "its agent was shut down after its final result"),
    ],
)  # fmt: skip
def test_trial_that_is_cut_off_after_its_final_result_has_succeeded(
    verdict: str | None, how: dict[str, Any], reason: str
) -> None:
    driver, trial = running_trial(trial_concurrency=1, max_trial_duration=5.0)
    driver.report(trial, 0.5, "final")
    if verdict == "timeout":
        driver.now = (trial.start_time or 0.0) + 5.0
        driver.handle(happened.Tick(driver.now))
    elif verdict == "stop":
        driver.handle(happened.StopRequested(driver.now))
    driver.end(trial, **how)
    assert (trial.status, trial.kind) == (TrialStatus.SUCCEEDED, None)
    assert trial.reason.startswith(reason)
    assert driver.runner.best.front == [trial]


@pytest.mark.parametrize(
    ("how", "kind"),
    [
        ({"exit_code": 1}, FailureKind.USER_ERROR),
        ({"exit_code": 1, "error": "Tr\nMemoryError"}, FailureKind.OOM),
        ({"exit_code": 1, "error": "ImportError: x"}, FailureKind.IMPORT),
        ({"exit_code": 1, "error": "Tr\npitchpipe.a.MissingExtraError: x"}, FailureKind.IMPORT),
    ],
)
def test_trial_that_says_it_has_failed_after_its_final_result_has(
    how: dict[str, Any], kind: FailureKind
) -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.report(trial, 0.5, "final")
    driver.end(trial, **how)
    assert (trial.status, trial.kind, trial.final) == (TrialStatus.FAILED, kind, "0.5")
    assert driver.runner.best.front == []


def test_agent_that_fails_while_its_trial_is_to_pause_leaves_it_paused() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung"))
    driver.end(trial, exit_code=None, error="the agent failed: no descriptors", infra=True)
    assert trial.status is TrialStatus.PAUSED


def test_trial_whose_agent_had_to_leave_is_run_again() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    (start,) = of_type(driver.end(trial, exit_code=None, signal=15, killed=True), StartTrial)
    assert start.order.attempt == 2
    assert trial.failed == {"INFRA": 1}
    driver.start(trial)
    driver.report(trial, 0.5, "final")
    driver.end(trial, exit_code=None, signal=15, killed=True)
    assert trial.status is TrialStatus.SUCCEEDED


def test_trial_that_ends_by_itself_before_the_pause_has_ended() -> None:
    driver, trial = running_trial(trial_concurrency=1)
    driver.handle(happened.PauseVerdict(driver.now, trial.trial_id, "rung"))
    driver.succeed(trial)
    assert trial.status is TrialStatus.SUCCEEDED
    assert driver.handle(happened.ResumeRequested(driver.now, trial.trial_id)) == []


def test_trial_that_ends_well_while_the_experiment_stops_has_succeeded() -> None:
    driver, trial = running_trial()
    driver.report(trial, 0.4, "final")
    driver.handle(happened.StopRequested(driver.now))
    driver.end(trial)
    assert (trial.status, trial.reason) == (TrialStatus.SUCCEEDED, "")
    assert driver.runner.best.front == [trial]
