// An assistant with the official TypeScript SDK, unmodified. It reads its job from the first line, asks for a browser by
// {"go": address}, reads back {"code"}, and prints what the tools answered.
import readline from 'node:readline';
import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { UnauthorizedError } from '@modelcontextprotocol/sdk/client/auth.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const read = async () => JSON.parse((await lines.next()).value);
const print = (value) => process.stdout.write(JSON.stringify(value) + '\n');

const job = await read();
const kept = { client: job.client };
const provider = {
  redirectUrl: job.redirectUri,
  clientMetadata: { redirect_uris: [job.redirectUri], client_name: 'Assistant', ...job.metadata },
  ...(job.metadataUrl ? { clientMetadataUrl: job.metadataUrl } : {}),
  state: () => 'a-state',
  clientInformation: () => kept.client,
  saveClientInformation: (client) => { kept.client = client; },
  // This SDK refreshes before it asks for more scopes, which gives no more of them, unless it knows no refresh token.
  tokens: () => (kept.more ? { ...kept.tokens, refresh_token: undefined } : kept.tokens),
  saveTokens: (tokens) => { kept.tokens = tokens; kept.more = false; },
  redirectToAuthorization: (url) => print({ go: String(url) }),
  saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
  codeVerifier: () => kept.verifier,
};

let client, transport;
async function connect() {
  client = new Client({ name: 'assistant', version: '1.0.0' });
  transport = new StreamableHTTPClientTransport(new URL(job.url), { authProvider: provider });
  await client.connect(transport);
}

// The SDK throws once it has sent the browser away, and goes on with what the browser brings back.
async function authorized(work) {
  for (let turn = 0; turn < 4; turn += 1) {
    try {
      return await work();
    } catch (error) {
      if (error instanceof UnauthorizedError) {
        await transport.finishAuth((await read()).code);
      } else if (error.code === 403 && !kept.more) {
        kept.more = true;
        await connect();
      } else {
        throw error;
      }
    }
  }
  throw new Error('authorized four times in vain');
}

try {
  await authorized(connect);
  const { tools } = await client.listTools();
  const answers = [];
  for (const call of job.calls) {
    if (call.forget) { kept.tokens = { ...kept.tokens, access_token: 'lk_at_forgotten' }; continue; }
    const answer = await authorized(() => client.callTool(call));
    answers.push({ value: answer.structuredContent ?? null, text: answer.content[0].text, error: answer.isError ?? false });
  }
  print({ tools: tools.map((tool) => tool.name), answers, scope: kept.tokens.scope });
  await client.close();
} catch (error) {
  print({ failed: String(error?.stack ?? error) });
}
process.exit(0);
