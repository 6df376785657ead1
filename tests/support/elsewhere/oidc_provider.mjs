// oidc-provider with one person, whose claims are at userinfo alone, as its defaults have it.
import Provider from "oidc-provider";

const [port, callback, secret] = process.argv.slice(2);
const issuer = `http://localhost:${port}`;
const provider = new Provider(issuer, {
  clients: [{ client_id: "latchkey", client_secret: secret, redirect_uris: [callback], application_type: "native" }],
  claims: { openid: ["sub"], email: ["email", "email_verified"], profile: ["name"] },
  pkce: { required: () => true },
  cookies: { keys: ["a key for tests"] },
  findAccount: (context, id) => ({
    accountId: id,
    claims: () => ({ sub: id, email: `${id}@elsewhere.example`, email_verified: true, name: "Ada Elsewhere" }),
  }),
});
provider.listen(Number(port), "localhost", () => console.log("listening"));
