"""Functions that Numba compiles when they are first called, and not before.

Importing Numba takes longer than a small audit: a command that calls no kernel never pays for it,
and a kernel can stand beside its caller. What a kernel calls is compiled with it, and everything is
cached on disk, so that a second process compiles nothing.
"""

from collections.abc import Callable, Iterator
from functools import cached_property, update_wrapper
from types import CodeType
from typing import Any, TypeVar, overload

Kernel = TypeVar("Kernel", bound=Callable[..., Any])


class LazyKernel:
    """A function of numbers and arrays, compiled on first use."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any] | None) -> None:
        self.py_func, self._options = function, options
        update_wrapper(self, function)

    def __call__(self, *arguments: Any) -> Any:
        """What the compiled function returns."""
        return self.dispatcher(*arguments)

    @cached_property
    def dispatcher(self) -> Callable[..., Any]:
        """What Numba made of it; names of its module are bound to that, and what it calls too."""
        import numba
        from numba.extending import intrinsic as inlined

        if self._options is None:
            return inlined(self.py_func)
        names = self.py_func.__globals__
        made: Callable[..., Any] = numba.njit(cache=True, **self._options)(self.py_func)
        for name in {*_names(self.py_func.__code__), self.py_func.__name__}:
            called = names.get(name)
            if called is self:
                names[name] = made
            elif isinstance(called, LazyKernel):
                names[name] = called.dispatcher
        return made


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _names(constant)


@overload
def compiled(function: Kernel, /) -> Kernel: ...


@overload
def compiled(**options: Any) -> Callable[[Kernel], Kernel]: ...


def compiled(function: Any = None, /, **options: Any) -> Any:
    """A decorator: compiled by Numba in nopython mode, with these options of `njit`."""
    if function is None:
        return lambda inner: LazyKernel(inner, options)
    return LazyKernel(function, options)


def intrinsic(function: Callable[..., Any]) -> Any:
    """An operation that kernels may call, from a function that emits its instructions."""
    return LazyKernel(function, None)
