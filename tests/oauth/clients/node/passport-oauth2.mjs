// passport-oauth2 in an app of Express.
import { once } from "node:events";
import { createServer } from "node:http";
import { Failed, Visitor } from "./visitor.mjs";
// [show]
import express from "express";
import sessions from "express-session";
import { Passport } from "passport";
import OAuth2Strategy from "passport-oauth2";

class LatchkeyStrategy extends OAuth2Strategy {
  constructor(issuer, server, client, verify) {
    super({
      ...client, // clientID, clientSecret (left out: a public app), callbackURL, scope
      authorizationURL: server.authorization_endpoint,
      tokenURL: server.token_endpoint,
      pkce: true,
      state: true, // both are off where nothing is said, and Latchkey wants a state
    }, verify);
    this.name = "latchkey";
    Object.assign(this, { issuer, server });
    this._oauth2.useAuthorizationHeaderforGET(true); // else it sends the token in the query, where none is looked for
  }

  authenticate(request, options) {
    const { code, error, iss } = request.query;
    if ((code || error) && iss !== this.issuer) return this.error(new Error("the answer of another server"));
    super.authenticate(request, options);
  }

  userProfile(accessToken, done) {
    this._oauth2.get(this.server.userinfo_endpoint, accessToken, (error, body) =>
      error ? done(this._createOAuthError("Latchkey does not say who it is", error)) : done(null, JSON.parse(body)));
  }

  refresh(account) {
    account.refreshing ??= new Promise((resolve, reject) => { // one at a time: others wait for the same answer
      this._oauth2.getOAuthAccessToken(account.refreshToken, { grant_type: "refresh_token" },
        (error, accessToken, refreshToken, answer) => {
          if (error) return reject(this._createOAuthError("no new tokens", error));
          const expiresAt = Date.now() + answer.expires_in * 1000;
          resolve(Object.assign(account, { accessToken, refreshToken, expiresAt }));
        });
    }).finally(() => delete account.refreshing);
    return account.refreshing;
  }

  async revoke(account) { // the library has nothing for it
    const body = new URLSearchParams({ token: account.refreshToken });
    const answer = await fetch(this.server.revocation_endpoint, { method: "POST", body, signal: AbortSignal.timeout(10_000) });
    if (!answer.ok) throw new Error("the token was not revoked"); // try again later: it lives until then
  }
}

export async function makeApp(issuer, client) {
  const found = await fetch(`${issuer}/.well-known/oauth-authorization-server`);
  const people = new Map(); // in your app a table; the account belongs to `sub`
  const signedIn = (accessToken, refreshToken, answer, profile, done) => {
    const expiresAt = Date.now() + answer.expires_in * 1000;
    people.set(profile.sub, { ...profile, accessToken, refreshToken, expiresAt });
    done(null, people.get(profile.sub));
  };
  const latchkey = new LatchkeyStrategy(issuer, await found.json(), client, signedIn);
  const passport = new Passport();
  passport.use(latchkey);
  passport.serializeUser((account, done) => done(null, account.sub));
  passport.deserializeUser((sub, done) => done(null, people.get(sub) ?? false));

  const app = express();
  app.use(sessions({ secret: "change me", resave: false, saveUninitialized: false }));
  app.use(passport.session());
  app.get("/signin", passport.authenticate("latchkey"));
  app.get("/callback", passport.authenticate("latchkey", { successRedirect: "/me", failureRedirect: "/declined" }));
  app.get("/declined", (request, response) => response.status(403).json({ error: "access_denied" }));
  app.get("/me", async (request, response, next) => {
    if (!request.user) return response.redirect("/signin");
    if (request.user.expiresAt < Date.now() + 60_000) await latchkey.refresh(request.user);
    latchkey.userProfile(request.user.accessToken, (error, profile) => (error ? next(error) : response.json(profile)));
  });
  // The errors of the library say what Latchkey said: error.code is invalid_grant, invalid_client, invalid_token …
  app.use((error, request, response, next) => response.status(502).json({ error: error.code }));
  return { app, latchkey, people };
}
// [/show]

export class Latchkey {
  static async discover({ issuer, clientId, clientSecret, scope }) {
    const listener = createServer();
    await once(listener.listen(0, "127.0.0.1"), "listening");
    const made = new Latchkey();
    made.here = `http://127.0.0.1:${listener.address().port}`;
    const client = { clientID: clientId, clientSecret, callbackURL: `${made.here}/callback`, scope };
    const { app, latchkey, people } = await makeApp(issuer, client);
    listener.on("request", app);
    return Object.assign(made, { latchkey, people, visitor: new Visitor() });
  }

  async begin() {
    return (await this.visitor.go(`${this.here}/signin`)).headers.get("location");
  }

  async finish(session, callback) {
    const answer = await this.visitor.go(callback);
    if (answer.status >= 400) throw new Failed((await answer.json()).error);
    const page = await this.visitor.go(new URL(answer.headers.get("location"), this.here));
    const { sub, error } = await page.json();
    if (error) throw new Failed(error);
    return this.people.get(sub);
  }

  async userinfo() {
    const page = await this.visitor.go(`${this.here}/me`);
    if (page.status >= 400) throw new Failed((await page.json()).error);
    return page.json();
  }

  refresh(account) {
    return this.latchkey.refresh(account);
  }

  revoke(account) {
    return this.latchkey.revoke(account);
  }
}

export const codeOf = (error) => error.code;
