// express-openid-connect, Auth0's own.
// [show]
import express from "express";
import openid from "express-openid-connect";

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
    idpLogout: true,
  }));
  app.get("/private", openid.requiresAuth(), (request, response) => response.json(request.oidc.idTokenClaims));
  return app;
}
// [/show]
