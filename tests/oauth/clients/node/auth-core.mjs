// Auth.js, called as its frameworks call it.
import { getToken } from "@auth/core/jwt";
import { Failed, Visitor } from "./visitor.mjs";
// [show]
import { Auth } from "@auth/core";

export async function discover(issuer) {
  const found = await fetch(`${issuer}/.well-known/oauth-authorization-server`);
  return { ...await found.json(), issuer }; // the issuer is the one that you know
}

export const provider = (server, { clientId, clientSecret, scope, how }) => ({
  id: "latchkey",
  name: "Latchkey",
  type: "oauth", // not "oidc": there is no id_token
  issuer: server.issuer, // else the `iss` of the answer does not match
  authorization: { url: server.authorization_endpoint, params: { scope } },
  token: server.token_endpoint,
  userinfo: server.userinfo_endpoint,
  checks: ["pkce", "state"], // Latchkey requires a state, also with PKCE
  clientId,
  clientSecret,
  client: { token_endpoint_auth_method: how }, // client_secret_basic, client_secret_post; none: a public app
  profile: (person) => ({ id: person.sub, name: person.name, email: person.email, image: person.picture }),
});

// `report` gets the error code: the pages of Auth.js show only "Configuration".
export function configure(server, client, secret, report = console.error) {
  const refreshed = new Map(); // by refresh token: all requests with one old cookie get the same new tokens
  return {
    providers: [provider(server, client)],
    secret,
    trustHost: true,
    basePath: "/auth",
    callbacks: {
      async jwt({ token, account }) {
        if (account) { // has just signed in
          const { providerAccountId, access_token, refresh_token, expires_at } = account;
          return { ...token, sub: providerAccountId, access_token, refresh_token, expires_at };
        }
        if (token.expires_at * 1000 > Date.now() + 60_000) return token;
        const old = token.refresh_token;
        if (!refreshed.has(old)) {
          refreshed.set(old, refresh(server, client, old));
          setTimeout(() => refreshed.delete(old), 60_000).unref();
        }
        try {
          return { ...token, ...await refreshed.get(old) };
        } catch (error) {
          if (error.code === "invalid_grant") return null; // signs out
          refreshed.delete(old); // the next request tries again
          return token;
        }
      },
      session: ({ session, token }) => ({ ...session, user: { ...session.user, id: token.sub } }),
    },
    events: {
      async signOut({ token }) {
        const body = new URLSearchParams({ token: token.refresh_token });
        const answer = await fetch(server.revocation_endpoint, { method: "POST", body, signal: AbortSignal.timeout(10_000) });
        if (!answer.ok) report("the token was not revoked"); // try again later: it lives until then
      },
    },
    logger: {
      async error(error) {
        if (error.type === "OAuthCallbackError") return; // it says no more than that: see debug
        const { err } = error.cause ?? {};
        report(err?.error ?? (await err?.response?.json())?.error ?? error); // invalid_client, invalid_grant …
      },
      debug(name, detail) {
        if (name === "OAuthCallbackError") report(detail.error); // access_denied
      },
    },
  };
}

async function refresh(server, { clientId, clientSecret }, refreshToken) {
  const body = new URLSearchParams({ grant_type: "refresh_token", refresh_token: refreshToken, client_id: clientId });
  if (clientSecret) body.set("client_secret", clientSecret);
  const answer = await fetch(server.token_endpoint, { method: "POST", body, signal: AbortSignal.timeout(10_000) });
  const { error, access_token, refresh_token, expires_in } = await answer.json();
  if (error) throw Object.assign(new Error(error), { code: error });
  return { access_token, refresh_token, expires_at: Math.floor(Date.now() / 1000) + expires_in };
}

// Everything under /auth; the package for your framework does this for you.
export const answer = (request, config) => Auth(request, config);
// [/show]

const HERE = "http://127.0.0.1:3000";
const SECRET = "a secret of the app, long enough to seal its cookies";

export class Latchkey {
  static async discover({ issuer, clientId, clientSecret, scope, inBody }) {
    const made = new Latchkey();
    made.server = await discover(issuer);
    const how = !clientSecret ? "none" : inBody ? "client_secret_post" : "client_secret_basic";
    made.client = { clientId, clientSecret, scope, how };
    made.config = configure(made.server, made.client, SECRET, (code) => made.told(code));
    made.visitor = new Visitor((url, options) => answer(new Request(url, options), made.config));
    return made;
  }

  async send(path, fields) {
    const { csrfToken } = await (await this.visitor.go(`${HERE}/auth/csrf`)).json();
    const body = new URLSearchParams({ csrfToken, ...fields });
    const headers = { "Content-Type": "application/x-www-form-urlencoded" };
    return this.visitor.go(HERE + path, { method: "POST", body: body.toString(), headers });
  }

  async begin() {
    return (await this.send("/auth/signin/latchkey", { callbackUrl: `${HERE}/` })).headers.get("location");
  }

  async finish(session, callback) {
    const failure = new Promise((resolve) => { this.told = resolve; });
    const answer = await this.visitor.go(callback);
    if (answer.headers.get("location") !== `${HERE}/`) throw new Failed(await failure);
    return this.tokens();
  }

  async tokens() {
    const headers = { cookie: [...this.visitor.cookies].map(([name, value]) => `${name}=${value}`).join("; ") };
    const found = await getToken({ req: { headers }, secret: SECRET, secureCookie: false });
    return found && { accessToken: found.access_token, refreshToken: found.refresh_token };
  }

  async userinfo(account) {
    const session = await (await this.visitor.go(`${HERE}/auth/session`)).json();
    Object.assign(account, await this.tokens());
    const headers = { Authorization: `Bearer ${account.accessToken}` };
    const answer = await fetch(this.server.userinfo_endpoint, { headers });
    if (!answer.ok) throw new Failed((await answer.json()).error);
    const { id: sub, name, email, image: picture } = session.user;
    return { ...(await answer.json()), sub, name, email, picture };
  }

  async refresh(account) {
    const now = Date.now;
    Date.now = () => now() + 3600_000;
    await this.visitor.go(`${HERE}/auth/session`);
    Date.now = now;
    Object.assign(account, await this.tokens());
  }

  async revoke() {
    await this.send("/auth/signout", {});
  }
}

export const codeOf = (error) => error.code;
