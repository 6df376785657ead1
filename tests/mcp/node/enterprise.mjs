// An assistant of a company, with the official TypeScript SDK, unmodified. It reads its job from standard input, gets an
// assertion from the company's identity provider, and prints what the tools answered.
import readline from 'node:readline';
import {
  Client, CrossAppAccessProvider, StreamableHTTPClientTransport, discoverAndRequestJwtAuthGrant,
} from '@modelcontextprotocol/client';

const lines = readline.createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const job = JSON.parse((await lines.next()).value);
const print = (value) => process.stdout.write(JSON.stringify(value) + '\n');

const provider = new CrossAppAccessProvider({
  clientId: job.clientId,
  clientSecret: job.clientSecret,
  expectedIssuer: job.issuer,
  assertion: async ({ authorizationServerUrl, resourceUrl, scope, fetchFn }) => {
    const made = await discoverAndRequestJwtAuthGrant({
      idpUrl: job.idp, audience: authorizationServerUrl, resource: resourceUrl, idToken: job.idToken, clientId: 'at-the-idp', scope, fetchFn,
    });
    return made.jwtAuthGrant;
  },
});

try {
  const client = new Client({ name: 'assistant', version: '1.0.0' });
  await client.connect(new StreamableHTTPClientTransport(new URL(job.url), { authProvider: provider }));
  const { tools } = await client.listTools();
  const answer = await client.callTool({ name: 'who_am_i', arguments: {} });
  print({ tools: tools.map((tool) => tool.name), who: answer.structuredContent, tokens: provider.tokens() });
  await client.close();
} catch (error) {
  print({ failed: String(error?.stack ?? error) });
}
process.exit(0);
