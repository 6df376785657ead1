"""Who breaks things, one after the other and sometimes two at once, in an order that follows from a seed."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

from dev.bench.measure import progress
from dev.proof.faults import KINDS, Kind, Scene
from dev.proof.history import Fault, Recorder

TOGETHER = 0.25
"""How often a server is killed in the middle of another fault."""
_ALONE = ("server", "restart", "supervisor", "hang-up", "memory")


class Nemesis:
    """Does each of the faults at least once, if there is time."""

    def __init__(
        self,
        scene: Scene,
        kinds: Sequence[Kind],
        recorder: Recorder,
        now: Callable[[], float],
        calm: tuple[float, float],
        dice: random.Random,
    ) -> None:
        self._scene, self._kinds, self._recorder = scene, kinds, recorder
        self._now, self._calm, self._dice = now, calm, dice

    async def work(self, until: float) -> None:
        """Breaks and mends until that time (s), or each once where there is none. Raises AssertionError and Unexpected
        for what does not come back."""
        for number, kind in enumerate(self._order()):
            # Everybody comes to work again in between.
            await asyncio.sleep(self._dice.uniform(*self._calm))
            if number >= len(self._kinds) if not until else self._now() + kind.lasts[1] > until:
                return
            await self._do(kind)

    def _order(self) -> Iterator[Kind]:
        """All of them in some order, then all of them in another. Lost answers come first in each: a short run has
        them, too, and what is charged twice is found then alone."""
        while True:
            yield from sorted(self._dice.sample(self._kinds, len(self._kinds)), key=lambda kind: kind.name != "answers")

    async def _do(self, kind: Kind) -> None:
        """One fault; in the middle of some a server is killed, too."""
        before = await self._scene.off(self._scene.store.owners)
        async with contextlib.AsyncExitStack() as stack:
            kinds = [kind]
            killer = KINDS["server"]
            if kind.name not in _ALONE and killer in self._kinds and self._dice.random() < TOGETHER:
                kinds.append(killer)
            begun = [await self._begin(one, stack) for one in kinds]
            await asyncio.sleep(self._dice.uniform(*kind.lasts))
            for fault, broken in begun:
                await anext(broken, None)
                fault.end = round(self._now(), 3)
        after = await self._scene.off(self._scene.store.owners)
        begun[0][0].moved = [slots for slots, owner in before.items() if after.get(slots) != owner]
        for fault, _ in begun:
            self._recorder.fault(fault)
            took = ", and a replica took over" if fault.moved else ""
            progress(f"{fault.end:7.1f} s  mended: {KINDS[fault.name].title}{took}")

    async def _begin(self, kind: Kind, stack: contextlib.AsyncExitStack) -> tuple[Fault, AsyncGenerator[str]]:
        fault = Fault(kind.name, "", round(self._now(), 3))
        broken = await stack.enter_async_context(contextlib.aclosing(kind.breaks(self._scene)))
        fault.what = await anext(broken)
        progress(f"{fault.begin:7.1f} s  {kind.title}{fault.what and ': '}{fault.what}")
        return fault, broken
