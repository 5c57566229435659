"""`nni.trace`: classes and functions whose objects know how they were made."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from functools import cache, wraps
from pkgutil import resolve_name
from typing import Any, NamedTuple

_PLAIN = (int, float, complex, str, bytes, tuple, list, dict, set, frozenset)
_SYMBOL, _ARGS, _KWARGS = "__symbol__", "__args__", "__kwargs__"  # in JSON


class Arguments(NamedTuple):
    """The arguments of a call, by position and by name."""

    args: list[Any]
    kwargs: dict[str, Any]


class Traced:
    """The callable and the arguments that made a traced object; a bare `Traced` is this record without the object."""

    trace_symbol: Any
    trace_args: list[Any]
    trace_kwargs: dict[str, Any]

    def trace_copy(self) -> Traced:
        """Return a record with copies of the arguments, which may be changed; its `get` makes the object."""
        arguments = Arguments(list(self.trace_args), dict(self.trace_kwargs))
        return _noted(Traced(), self.trace_symbol, arguments)

    def get(self) -> Any:
        """Return the object."""
        if type(self) is not Traced:
            return self
        return trace(self.trace_symbol)(*self.trace_args, **self.trace_kwargs)


def trace(cls_or_func: Any = None, *, kw_only: bool = True, inheritable: bool = False) -> Any:
    """Return a class or a function whose objects have the attributes of `Traced`.

    With `kw_only`, arguments are kept by name where they have one. Objects of subclasses are traced if `inheritable`.

    >>> fraction = trace(complex)(1, imag=2)
    >>> fraction, fraction.trace_args, fraction.trace_kwargs
    ((1+2j), [], {'real': 1, 'imag': 2})
    """
    if cls_or_func is None:
        return lambda given: trace(given, kw_only=kw_only, inheritable=inheritable)
    if os.environ.get("NNI_TRACE_FLAG", "").lower() == "disable" or _is_traced(cls_or_func):
        return cls_or_func
    if isinstance(cls_or_func, type):
        return _traced_class(cls_or_func, kw_only, inheritable)
    if inspect.isroutine(cls_or_func):
        return _traced_function(cls_or_func, kw_only)
    raise TypeError(f"only classes and functions can be traced, not {cls_or_func!r}")


def described(value: Any) -> Any:
    """Return a value for JSON: symbol and arguments take the place of each traced object."""
    if isinstance(value, Traced) and hasattr(value, "trace_symbol"):
        what = {_SYMBOL: _name_of(value.trace_symbol), _KWARGS: described(value.trace_kwargs)}
        return what | ({_ARGS: described(value.trace_args)} if value.trace_args else {})
    if type(value) is dict:
        return {key: described(item) for key, item in value.items()}
    items: Any = value
    return [described(item) for item in items] if type(value) in (list, tuple) else value


def restored(value: Any) -> Any:
    """Return a value in which each description is a traced object again; imports and calls its symbol."""
    if isinstance(value, list):
        return [restored(item) for item in value]
    if not isinstance(value, dict):
        return value
    items = {key: restored(item) for key, item in value.items()}
    if _SYMBOL not in items:
        return items
    kind, _, name = str(items[_SYMBOL]).partition(":")
    if kind != "path":
        raise ValueError(f"{_SYMBOL} must be path:MODULE.NAME, not {items[_SYMBOL]!r}")
    return trace(resolve_name(name))(*items.get(_ARGS, ()), **items.get(_KWARGS, {}))


def _is_traced(symbol: Any) -> bool:
    return "_is_traced" in getattr(symbol, "__dict__", {})


def _noted(traced: Any, symbol: Any, arguments: Arguments) -> Any:
    vars(traced).update(trace_symbol=symbol, trace_args=arguments.args, trace_kwargs=arguments.kwargs)
    return traced


def _traced_class(base: Any, kw_only: bool, inheritable: bool) -> type:
    is_made_by_new = base.__init__ is object.__init__ and base.__new__ is not object.__new__

    class Wrapper(base, Traced):
        _is_traced = True

        @wraps(object.__init__ if is_made_by_new else base.__init__)
        def __init__(self, *args: Any, **kwargs: Any) -> None:
            call = _listed(*args, **kwargs)
            if inheritable or type(self) is Wrapper:
                _noted(self, base, _kept(base, call, kw_only))
            if is_made_by_new:
                super().__init__()
            else:
                super().__init__(*call.args, **call.kwargs)

    wraps(base, updated=())(Wrapper)
    del Wrapper.__wrapped__  # subclasses would inherit it, and with it the signature
    return Wrapper


def _traced_function(function: Callable[..., Any], kw_only: bool) -> Callable[..., Any]:
    @wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        call = _listed(*args, **kwargs)
        kept = _kept(function, call, kw_only)
        return _noted(_traceable(function(*call.args, **call.kwargs)), function, kept)

    vars(wrapper)["_is_traced"] = True
    return wrapper


def _traceable(result: Any) -> Any:
    """Return the result of a function as a traced object: the same object, or an equal one."""
    kind = type(result)
    if result is None:
        return Traced()
    if isinstance(result, Traced):
        return result
    if kind in _PLAIN:
        return _with_trace(kind)(result)
    try:
        result.__class__ = _with_trace(kind)
    except TypeError:
        raise TypeError(f"a result of type {kind.__name__} cannot be traced") from None
    return result


@cache
def _with_trace(kind: type) -> type:
    return type(kind.__name__, (kind, Traced), {"__module__": kind.__module__, "__doc__": kind.__doc__})


def _listed(*args: Any, **kwargs: Any) -> Arguments:
    """Return arguments with a list in place of each generator, which can be read only once."""

    def item(value: Any) -> Any:
        return list(value) if inspect.isgenerator(value) else value

    return Arguments([*map(item, args)], {name: item(value) for name, value in kwargs.items()})


def _kept(symbol: Any, call: Arguments, kw_only: bool) -> Arguments:
    """Return arguments to keep: copies of what the call may change, by name if asked for and possible."""
    given = [_copy(value) for value in call.args]
    by_name = {name: _copy(value) for name, value in call.kwargs.items()}
    try:
        known = list(inspect.signature(symbol).parameters.values())
    except (TypeError, ValueError):  # some that are written in C have none
        known = []
    positional = [each for each in known if each.kind in (each.POSITIONAL_ONLY, each.POSITIONAL_OR_KEYWORD)]
    if not kw_only or len(given) > len(positional):
        return Arguments(given, by_name)
    first = sum(each.kind is each.POSITIONAL_ONLY for each in positional)
    names = [each.name for each in positional[first:]]
    return Arguments(given[:first], dict(zip(names, given[first:], strict=False)) | by_name)


def _name_of(symbol: Any) -> str:
    """Return the name by which `restored` finds a class or a function; raise TypeError for one inside a function."""
    name = f"{symbol.__module__}.{symbol.__qualname__}"
    if "<" in name:
        raise TypeError(f"{name} cannot be dumped: it is not at the top level of a module")
    return f"path:{name}"


def _copy(value: Any) -> Any:
    return value.copy() if type(value) in (list, dict, set) else value
