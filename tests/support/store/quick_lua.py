"""Makes fakeredis run scripts faster. It compiles a script for each call, collects Lua's garbage after each call, and
lists all globals before each command. Nothing here changes what a script does or which mistakes fakeredis notices."""

from __future__ import annotations

from typing import Any

from fakeredis.commands_mixins import scripting_mixin
from lupa import lua51  # type: ignore[import-untyped]  # it has no types

_Runtime: Any = lua51.LuaRuntime
_listing = scripting_mixin._check_for_lua_globals
_compiled: dict[bytes, bytes] = {}
"""The bytecode of each script that ran, because each store has an interpreter of its own."""


class QuickRuntime(_Runtime):  # type: ignore[misc]  # it has no types
    """An interpreter that keeps what it has compiled and leaves garbage to Lua's own collector."""

    def __init__(self, **options: Any) -> None:
        self._functions: dict[bytes, Any] = {}
        self._extra: Any = None

    def execute(self, code: str | bytes, *arguments: Any) -> Any:
        if isinstance(code, str):
            return None if code == "collectgarbage()" else super().execute(code, *arguments)
        function = self._functions.get(code)
        if function is None:
            if code not in _compiled:
                try:
                    _compiled[code] = self.eval("string.dump")(self.compile(code))
                except lua51.LuaSyntaxError:
                    return super().execute(code, *arguments)  # its message is the one that fakeredis expects
            function = self._functions[code] = self.compile(_compiled[code])
        return function(*arguments)

    def has_others_than(self, expected: set[Any]) -> bool:
        """Whether there are globals that fakeredis has not set."""
        if self._extra is None:
            self._extra = self.eval(
                """
                function(names)
                    local expected, pairs = {}, pairs
                    for name in python.iter(names) do expected[name] = true end
                    return function()
                        for name in pairs(_G) do
                            if not expected[name] then return true end
                        end
                        return false
                    end
                end
                """
            )(expected)
        found: bool = self._extra()
        return found


def _check(lua_runtime: Any, expected_globals: set[Any]) -> None:
    if lua_runtime.has_others_than(expected_globals):
        _listing(lua_runtime, expected_globals)


def install() -> None:
    """Lets fakeredis use it, in this process."""
    lua51.LuaRuntime = QuickRuntime
    scripting_mixin._check_for_lua_globals = _check
