// openid-client as a strategy of Passport.
// [show]
import express from "express";
import sessions from "express-session";
import passport from "passport";
import * as oidc from "openid-client";
import { Strategy } from "openid-client/passport";

export async function site({ issuer, clientId, clientSecret, here, secret }) {
  const options = issuer.startsWith("http://") ? { execute: [oidc.allowInsecureRequests] } : undefined;
  const config = await oidc.discovery(new URL(issuer), clientId, clientSecret, undefined, options);
  const app = express();
  app.use(sessions({ secret, resave: false, saveUninitialized: false }));
  app.use(passport.session());
  const scope = "openid profile";
  passport.use("latchkey", new Strategy({ config, scope, callbackURL: `${here}/callback` }, (tokens, verified) => {
    verified(null, { ...tokens.claims(), idToken: tokens.id_token });
  }));
  passport.serializeUser((person, done) => done(null, person));
  passport.deserializeUser((person, done) => done(null, person));
  const enter = passport.authenticate("latchkey", { successReturnToOrRedirect: "/private", keepSessionInfo: true });
  app.get("/callback", enter);
  app.get("/private", (request, response, next) => {
    if (request.user) response.json(request.user);
    else enter(request, response, next);
  });
  app.get("/logout", (request, response, next) => {
    const asked = { id_token_hint: request.user?.idToken ?? "", post_logout_redirect_uri: `${here}/bye` };
    request.logout((error) => (error ? next(error) : response.redirect(oidc.buildEndSessionUrl(config, asked).href)));
  });
  return app;
}
// [/show]
