"""The nemesis: causes faults, one after another and sometimes two at once, in an order that a seed decides."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence

from dev.bench.measure import progress
from dev.proof.faults import KINDS, Kind, Scene
from dev.proof.history import Fault, Recorder

TOGETHER = 0.25
"""Probability that a server is killed during another fault."""
_ALONE = ("server", "restart", "supervisor", "hang-up", "memory")


class Nemesis:
    """Causes each fault at least once, if there is time."""

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
        """Breaks and mends until `until` (s), or each fault once if there is no such time. Raises AssertionError and
        Unexpected if something does not recover."""
        for number, kind in enumerate(self._order()):
            # Gives all clients time to get back to work.
            await asyncio.sleep(self._dice.uniform(*self._calm))
            if number >= len(self._kinds) if not until else self._now() + kind.lasts[1] > until:
                return
            await self._do(kind)

    def _order(self) -> Iterator[Kind]:
        """All faults in random order, and again in another. Lost answers come first each time: so a short run includes
        them, and a double charge cannot be blamed on another fault."""
        while True:
            yield from sorted(self._dice.sample(self._kinds, len(self._kinds)), key=lambda kind: kind.name != "answers")

    async def _do(self, kind: Kind) -> None:
        """Causes one fault; during some of them, also kills a server."""
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
