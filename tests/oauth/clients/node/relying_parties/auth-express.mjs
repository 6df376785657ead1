// Auth.js in Express. Next.js, SvelteKit and the others take the same provider.
import express from "express";
// [show]
import { ExpressAuth, getSession } from "@auth/express";

export const provider = ({ issuer, clientId, clientSecret }) => ({
  id: "latchkey",
  name: "Latchkey",
  type: "oidc",
  issuer,
  clientId,
  clientSecret,
  checks: ["pkce", "state", "nonce"], // Latchkey requires a state
});

export function configure(client, secret) {
  return {
    providers: [provider(client)], // the redirect URI is /auth/callback/latchkey
    secret, // seals the cookies
    trustHost: true,
    callbacks: {
      jwt: ({ token, profile }) => (profile ? { ...token, sub: profile.sub } : token),
      session: ({ session, token }) => ({ ...session, user: { ...session.user, id: token.sub } }),
    },
  };
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
  return app;
}
