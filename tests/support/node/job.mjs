// What tests/oauth/test_sdks.py has the Node SDK do: reads what it needs as JSON from the first argument, and writes what it
// met as JSON. The Python half of the job stands there.
import Anthropic from "@anthropic-ai/sdk";

const job = JSON.parse(process.argv[2]);
const at = (baseURL, authToken) => new Anthropic({ baseURL, authToken, timeout: 20_000 });
const client = at(job.base, job.token);
const met = {};

const echo = { model: "latchkey-echo", max_tokens: 50, messages: [{ role: "user", content: job.text }] };
const scripted = { model: "scripted", max_tokens: 100, messages: [{ role: "user", content: job.text }] };

async function streamed(stream) {
  const pieces = [];
  stream.on("text", (text) => pieces.push(text));
  return [pieces, await stream.finalMessage()];
}

async function failure(call) {
  try {
    await call();
  } catch (error) {
    const code = error.error?.error?.code; // an abort has none
    return [error.constructor._errorName, error.status ?? null, error.type, code, error.requestID != null];
  }
  return null;
}

met.created = await client.messages.create(echo);
met.streamed = await streamed(client.messages.stream(echo));
met.tool = await client.messages.create({ ...scripted, tools: job.tools });
met.tool_streamed = (await streamed(client.messages.stream({ ...scripted, tools: job.tools })))[1];
met.counted = (await client.messages.countTokens({ model: echo.model, messages: echo.messages })).input_tokens;
met.models = [];
for await (const model of client.models.list()) met.models.push(model.id);
met.model = (await client.models.retrieve("latchkey-echo")).display_name;

const once = { maxRetries: 0 };
met.failures = {};
for (const [name, changes] of Object.entries(job.failures)) {
  const token = changes.token ?? job.token;
  const asked = { ...scripted, ...changes.asked };
  const options = { ...once, headers: changes.headers };
  met.failures[name] = await failure(() => at(job.base, token).messages.create(asked, options));
}
met.broken = await failure(() => client.messages.stream(scripted, once).finalMessage());

const lossy = at(job.lossy, job.token);
const keyed = (key) => ({ headers: { "Idempotency-Key": key } });
met.retried = (await lossy.messages.create(scripted, keyed("lost-whole"))).credits;
met.retried_stream = (await streamed(lossy.messages.stream(scripted, keyed("lost-stream"))))[1];

const aborted = client.messages.stream(scripted);
met.aborted = [];
aborted.on("text", (text) => {
  met.aborted.push(text);
  if (met.aborted.length === job.abort_after) aborted.abort();
});
met.abort = (await failure(() => aborted.done()))[0];

console.log(JSON.stringify(met));
