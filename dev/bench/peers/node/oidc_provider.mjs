// node oidc-provider over Redis: refresh, userinfo, introspection, pushed authorization requests, DPoP.
//
//   PORT=… REDIS=/path/to.sock TOKENS=1000 OUT=tokens.json THUMBPRINTS=keys.json node oidc_provider.mjs
//
// Writes OUT with access tokens, access tokens bound to the keys with THUMBPRINTS, refresh tokens of each client, and
// cookies of people who signed in and consented, then listens. Access tokens are opaque. Accounts and
// clients are constants, so neither costs a look-up.
import { readFileSync, writeFileSync } from "node:fs";
import { createHmac, generateKeyPairSync } from "node:crypto";
import Redis from "ioredis";
import Provider from "oidc-provider";

const { PORT, REDIS, TOKENS, OUT, THUMBPRINTS } = process.env;
const redis = new Redis({ path: REDIS, db: 0 });

// What can be revoked with its grant, as the adapters of the project's own examples have it.
const OF_A_GRANT = new Set(["AccessToken", "AuthorizationCode", "RefreshToken"]);
const CONSUMED = new Set(["AuthorizationCode", "PushedAuthorizationRequest", "RefreshToken"]);

class RedisAdapter {
  constructor(model) {
    this.model = model;
  }

  key(id) {
    return `${this.model}:${id}`;
  }

  async upsert(id, payload, expiresIn) {
    const key = this.key(id);
    const text = JSON.stringify(payload);
    const pipe = redis.pipeline();
    if (CONSUMED.has(this.model)) {
      pipe.hset(key, "payload", text);
      if (expiresIn) pipe.expire(key, expiresIn);
    } else if (expiresIn) {
      pipe.set(key, text, "EX", expiresIn);
    } else {
      pipe.set(key, text);
    }
    if (payload.grantId && OF_A_GRANT.has(this.model)) {
      const members = `members:${payload.grantId}`;
      pipe.rpush(members, key);
      pipe.expire(members, expiresIn, "NX");
      pipe.expire(members, expiresIn, "GT");
    }
    if (payload.uid) pipe.set(`uid:${payload.uid}`, id, "EX", expiresIn);
    await pipe.exec();
  }

  async find(id) {
    if (!CONSUMED.has(this.model)) {
      const text = await redis.get(this.key(id));
      return text ? JSON.parse(text) : undefined;
    }
    const { payload, consumed } = await redis.hgetall(this.key(id));
    if (!payload) return undefined;
    return consumed ? { ...JSON.parse(payload), consumed: Number(consumed) } : JSON.parse(payload);
  }

  async findByUid(uid) {
    return this.find(await redis.get(`uid:${uid}`));
  }

  async findByUserCode() {
    return undefined;
  }

  async consume(id) {
    await redis.hset(this.key(id), "consumed", Math.floor(Date.now() / 1000));
  }

  async destroy(id) {
    await redis.unlink(this.key(id));
  }

  async revokeByGrantId(grantId) {
    const members = `members:${grantId}`;
    await redis.unlink(members, ...(await redis.lrange(members, 0, -1)));
  }
}

// Rotation at every refresh is what Latchkey does; by default this provider rotates near the end of a token's life.
const CLIENTS = ["rotating", "keeping"];
const COOKIE_KEY = "a key of cookies that nobody sees";
const key = generateKeyPairSync("ec", { namedCurve: "P-256" }).privateKey.export({ format: "jwk" });
const provider = new Provider(`http://127.0.0.1:${PORT}`, {
  adapter: RedisAdapter,
  clients: CLIENTS.map((client_id) => ({
    client_id,
    client_secret: "a-secret-of-32-characters-or-more",
    grant_types: ["authorization_code", "refresh_token"],
    redirect_uris: ["https://app.example.com/callback"],
    token_endpoint_auth_method: "client_secret_post",
    id_token_signed_response_alg: "ES256",
  })),
  jwks: { keys: [{ ...key, alg: "ES256", use: "sig", kid: "one" }] },
  cookies: { keys: [COOKIE_KEY] },
  features: {
    devInteractions: { enabled: false },
    dPoP: { enabled: true },
    introspection: { enabled: true },
    pushedAuthorizationRequests: { enabled: true },
  },
  claims: { email: ["email", "email_verified"], profile: ["name", "picture"] },
  rotateRefreshToken: (ctx) => ctx.oidc.client.clientId === "rotating",
  ttl: { AccessToken: 3600, Grant: 30 * 86400, IdToken: 3600, RefreshToken: 30 * 86400, Session: 30 * 86400 },
  findAccount: (ctx, sub) => ({
    accountId: sub,
    claims: () => ({ sub, email: "ada@example.com", email_verified: true, name: "Ada Lovelace", picture: "" }),
  }),
});
provider.on("server_error", (ctx, error) => console.error(error));

async function granted(clientId, scope) {
  const client = await provider.Client.find(clientId);
  const accountId = `user-${Math.random().toString(16).slice(2)}`;
  const grant = new provider.Grant({ accountId, clientId });
  grant.addOIDCScope(scope);
  const grantId = await grant.save();
  return { accountId, client, grantId, gty: "authorization_code", scope, expiresWithSession: false, claims: {} };
}

async function tokens(Model, count, clientId, scope, more = () => ({})) {
  const made = [];
  for (let number = 0; number < count; number += 1) {
    made.push(await new Model({ ...(await granted(clientId, scope)), ...more(number) }).save());
  }
  return made;
}

// Signed as the library signs its cookies.
async function cookies(count, clientId, scope) {
  const made = [];
  for (let number = 0; number < count; number += 1) {
    const { accountId, grantId } = await granted(clientId, scope);
    const loginTs = Math.floor(Date.now() / 1000);
    const session = new provider.Session({ accountId, loginTs, authorizations: { [clientId]: { grantId } } });
    const pair = `_session=${await session.save(30 * 86400)}`;
    const signature = createHmac("sha1", COOKIE_KEY).update(pair).digest("base64url");
    made.push(`${pair}; _session.sig=${signature}`);
  }
  return made;
}

const { AccessToken, RefreshToken } = provider;
const thumbprints = JSON.parse(readFileSync(THUMBPRINTS, "utf8"));
const bound = (number) => ({ jkt: thumbprints[number] });
writeFileSync(
  OUT,
  JSON.stringify({
    access: await tokens(AccessToken, 1000, "rotating", "openid profile email"),
    bound: await tokens(AccessToken, thumbprints.length, "rotating", "openid profile email", bound),
    cookies: await cookies(1000, "rotating", "openid profile"),
    rotating: await tokens(RefreshToken, TOKENS, "rotating", "offline_access"),
    keeping: await tokens(RefreshToken, TOKENS, "keeping", "offline_access"),
    openid: await tokens(RefreshToken, TOKENS, "rotating", "openid profile email offline_access"),
  }),
);
provider.listen(PORT, "127.0.0.1");
