// simple-oauth2, version 5.
// [show]
import { createHash, randomBytes } from "node:crypto";
import { AuthorizationCode } from "simple-oauth2";

const random = () => randomBytes(48).toString("base64url");

export class Latchkey {
  static async discover({ issuer, clientId, clientSecret = "", redirectUri, scope, inBody }) {
    const found = await fetch(`${issuer}/.well-known/oauth-authorization-server`);
    const server = await found.json();
    const path = (url) => new URL(url).pathname;
    const client = new AuthorizationCode({
      client: { id: clientId, secret: clientSecret }, // "": a public app
      auth: {
        tokenHost: issuer,
        authorizePath: path(server.authorization_endpoint),
        tokenPath: path(server.token_endpoint),
        revokePath: path(server.revocation_endpoint),
      },
      options: { authorizationMethod: inBody ? "body" : "header" },
      http: { timeout: 10_000 },
    });
    return Object.assign(new Latchkey(), { issuer, server, client, redirectUri, scope });
  }

  begin(session) {
    session.state = random();
    session.verifier = random();
    return this.client.authorizeURL({
      redirect_uri: this.redirectUri,
      scope: this.scope,
      state: session.state,
      code_challenge: createHash("sha256").update(session.verifier).digest("base64url"),
      code_challenge_method: "S256",
    });
  }

  async finish(session, callback) {
    const { state, verifier: code_verifier } = session;
    delete session.state; // good for one answer
    const { code, error, ...answer } = Object.fromEntries(new URL(callback).searchParams);
    if (!state || answer.state !== state || answer.iss !== this.issuer) throw new Error("not of this sign-in");
    if (error) throw new Declined(error);
    const sent = { code, redirect_uri: this.redirectUri, code_verifier };
    return { tokens: await this.client.getToken(sent) };
  }

  async userinfo(account) {
    if (account.tokens.expired(60)) {
      account.refreshing ??= this.refresh(account).finally(() => delete account.refreshing); // one at a time
      await account.refreshing;
    }
    const headers = { Authorization: `Bearer ${account.tokens.token.access_token}` };
    const answer = await fetch(this.server.userinfo_endpoint, { headers, signal: AbortSignal.timeout(10_000) });
    if (!answer.ok) throw new Declined((await answer.json()).error);
    return answer.json();
  }

  async refresh(account) {
    account.tokens = await account.tokens.refresh();
    // Into your database: JSON.stringify(account.tokens); out of it: client.createToken(JSON.parse(kept)).
  }

  async revoke(account) {
    await account.tokens.revoke("refresh_token"); // not revokeAll(): the access token goes with it
  }
}

class Declined extends Error {}

export function codeOf(error) {
  if (error instanceof Declined) return error.message;
  return error.data?.payload?.error; // a Boom error; the status is error.output.statusCode
}
// [/show]
