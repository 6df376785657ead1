"""litellm and LangChain."""

from __future__ import annotations

import json
from typing import Any

import litellm
from langchain_anthropic import ChatAnthropic
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool
from langchain_openai import ChatOpenAI
from official import RESULT, ChatCompletions, City, Job, asked

litellm.suppress_debug_info = True


class Litellm(ChatCompletions):
    """litellm.completion, with a provider and the path of its base URL."""

    def __init__(self, provider: str, path: str) -> None:
        self.provider, self.path = provider, path

    def options(self, job: Job) -> Job:
        """Model, server, token, how long a client waits, and how often it tries again."""
        where = {"model": f"{self.provider}/{job['model']}", "api_base": job["base"] + self.path}
        waits = {"timeout": job.get("timeout", 20_000) / 1000, "max_retries": job.get("retries", 0)}
        return {**where, "api_key": job["token"], **waits}

    def completion(self, job: Job, **changes: Any) -> Any:
        """One call."""
        body = {**self.options(job), "messages": asked(job), **changes}
        if not job["stream"]:
            return litellm.completion(**body)
        chunks = list(litellm.completion(**body, stream=True, stream_options={"include_usage": True}))
        return litellm.stream_chunk_builder(chunks, messages=body["messages"])

    def usage(self, made: Any) -> Job:
        """The tokens."""
        usage, details = made.usage, made.usage.prompt_tokens_details
        cached = (details.cached_tokens if details else 0) or 0
        return {"input": usage.prompt_tokens - cached, "cached": cached, "output": usage.completion_tokens}

    def turn(self, message: Any) -> Any:
        """An answer as a part of the next question, in plain data."""
        return message.model_dump()

    def think(self, job: Job) -> Job:
        """The same by a model that thinks."""
        if self.provider == "anthropic":
            # Otherwise litellm takes it for a parameter of models that it knows.
            return self.tools(job, thinking={"type": "adaptive"}, allowed_openai_params=["thinking"])
        return self.tools(job, reasoning_effort="high", allowed_openai_params=["reasoning_effort"])

    def schema(self, job: Job) -> Job:
        """An answer by a JSON schema."""
        made = self.completion(job, response_format=City)
        return {"object": json.loads(made.choices[0].message.content), "usage": [self.usage(made)]}

    def leave(self, job: Job) -> str | None:
        """A stream that the app leaves after the first words."""
        stream = litellm.completion(**self.options(job), messages=asked(job), stream=True)
        return str(next(word for word in (chunk.choices[0].delta.content for chunk in stream) if word))


@tool
def look(at: str) -> str:
    """Looks at something."""
    return RESULT


class LangChain:
    """A chat model of LangChain."""

    def __init__(self, kind: str) -> None:
        self.kind = kind

    def model(self, job: Job, **changes: Any) -> Any:
        """With server, token, how long it waits, and how often it tries again."""
        waits = {"timeout": job.get("timeout", 20_000) / 1000, "max_retries": job.get("retries", 0)}
        about: Any = {"model": job["model"], "api_key": job["token"], **waits, **changes}
        if self.kind == "anthropic":
            return ChatAnthropic(**about, base_url=f"{job['base']}/api/v1/ai", max_tokens=500)
        about["use_responses_api"] = self.kind == "responses"
        return ChatOpenAI(**about, base_url=f"{job['base']}/api/v1/ai/v1", stream_usage=True)

    def run(self, job: Job, model: Any, messages: Any) -> Any:
        """One call."""
        if not job["stream"]:
            return model.invoke(messages)
        made = None
        for chunk in model.stream(messages):
            made = chunk if made is None else made + chunk
        return made

    def usage(self, made: Any) -> Job:
        """The tokens."""
        usage = made.usage_metadata
        cached = usage.get("input_token_details", {}).get("cache_read") or 0
        return {"input": usage["input_tokens"] - cached, "cached": cached, "output": usage["output_tokens"]}

    def ask(self, job: Job) -> Job:
        """A question."""
        made = self.run(job, self.model(job), job.get("text", "Hello there"))
        return {"text": str(made.text), "usage": [self.usage(made)], "model": made.response_metadata.get("model_name")}

    def tools(self, job: Job, **changes: Any) -> Job:
        """A call of a tool, and its result."""
        model, question = self.model(job, **changes).bind_tools([look]), HumanMessage(job.get("text", "Hello there"))
        first = self.run(job, model, [question])
        [call] = first.tool_calls
        last = self.run(job, model, [question, first, ToolMessage(look.invoke(call["args"]), tool_call_id=call["id"])])
        return {"text": str(last.text), "called": call["args"], "usage": [self.usage(first), self.usage(last)]}

    def think(self, job: Job) -> Job:
        """The same by a model that thinks."""
        if self.kind == "anthropic":
            return self.tools(job, thinking={"type": "adaptive"})
        if self.kind == "chat":
            return self.tools(job, reasoning_effort="high")
        kept = {"store": False, "include": ["reasoning.encrypted_content"], "output_version": "responses/v1"}
        return self.tools(job, reasoning={"effort": "high"}, **kept)

    def schema(self, job: Job) -> Job:
        """An answer by a JSON schema."""
        model = self.model(job).with_structured_output(City, method="json_schema", include_raw=True)
        made = model.invoke(job.get("text", "Hello there"))
        return {"object": made["parsed"].model_dump(), "usage": [self.usage(made["raw"])]}

    def leave(self, job: Job) -> str | None:
        """A stream that the app leaves after the first words."""
        stream = self.model(job).stream("Hello there")
        word = next(word for word in (str(chunk.text) for chunk in stream) if word)
        stream.close()
        return word


CLIENTS: dict[str, Any] = {
    "litellm anthropic": Litellm("anthropic", "/api/v1/ai"),
    "litellm chat": Litellm("openai", "/api/v1/ai/v1"),
    "langchain anthropic": LangChain("anthropic"),
    "langchain chat": LangChain("chat"),
    "langchain responses": LangChain("responses"),
}
