// openid-client sends DPoP proofs (RFC 9449): a sign-in, calls, and a refresh. The first argument has the settings; a line
// of the standard input has the address that the browser came back to.
import { createInterface } from "node:readline/promises";
import * as oauth from "openid-client";

const { issuer, clientId, redirectUri, algorithm, pushes } = JSON.parse(process.argv[2]);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const options = { algorithm: "oauth2", execute: [oauth.allowInsecureRequests] };
const config = await oauth.discovery(new URL(issuer), clientId, undefined, oauth.None(), options);
const DPoP = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair(algorithm));
const verifier = oauth.randomPKCECodeVerifier();
const state = oauth.randomState();
const parameters = {
  redirect_uri: redirectUri,
  scope: "profile data:read data:write",
  state,
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
};
const url = pushes
  ? await oauth.buildAuthorizationUrlWithPAR(config, parameters, { DPoP })
  : oauth.buildAuthorizationUrl(config, { ...parameters, dpop_jkt: await DPoP.calculateThumbprint() });
tell({ url: url.href });

const callback = new URL((await lines.next()).value);
const checks = { expectedState: state, pkceCodeVerifier: verifier };
const tokens = await oauth.authorizationCodeGrant(config, callback, checks, undefined, { DPoP });
const person = await oauth.fetchUserInfo(config, tokens.access_token, oauth.skipSubjectCheck, { DPoP });
const call = (token, method, path, body) =>
  oauth.fetchProtectedResource(
    config,
    token,
    new URL(path, issuer),
    method,
    body,
    new Headers({ "Content-Type": "application/json" }),
    { DPoP },
  );
const written = await call(tokens.access_token, "PUT", "/api/v1/data/notes/n1", '{"of": "a note"}');
const renewed = await oauth.refreshTokenGrant(config, tokens.refresh_token, undefined, { DPoP });
const read = await call(renewed.access_token, "GET", "/api/v1/data/notes?include=data&limit=5");
// Without the key, neither token is worth anything.
const bearer = { Authorization: `Bearer ${renewed.access_token}` };
const plain = await fetch(new URL("/api/oauth/userinfo", issuer), { headers: bearer });
const stolen = await oauth.refreshTokenGrant(config, renewed.refresh_token).catch((error) => error.error);
tell({
  types: [tokens.token_type, renewed.token_type],
  sub: person.sub,
  statuses: [written.status, read.status, plain.status],
  items: (await read.json()).items.length,
  stolen,
});
process.exit(0);
