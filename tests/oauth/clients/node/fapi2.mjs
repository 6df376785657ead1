// openid-client signs a person in with the FAPI 2.0 Security Profile: private_key_jwt, PAR and DPoP, from discovery
// alone. The first argument has the settings; the first line out has the app's public key, the first line in says that
// it is registered, and the second has the address that the browser came back to.
import { createInterface } from "node:readline/promises";
// [show]
import * as oauth from "openid-client";

// [/show]

const { issuer, clientId, redirectUri, algorithm } = JSON.parse(process.argv[2]);
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const tell = (value) => process.stdout.write(`${JSON.stringify(value)}\n`);

const { privateKey, publicKey } = await oauth.randomDPoPKeyPair(algorithm, { extractable: true });
tell({ keys: [{ ...(await crypto.subtle.exportKey("jwk", publicKey)), kid: "k" }] });
await lines.next();
const options = { execute: [oauth.allowInsecureRequests] };
// [show]
// privateKey: a CryptoKey; kid: the name of its public half in the registered key set
// options: none; on your own machine, with http, { execute: [oauth.allowInsecureRequests] }
const prove = oauth.PrivateKeyJwt({ key: privateKey, kid: "k" });
const metadata = { id_token_signed_response_alg: "ES256" };
const config = await oauth.discovery(new URL(issuer), clientId, metadata, prove, options);
const DPoP = oauth.getDPoPHandle(config, await oauth.randomDPoPKeyPair("ES256"));

// Keep the first three in the session of the browser.
const verifier = oauth.randomPKCECodeVerifier();
const state = oauth.randomState();
const nonce = oauth.randomNonce();
const request = {
  redirect_uri: redirectUri,
  scope: "openid profile data:read data:write",
  state,
  nonce,
  code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
  code_challenge_method: "S256",
};
const url = await oauth.buildAuthorizationUrlWithPAR(config, request, { DPoP }); // send the browser there
// [/show]
tell({ url: url.href });
const callback = new URL((await lines.next()).value);
// [show]
// callback: the address that the browser came back to
const checks = { expectedState: state, expectedNonce: nonce, pkceCodeVerifier: verifier, idTokenExpected: true };
const tokens = await oauth.authorizationCodeGrant(config, callback, checks, undefined, { DPoP });
const { sub } = tokens.claims();
const person = await oauth.fetchUserInfo(config, tokens.access_token, sub, { DPoP });
const renewed = await oauth.refreshTokenGrant(config, tokens.refresh_token, undefined, { DPoP });
// [/show]

const written = await oauth.fetchProtectedResource(
  config,
  renewed.access_token,
  new URL("/api/v1/data/notes/n1", issuer),
  "PUT",
  '{"of": "a note"}',
  new Headers({ "Content-Type": "application/json" }),
  { DPoP },
);
const live = await oauth.tokenIntrospection(config, renewed.access_token);
const own = await oauth.clientCredentialsGrant(config, { resource: "https://orders.example" }, { DPoP });
await oauth.tokenRevocation(config, renewed.refresh_token);
const dead = await oauth.tokenIntrospection(config, renewed.access_token);
tell({
  types: [tokens.token_type, renewed.token_type, own.token_type],
  sub: person.sub,
  written: written.status,
  active: [live.active, dead.active],
  bound: live.cnf.jkt === await DPoP.calculateThumbprint(),
});
process.exit(0);
