// What tests/oauth/clients/driving.py speaks with: `node drive.mjs NAME`, then a line of JSON for each call, and one
// for each answer. The calls are the methods of the library's `Latchkey`, and `expire`: an hour passes, for the app.
import { createInterface } from "node:readline";
import { Failed } from "./visitor.mjs";

const { Latchkey, codeOf } = await import(`./${process.argv[2]}.mjs`);
let session, app, account;

const calls = {
  discover: async (settings) => {
    session = {};
    account = undefined;
    app = await Latchkey.discover(settings);
  },
  begin: () => app.begin(session),
  finish: async (callback) => {
    account = await app.finish(session, callback);
  },
  userinfo: () => app.userinfo(account),
  together: (times) => Promise.all(Array.from({ length: times }, () => app.userinfo(account))),
  refresh: () => app.refresh(account),
  revoke: () => app.revoke(account),
  expire: () => {
    const now = Date.now;
    Date.now = () => now() + 3600_000;
  },
  refreshToken: () => account.refreshToken ?? account.tokens.token.refresh_token,
};

for await (const line of createInterface({ input: process.stdin })) {
  const [name, ...args] = JSON.parse(line);
  let answer;
  try {
    answer = { value: (await calls[name](...args)) ?? null };
  } catch (error) {
    const code = error instanceof Failed ? error.code : await codeOf(error);
    answer = { code: code ?? null, error: String(error?.stack ?? error) };
  }
  console.log(JSON.stringify(answer));
}
process.exit();
