// openid-client, version 6.
// [show]
import * as oauth from "openid-client";

export class Latchkey {
  static async discover({ issuer, clientId, clientSecret, redirectUri, scope, inBody }) {
    const how = inBody ? oauth.ClientSecretPost : oauth.ClientSecretBasic;
    const auth = clientSecret ? how(clientSecret) : oauth.None(); // none: a public app
    const options = { algorithm: "oauth2", timeout: 10 };
    if (issuer.startsWith("http://localhost")) options.execute = [oauth.allowInsecureRequests];
    const made = new Latchkey();
    made.config = await oauth.discovery(new URL(issuer), clientId, undefined, auth, options);
    return Object.assign(made, { redirectUri, scope });
  }

  // The address to send the browser to; `session` is what your framework keeps for it.
  async begin(session) {
    session.verifier = oauth.randomPKCECodeVerifier();
    session.state = oauth.randomState(); // required, also with PKCE
    const url = oauth.buildAuthorizationUrl(this.config, {
      redirect_uri: this.redirectUri,
      scope: this.scope,
      state: session.state,
      code_challenge: await oauth.calculatePKCECodeChallenge(session.verifier),
      code_challenge_method: "S256",
    });
    return url.href;
  }

  // `callback` is the address that the browser came back to; state, iss and error are looked at here.
  async finish(session, callback) {
    const { state: expectedState, verifier: pkceCodeVerifier } = session;
    delete session.state; // good for one answer
    if (!expectedState) throw new Error("no sign-in was begun in this browser");
    const checks = { expectedState, pkceCodeVerifier };
    return this.keep({}, await oauth.authorizationCodeGrant(this.config, new URL(callback), checks));
  }

  // An account is a person as your app knows them, with their tokens: here in memory, in your app a row.
  keep(account, { access_token, refresh_token, expires_in }) {
    const expiresAt = Date.now() + expires_in * 1000;
    return Object.assign(account, { accessToken: access_token, refreshToken: refresh_token, expiresAt });
  }

  async userinfo(account) {
    if (account.expiresAt < Date.now() + 60_000) {
      account.refreshing ??= this.refresh(account).finally(() => delete account.refreshing); // one at a time
      await account.refreshing;
    }
    return oauth.fetchUserInfo(this.config, account.accessToken, account.sub ?? oauth.skipSubjectCheck);
  }

  async refresh(account) {
    this.keep(account, await oauth.refreshTokenGrant(this.config, account.refreshToken));
  }

  async revoke(account) {
    await oauth.tokenRevocation(this.config, account.refreshToken);
  }
}

export async function codeOf(error) {
  if (error instanceof oauth.AuthorizationResponseError) return error.error; // in the browser's answer
  if (error instanceof oauth.ResponseBodyError) return error.error; // 400
  if (error.code === "OAUTH_RESPONSE_IS_NOT_CONFORM") return (await error.cause.json()).error; // 5xx
  // 401 with WWW-Authenticate: invalid_token, and invalid_client after HTTP Basic
  if (error instanceof oauth.WWWAuthenticateChallengeError) return (await error.response.json()).error;
}
// [/show]
