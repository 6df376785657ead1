// The AI SDK with its providers. Each step of a round trip with a tool is a call.
import { createAnthropic } from "@ai-sdk/anthropic";
import { createOpenAI } from "@ai-sdk/openai";
import { createOpenAICompatible } from "@ai-sdk/openai-compatible";
import { generateText, Output, stepCountIs, streamText, tool } from "ai";
import { z } from "zod";

const City = z.object({ name: z.string(), people: z.int() });
const TOOLS = {
  look: tool({ inputSchema: z.object({ at: z.string() }), execute: async () => "It is warm." }),
};

const COMPATIBLE = { includeUsage: true, supportsStructuredOutputs: true };
const KEPT_BY_APP = { store: false, include: ["reasoning.encrypted_content"] };

const at = (job) => ({ baseURL: `${job.base}/api/v1/ai/v1`, apiKey: job.token });
const MODELS = {
  anthropic: (job) => createAnthropic(at(job))(job.model),
  chat: (job) => createOpenAI(at(job)).chat(job.model),
  responses: (job) => createOpenAI(at(job)).responses(job.model),
  compatible: (job) => createOpenAICompatible({ ...at(job), name: "latchkey", ...COMPATIBLE })(job.model),
};
// The server keeps nothing, so what the model thought must come with each answer, and go back.
const REASONING = { reasoningEffort: "high", forceReasoning: true };
const THINKING = {
  anthropic: { anthropic: { thinking: { type: "adaptive" } } },
  chat: { openai: REASONING },
  responses: { openai: { ...REASONING, ...KEPT_BY_APP } },
  compatible: { latchkey: { reasoningEffort: "high" } },
};

class Provider {
  constructor(kind) {
    this.kind = kind;
  }

  async run(job, changes) {
    const asked = { model: MODELS[this.kind](job), prompt: job.text ?? "Hello there", maxRetries: job.retries ?? 0 };
    const abortSignal = AbortSignal.timeout(job.timeout ?? 20_000);
    const body = { ...asked, abortSignal, ...changes };
    if (!job.stream) return await generateText(body);
    let failed;
    const made = streamText({ ...body, onError: ({ error }) => (failed = error) });
    let text = "";
    for await (const part of made.textStream) text += part;
    if (failed) throw failed;
    return { text: await made.text, steps: await made.steps, output: changes?.output && (await made.output), all: text };
  }

  usage = ({ usage }) => {
    const cached = usage.inputTokenDetails?.cacheReadTokens ?? usage.cachedInputTokens ?? 0;
    return { input: usage.inputTokens - cached, cached, output: usage.outputTokens };
  };

  async ask(job) {
    const made = await this.run(job);
    return { text: made.text, usage: made.steps.map(this.usage), model: made.steps[0].response.modelId };
  }

  // `kept`: the app leaves it to the server to keep its answers.
  async tools(job, changes) {
    const providerOptions = { openai: job.kept ? {} : KEPT_BY_APP };
    const made = await this.run(job, { tools: TOOLS, stopWhen: stepCountIs(3), providerOptions, ...changes });
    const [call] = made.steps[0].toolCalls;
    return { text: made.text, called: call.input, usage: made.steps.map(this.usage) };
  }

  think = (job) => this.tools(job, { providerOptions: THINKING[this.kind] });

  async schema(job) {
    const made = await this.run(job, { output: Output.object({ schema: City }) });
    return { object: made.output, usage: made.steps.map(this.usage) };
  }

  async leave(job) {
    const leaving = new AbortController();
    const made = streamText({ model: MODELS[this.kind](job), prompt: "Hello", abortSignal: leaving.signal });
    for await (const part of made.textStream) {
      leaving.abort();
      return part;
    }
  }
}

export const CLIENTS = Object.fromEntries(Object.keys(MODELS).map((kind) => [`ai-sdk ${kind}`, new Provider(kind)]));
