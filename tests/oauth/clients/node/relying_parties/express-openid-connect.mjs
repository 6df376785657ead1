// express-openid-connect, Auth0's own.
// [show]
import express from "express";
import openid from "express-openid-connect";
import sessions from "express-session";

export function site({ issuer, clientId, clientSecret, here, secret }) {
  const app = express();
  app.use(openid.auth({
    issuerBaseURL: issuer,
    baseURL: here, // the redirect URI is {here}/callback
    clientID: clientId,
    clientSecret,
    secret, // seals the cookies
    authRequired: false,
    authorizationParams: { response_type: "code", scope: "openid profile" },
    idTokenSigningAlg: "RS256",
    idpLogout: true, // /logout signs out at Latchkey too, and returns to {here}
    backchannelLogout: { store: new sessions.MemoryStore() }, // the URL is {here}/backchannel-logout
  }));
  app.get("/private", openid.requiresAuth(), (request, response) => response.json(request.oidc.idTokenClaims));
  return app;
}
// [/show]
