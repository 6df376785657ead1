// Auth.js in Express. Next.js, SvelteKit and the others take the same provider.
import express from "express";
// [show]
import { Auth, skipCSRFCheck } from "@auth/core";
import { getToken } from "@auth/core/jwt";
import { ExpressAuth, getSession } from "@auth/express";

export const provider = ({ issuer, clientId, clientSecret }) => ({
  id: "latchkey",
  name: "Latchkey",
  type: "oidc",
  issuer,
  clientId,
  clientSecret,
  checks: ["pkce", "state", "nonce"],
});

export function configure(client, secret) {
  return {
    basePath: "/auth",
    providers: [provider(client)], // the redirect URI is /auth/callback/latchkey
    secret, // seals the cookies
    trustHost: true,
    callbacks: {
      jwt: ({ token, account, profile }) =>
        account ? { ...token, sub: profile.sub, idToken: account.id_token } : token,
      session: ({ session, token }) => ({ ...session, user: { ...session.user, id: token.sub } }),
    },
  };
}

// Ends the session here, and leads on to the one at Latchkey, which leads back to {here}/bye.
export async function signOut(request, response, config, { issuer, clientId, here }) {
  const headers = { cookie: request.headers.cookie ?? "" };
  const token = await getToken({ req: { headers }, secret: config.secret, secureCookie: here.startsWith("https:") });
  const ending = new Request(`${here}/auth/signout`, { method: "POST", headers });
  const ended = await Auth(ending, { ...config, skipCSRFCheck });
  response.setHeader("Set-Cookie", ended.headers.getSetCookie());
  const found = await fetch(`${issuer}/.well-known/openid-configuration`);
  const asked = new URLSearchParams({ client_id: clientId, post_logout_redirect_uri: `${here}/bye` });
  if (token) asked.set("id_token_hint", token.idToken);
  response.redirect(`${(await found.json()).end_session_endpoint}?${asked}`);
}
// [/show]

export function site({ secret, ...client }) {
  const app = express();
  const config = configure(client, secret);
  app.use("/auth", ExpressAuth(config));
  app.get("/private", async (request, response) => {
    const session = await getSession(request, config);
    if (session) response.json({ sub: session.user.id, name: session.user.name });
    else response.redirect("/auth/signin?callbackUrl=/private");
  });
  app.get("/logout", (request, response) => signOut(request, response, config, client));
  return app;
}
