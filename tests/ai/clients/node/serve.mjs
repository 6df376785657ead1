// What tests/ai/clients/driving.py speaks with: a line of JSON for each call, and one for each answer. A call names a
// client, what it does, the server, a token, a model, and whether it streams.
import { createInterface } from "node:readline";
import * as sdks from "./sdks.mjs";
import * as aiSdk from "./ai_sdk.mjs";

const CLIENTS = { ...sdks.CLIENTS, ...aiSdk.CLIENTS };
globalThis.AI_SDK_LOG_WARNINGS = false;

// An error as the app sees it. AI SDK puts the last one into another when it has tried several times.
function told(error) {
  const last = error.lastError ?? error;
  const status = last.status ?? last.statusCode ?? null;
  return { error: last.name && last.name !== "Error" ? last.name : last.constructor.name, status, said: last.message };
}

console.log(JSON.stringify(Object.keys(CLIENTS).sort()));
for await (const line of createInterface({ input: process.stdin })) {
  const job = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await CLIENTS[job.client][job.call](job)) ?? null };
  } catch (error) {
    answer = told(error);
    if (process.env.CLIENTS_LOUD) console.error(error);
  }
  console.log(JSON.stringify(answer));
}
