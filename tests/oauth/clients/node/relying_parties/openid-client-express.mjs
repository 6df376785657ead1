// openid-client in Express, without Passport.
// [show]
import express from "express";
import sessions from "express-session";
import * as oidc from "openid-client";

export async function site({ issuer, clientId, clientSecret, here, secret }) {
  // openid-client refuses an issuer at http, such as the demo server, without this.
  const options = issuer.startsWith("http://") ? { execute: [oidc.allowInsecureRequests] } : undefined;
  const config = await oidc.discovery(new URL(issuer), clientId, clientSecret, undefined, options);
  const app = express();
  app.use(sessions({ secret, resave: false, saveUninitialized: false }));
  app.get("/private", async (request, response) => {
    if (request.session.person) return response.json(request.session.person);
    const verifier = oidc.randomPKCECodeVerifier();
    const state = oidc.randomState();
    request.session.begun = { verifier, state };
    response.redirect(oidc.buildAuthorizationUrl(config, {
      redirect_uri: `${here}/callback`,
      scope: "openid profile", // both are in the app's registration
      state,
      code_challenge: await oidc.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
    }).href);
  });
  app.get("/callback", async (request, response, next) => {
    const { verifier: pkceCodeVerifier, state: expectedState } = request.session.begun ?? {};
    if (!expectedState) return response.redirect("/private"); // no sign-in was begun in this browser
    delete request.session.begun; // good for one answer
    const checks = { pkceCodeVerifier, expectedState, idTokenExpected: true };
    const tokens = await oidc.authorizationCodeGrant(config, new URL(request.originalUrl, here), checks);
    request.session.regenerate((error) => {
      if (error) return next(error);
      request.session.person = { ...tokens.claims(), idToken: tokens.id_token };
      response.redirect("/private");
    });
  });
  app.get("/logout", (request, response, next) => {
    const asked = { id_token_hint: request.session.person?.idToken ?? "", post_logout_redirect_uri: `${here}/bye` };
    request.session.destroy((error) => (error ? next(error) : response.redirect(oidc.buildEndSessionUrl(config, asked).href)));
  });
  return app;
}
// [/show]
