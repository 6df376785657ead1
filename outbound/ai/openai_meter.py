"""The tokens that a call of chat/completions or responses has used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any

from outbound.ai.dialects.text_events import TextEvent
from outbound.ai.dialects.usage import of_chat, of_responses
from outbound.ai.meter import Meter, count_of, is_count
from outbound.ai.protocols import Dialect
from outbound.ai.tokens import count, texts_of
from store.credits.prices import TokenCounts

_SAID = ("content", "refusal")
_THOUGHT = ("reasoning_content", "reasoning")
"""Names under which servers of chat/completions send thinking."""


class _OpenAIMeter(Meter):
    """Reads reports that have all tokens at once."""

    _names = ("prompt_tokens", "completion_tokens")

    @staticmethod
    def _tokens(usage: object) -> TokenCounts:
        return of_chat(usage)

    def _report(self, usage: object, *, output: bool = True) -> None:
        if not isinstance(usage, dict):
            return
        found, (prompt, written) = self._tokens(usage), self._names
        if is_count(usage.get(prompt)):
            self._note_input(found, reported=True)
        if output and is_count(usage.get(written)):
            self._note_output(found)


class ChatMeter(_OpenAIMeter):
    """Reads the reply of chat/completions to a request, with all its choices."""

    def see_reply(self, reply: Mapping[str, Any]) -> None:
        """Reads a whole reply."""
        self._report(reply.get("usage"))
        if self._output is None:
            self._see_choices(reply, "message")

    def _see_text(self, event: TextEvent, tokens: int) -> None:
        self.begun = True
        self._shown += tokens

    def see_event(self, data: Mapping[str, Any]) -> None:
        """Reads a chunk of a stream."""
        self.begun = True
        self._report(data.get("usage"))
        self._see_choices(data, "delta")

    def _see_choices(self, data: Mapping[str, Any], name: str) -> None:
        choices = data.get("choices")
        for choice in choices if isinstance(choices, list) else ():
            part = choice.get(name) if isinstance(choice, dict) else None
            if isinstance(part, dict):
                self._shown += sum(count_of(part, said) for said in _SAID)
                self._thought += max(count_of(part, thought) for thought in _THOUGHT)
                calls = part.get("tool_calls")
                for call in calls if isinstance(calls, list) else ():
                    self._see_call(call)
                self._see_call({"function": part.get("function_call")})  # the older name of a single call

    def _see_call(self, call: object) -> None:
        if isinstance(call, dict):
            for kind, text in (("function", "arguments"), ("custom", "input")):
                made = call.get(kind)
                if isinstance(made, dict):
                    self._shown += count_of(made, "name") + count_of(made, text)


class ResponsesMeter(_OpenAIMeter):
    """Reads the reply of responses to a request."""

    _names = ("input_tokens", "output_tokens")
    _streamed = 0
    """Tokens that came since the last item ended."""

    @staticmethod
    def _tokens(usage: object) -> TokenCounts:
        return of_responses(usage)

    def see_reply(self, reply: Mapping[str, Any]) -> None:
        """Reads a whole reply."""
        self._report(reply.get("usage"))
        output = reply.get("output")
        if self._output is None and isinstance(output, list):
            for item in output:
                self._see_item(item)

    def _see_text(self, event: TextEvent, tokens: int) -> None:
        self.begun = True
        if "reasoning" in event.name:
            self._thought += tokens
        else:
            self._shown += tokens
            self._streamed += tokens

    def see_event(self, data: Mapping[str, Any]) -> None:
        """Reads an event of a stream."""
        self.begun = True
        response = data.get("response")
        if isinstance(response, dict):
            self._report(response.get("usage"))
        delta, kind = data.get("delta"), data.get("type")
        if isinstance(delta, str) and isinstance(kind, str):
            if "reasoning" in kind:
                self._thought += count(delta)
            else:
                self._shown += (said := count(delta))
                self._streamed += said
        elif kind == "response.output_item.done" and isinstance(item := data.get("item"), dict):
            self._sealed += count_of(item, "encrypted_content")
            self._shown += count_of(item, "name") + max(0, _made(item) - self._streamed)
            self._streamed = 0

    def _see_item(self, item: object) -> None:
        if isinstance(item, dict):
            self._shown += sum(count_of(item, name) for name in ("name", "arguments", "input")) + _made(item)
            self._sealed += count_of(item, "encrypted_content")
            for name in ("content", "summary"):
                parts = item.get(name)
                for part in parts if isinstance(parts, list) else ():
                    if isinstance(part, dict):
                        thought = item.get("type") == "reasoning"
                        tokens = count_of(part, "text") + count_of(part, "refusal")
                        self._thought += tokens if thought else 0
                        self._shown += 0 if thought else tokens


def _made(item: Mapping[str, Any]) -> int:
    """The tokens in what an app shall do, of calls that need not come in pieces: local_shell and apply_patch."""
    return sum(count(text) for name in ("action", "operation") for text in texts_of(item.get(name)))


METERS: Mapping[Dialect, Callable[[Mapping[str, Any]], Meter]] = MappingProxyType(
    {"messages": Meter, "chat": ChatMeter, "responses": ResponsesMeter}
)
"""A new meter for a request, by the dialect in which the server is asked."""
