"""The official SDKs for Python."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import openai
import pydantic

Job = dict[str, Any]
PARAMETERS: Job = {"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"]}
RESULT = "It is warm."


class City(pydantic.BaseModel):
    """What a model shall answer."""

    name: str
    people: int


def asked(job: Job) -> list[Job]:
    """The conversation."""
    return [{"role": "user", "content": job.get("text", "Hello there")}]


def options(job: Job) -> Job:
    """How long a client waits, and how often it tries again."""
    return {"max_retries": job.get("retries", 0), "timeout": job.get("timeout", 20_000) / 1000}


class Messages:
    """The Messages API."""

    def client(self, job: Job) -> anthropic.Anthropic:
        """With a base URL and a token."""
        return anthropic.Anthropic(base_url=f"{job['base']}/api/v1/ai", auth_token=job["token"], **options(job))

    def models(self, job: Job) -> list[str]:
        """The names of all models."""
        return [model.id for model in self.client(job).models.list()]

    def message(self, job: Job, **changes: Any) -> Any:
        """One call."""
        body: Any = {"model": job["model"], "max_tokens": 500, "messages": asked(job), **changes}
        if not job["stream"]:
            return self.client(job).messages.create(**body)
        with self.client(job).messages.stream(**body) as stream:
            return stream.get_final_message()

    def usage(self, made: Any) -> Job:
        """The tokens and the cost."""
        usage = made.usage
        cached = usage.cache_read_input_tokens or 0
        tokens = {"input": usage.input_tokens, "cached": cached, "output": usage.output_tokens}
        credits = getattr(made, "credits", None)  # the SDK drops it from streams
        return {**tokens, "charged": credits["charged"]} if credits else tokens

    def text(self, made: Any) -> str:
        """What the model said."""
        return "".join(block.text for block in made.content if block.type == "text")

    def ask(self, job: Job) -> Job:
        """A question."""
        made = self.message(job)
        return {"text": self.text(made), "usage": [self.usage(made)], "model": made.model}

    def tools(self, job: Job, **changes: Any) -> Job:
        """A call of a tool, and its result."""
        changes = {"tools": [{"name": "look", "input_schema": PARAMETERS}], **changes}
        first = self.message(job, **changes)
        [call] = [block for block in first.content if block.type == "tool_use"]
        result = {"type": "tool_result", "tool_use_id": call.id, "content": RESULT}
        turn = [{"role": "assistant", "content": first.content}, {"role": "user", "content": [result]}]
        last = self.message(job, **{**changes, "messages": [*asked(job), *turn]})
        return {"text": self.text(last), "called": call.input, "usage": [self.usage(first), self.usage(last)]}

    def think(self, job: Job) -> Job:
        """The same by a model that thinks."""
        return self.tools(job, thinking={"type": "adaptive"})

    def schema(self, job: Job) -> Job:
        """An answer by a JSON schema."""
        schema = anthropic.transform_schema(City)
        made = self.message(job, output_config={"format": {"type": "json_schema", "schema": schema}})
        return {"object": json.loads(self.text(made)), "usage": [self.usage(made)]}

    def leave(self, job: Job) -> str | None:
        """A stream that the app leaves after the first words."""
        with self.client(job).messages.stream(model=job["model"], max_tokens=500, messages=asked(job)) as stream:
            return next(iter(stream.text_stream))


class ChatCompletions:
    """What clients of chat/completions do alike."""

    def completion(self, job: Job, **changes: Any) -> Any:
        """One call."""
        raise NotImplementedError

    def usage(self, made: Any) -> Job:
        """The tokens, and the cost where a client has it."""
        raise NotImplementedError

    def turn(self, message: Any) -> Any:
        """An answer as a part of the next question."""
        return message

    def ask(self, job: Job) -> Job:
        """A question."""
        made = self.completion(job)
        return {"text": made.choices[0].message.content, "usage": [self.usage(made)], "model": made.model}

    def tools(self, job: Job, **changes: Any) -> Job:
        """A call of a tool, and its result."""
        changes = {"tools": [{"type": "function", "function": {"name": "look", "parameters": PARAMETERS}}], **changes}
        first = self.completion(job, **changes)
        message = first.choices[0].message
        [call] = message.tool_calls
        result = {"role": "tool", "tool_call_id": call.id, "content": RESULT}
        last = self.completion(job, **{**changes, "messages": [*asked(job), self.turn(message), result]})
        called, usage = json.loads(call.function.arguments), [self.usage(first), self.usage(last)]
        return {"text": last.choices[0].message.content, "called": called, "usage": usage}


class OpenAI:
    """What both dialects of OpenAI share. `parsed`: the parameter for an answer by a schema; `final`: the method of a
    stream for the whole answer."""

    parsed = final = ""

    def client(self, job: Job) -> openai.OpenAI:
        """With a base URL and a token."""
        return openai.OpenAI(base_url=f"{job['base']}/api/v1/ai/v1", api_key=job["token"], **options(job))

    def models(self, job: Job) -> list[str]:
        """The names of all models."""
        return [model.id for model in self.client(job).models.list()]

    def call(self, api: Any, job: Job, body: Job, **streamed: Any) -> Any:
        """One call; `streamed` are more parameters of a stream."""
        if not job["stream"]:
            return (api.parse if self.parsed in body else api.create)(**body)
        with api.stream(**body, **streamed) as stream:
            return getattr(stream, self.final)()

    def tokens(self, made: Any, given: int, details: Any, output: int) -> Job:
        """The tokens and the cost; `given` are all tokens of input, `details` what these are."""
        cached = details.cached_tokens
        tokens = {"input": given - cached, "cached": cached, "output": output}
        return {**tokens, "charged": made.usage.credits_charged}


class Chat(ChatCompletions, OpenAI):
    """chat/completions."""

    parsed, final = "response_format", "get_final_completion"

    def completion(self, job: Job, **changes: Any) -> Any:
        """One call."""
        body: Any = {"model": job["model"], "messages": asked(job), **changes}
        return self.call(self.client(job).chat.completions, job, body, stream_options={"include_usage": True})

    def usage(self, made: Any) -> Job:
        """The tokens and the cost."""
        usage = made.usage
        return self.tokens(made, usage.prompt_tokens, usage.prompt_tokens_details, usage.completion_tokens)

    def think(self, job: Job) -> Job:
        """The same by a model that thinks."""
        return self.tools(job, reasoning_effort="high")

    def schema(self, job: Job) -> Job:
        """An answer by a JSON schema."""
        made = self.completion(job, response_format=City)
        return {"object": made.choices[0].message.parsed.model_dump(), "usage": [self.usage(made)]}

    def leave(self, job: Job) -> str | None:
        """A stream that the app leaves after the first words."""
        with self.client(job).chat.completions.create(model=job["model"], messages=asked(job), stream=True) as stream:
            said = (chunk.choices[0].delta.content for chunk in stream if chunk.choices)
            return next(word for word in said if word)


class Responses(OpenAI):
    """responses."""

    parsed, final = "text_format", "get_final_response"

    def response(self, job: Job, **changes: Any) -> Any:
        """One call."""
        body: Any = {"model": job["model"], "input": asked(job), **changes}
        return self.call(self.client(job).responses, job, body)

    def usage(self, made: Any) -> Job:
        """The tokens and the cost."""
        usage = made.usage
        return self.tokens(made, usage.input_tokens, usage.input_tokens_details, usage.output_tokens)

    def ask(self, job: Job) -> Job:
        """A question."""
        made = self.response(job)
        return {"text": made.output_text, "usage": [self.usage(made)], "model": made.model}

    def tools(self, job: Job, **changes: Any) -> Job:
        """A call of a tool, and its result."""
        changes = {
            "tools": [{"type": "function", "name": "look", "parameters": PARAMETERS, "strict": False}],
            **changes,
        }
        first = self.response(job, **changes)
        [call] = [item for item in first.output if item.type == "function_call"]
        result = {"type": "function_call_output", "call_id": call.call_id, "output": RESULT}
        last = self.response(job, **{**changes, "input": [*asked(job), *first.output, result]})
        called, usage = json.loads(call.arguments), [self.usage(first), self.usage(last)]
        return {"text": last.output_text, "called": called, "usage": usage}

    def think(self, job: Job) -> Job:
        """The same by a model that thinks."""
        return self.tools(job, reasoning={"effort": "high"}, store=False, include=["reasoning.encrypted_content"])

    def schema(self, job: Job) -> Job:
        """An answer by a JSON schema."""
        made = self.response(job, text_format=City)
        return {"object": made.output_parsed.model_dump(), "usage": [self.usage(made)]}

    def leave(self, job: Job) -> str | None:
        """A stream that the app leaves after the first words."""
        with self.client(job).responses.create(model=job["model"], input=asked(job), stream=True) as stream:
            return next(event.delta for event in stream if event.type == "response.output_text.delta")


CLIENTS = {"anthropic": Messages(), "openai chat": Chat(), "openai responses": Responses()}
