"""Why an agent on Ray is lost, in one sentence: Ray's errors come with a page of advice."""

from __future__ import annotations


def ray_error() -> type[BaseException]:
    """Return the base class of Ray's errors."""
    from ray.exceptions import RayError

    return RayError


def actor_error() -> type[BaseException]:
    """Return the base class of errors that say that the agent is gone, or cannot be reached."""
    from ray.exceptions import RayActorError

    return RayActorError


def task_error() -> type[BaseException]:
    """Return the class of errors that the agent's own code raised."""
    from ray.exceptions import RayTaskError

    return RayTaskError


def unavailable_error() -> type[BaseException]:
    """Return the class of errors of a call that did not get through, though the agent may live."""
    from ray.exceptions import ActorUnavailableError

    return ActorUnavailableError


def reason_of(error: BaseException) -> str:
    """Return why an agent is lost, in one sentence."""
    from ray.exceptions import ActorUnavailableError, ActorUnschedulableError, RayActorError, RayTaskError

    if isinstance(error, RayTaskError):
        return f"its agent failed: {str(error).strip().splitlines()[-1]}"
    if isinstance(error, ConnectionError):
        return str(error)
    if isinstance(error, ActorUnavailableError):
        return "its agent cannot be reached (its node may be gone)"
    if isinstance(error, ActorUnschedulableError):
        return f"its agent cannot be placed: {_first_line(error)}"
    if isinstance(error, RayActorError):
        return _why_died(str(error))
    return f"its agent is gone ({type(error).__name__}: {_first_line(error)})"


def _why_died(text: str) -> str:
    if "node was terminated" in text or "missing too many heartbeats" in text:
        return "its agent's node is gone"
    if "ray.kill" in text:
        return "its agent was killed"
    if "creation task" in text or "ModuleNotFoundError" in text:
        return f"its agent could not start: {text.strip().splitlines()[-1].strip()}"
    return "its agent's process has ended or was killed"


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [""])[0]
