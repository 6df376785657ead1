// The official SDKs for Node.
import Anthropic from "@anthropic-ai/sdk";
import OpenAI from "openai";
import { zodResponseFormat, zodTextFormat } from "openai/helpers/zod";
import { z } from "zod";

const PARAMETERS = { type: "object", properties: { at: { type: "string" } }, required: ["at"] };
const City = z.object({ name: z.string(), people: z.int() });
const options = (job) => ({ maxRetries: job.retries ?? 0, timeout: job.timeout ?? 20_000 });
const asked = (job) => [{ role: "user", content: job.text ?? "Hello there" }];

const openai = (job) => new OpenAI({ baseURL: `${job.base}/api/v1/ai/v1`, apiKey: job.token, ...options(job) });

async function listed(client) {
  const ids = [];
  for await (const model of client.models.list()) ids.push(model.id);
  return ids;
}

// The Messages API.
class Messages {
  client = (job) => new Anthropic({ baseURL: `${job.base}/api/v1/ai`, apiKey: job.token, ...options(job) });
  models = (job) => listed(this.client(job));

  async message(job, changes) {
    const body = { model: job.model, max_tokens: 500, messages: asked(job), ...changes };
    const { messages } = this.client(job);
    return job.stream ? await messages.stream(body).finalMessage() : await messages.create(body);
  }

  usage({ usage, credits }) {
    const cached = usage.cache_read_input_tokens ?? 0;
    return { input: usage.input_tokens, cached, output: usage.output_tokens, charged: credits?.charged };
  }

  text = (made) => made.content.map((block) => block.text ?? "").join("");

  async ask(job) {
    const made = await this.message(job);
    return { text: this.text(made), usage: [this.usage(made)], model: made.model };
  }

  async tools(job) {
    const changes = { tools: [{ name: "look", input_schema: PARAMETERS }], ...job.changes };
    const first = await this.message(job, changes);
    const call = first.content.find((block) => block.type === "tool_use");
    const result = { type: "tool_result", tool_use_id: call.id, content: "It is warm." };
    const turn = [{ role: "assistant", content: first.content }, { role: "user", content: [result] }];
    const last = await this.message(job, { ...changes, messages: [...asked(job), ...turn] });
    return { text: this.text(last), called: call.input, usage: [this.usage(first), this.usage(last)] };
  }

  think = (job) => this.tools({ ...job, changes: { thinking: { type: "adaptive" } } });

  async schema(job) {
    const format = { type: "json_schema", schema: { ...z.toJSONSchema(City), $schema: undefined } };
    const made = await this.message(job, { output_config: { format } });
    return { object: JSON.parse(this.text(made)), usage: [this.usage(made)] };
  }

  async leave(job) {
    const body = { model: job.model, max_tokens: 500, messages: asked(job) };
    for await (const event of this.client(job).messages.stream(body)) {
      if (event.type === "content_block_delta") return event.delta.text;
    }
  }
}

// chat/completions.
class Chat {
  client = openai;
  models = (job) => listed(this.client(job));

  async completion(job, changes) {
    const body = { model: job.model, messages: asked(job), ...changes };
    const { completions } = this.client(job).chat;
    if (!job.stream) return await (body.response_format ? completions.parse(body) : completions.create(body));
    return await completions.stream({ ...body, stream_options: { include_usage: true } }).finalChatCompletion();
  }

  usage({ usage }) {
    const cached = usage.prompt_tokens_details?.cached_tokens ?? 0;
    const input = usage.prompt_tokens - cached;
    return { input, cached, output: usage.completion_tokens, charged: usage.credits_charged };
  }

  async ask(job) {
    const made = await this.completion(job);
    return { text: made.choices[0].message.content, usage: [this.usage(made)], model: made.model };
  }

  async tools(job) {
    const tools = [{ type: "function", function: { name: "look", parameters: PARAMETERS } }];
    const first = await this.completion(job, { tools, ...job.changes });
    const { message } = first.choices[0];
    const [call] = message.tool_calls;
    const result = { role: "tool", tool_call_id: call.id, content: "It is warm." };
    const messages = [...asked(job), message, result];
    const last = await this.completion(job, { tools, ...job.changes, messages });
    const called = JSON.parse(call.function.arguments);
    return { text: last.choices[0].message.content, called, usage: [this.usage(first), this.usage(last)] };
  }

  think = (job) => this.tools({ ...job, changes: { reasoning_effort: "high" } });

  async schema(job) {
    const made = await this.completion(job, { response_format: zodResponseFormat(City, "city") });
    return { object: made.choices[0].message.parsed, usage: [this.usage(made)] };
  }

  async leave(job) {
    const { completions } = this.client(job).chat;
    for await (const chunk of await completions.create({ model: job.model, messages: asked(job), stream: true })) {
      if (chunk.choices[0]?.delta.content) return chunk.choices[0].delta.content;
    }
  }
}

// responses.
class Responses {
  client = openai;
  models = (job) => listed(this.client(job));

  async response(job, changes) {
    const body = { model: job.model, input: asked(job), ...changes };
    const { responses } = this.client(job);
    if (job.stream) return await responses.stream(body).finalResponse();
    return await (body.text ? responses.parse(body) : responses.create(body));
  }

  usage({ usage }) {
    const cached = usage.input_tokens_details.cached_tokens;
    const input = usage.input_tokens - cached;
    return { input, cached, output: usage.output_tokens, charged: usage.credits_charged };
  }

  async ask(job) {
    const made = await this.response(job);
    return { text: made.output_text, usage: [this.usage(made)], model: made.model };
  }

  async tools(job) {
    const tools = [{ type: "function", name: "look", parameters: PARAMETERS, strict: false }];
    const first = await this.response(job, { tools, ...job.changes });
    const call = first.output.find((item) => item.type === "function_call");
    const result = { type: "function_call_output", call_id: call.call_id, output: "It is warm." };
    const items = first.output.map(({ parsed_arguments, ...item }) => item);
    const last = await this.response(job, { tools, ...job.changes, input: [...asked(job), ...items, result] });
    const called = JSON.parse(call.arguments);
    return { text: last.output_text, called, usage: [this.usage(first), this.usage(last)] };
  }

  think = (job) => {
    const include = ["reasoning.encrypted_content"];
    return this.tools({ ...job, changes: { reasoning: { effort: "high" }, store: false, include } });
  };

  async schema(job) {
    const made = await this.response(job, { text: { format: zodTextFormat(City, "city") } });
    return { object: made.output_parsed, usage: [this.usage(made)] };
  }

  async leave(job) {
    const body = { model: job.model, input: asked(job), stream: true };
    for await (const event of await this.client(job).responses.create(body)) {
      if (event.type === "response.output_text.delta") return event.delta;
    }
  }
}

export const CLIENTS = { anthropic: new Messages(), "openai chat": new Chat(), "openai responses": new Responses() };
