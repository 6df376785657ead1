// @node-oauth/oauth2-server on Express over Redis: refresh, and a resource behind a bearer token.
//
//   PORT=… REDIS=/path/to.sock TOKENS=1000 OUT=tokens.json node oauth2_server.mjs
//
// Writes OUT with access and refresh tokens, then listens. Accounts and clients are constants.
import { writeFileSync } from "node:fs";
import OAuth2Server from "@node-oauth/oauth2-server";
import express from "express";
import Redis from "ioredis";

const { PORT, REDIS, TOKENS, OUT } = process.env;
const redis = new Redis({ path: REDIS, db: 1 });
const HOUR = 3600;
const MONTH = 30 * 86400;
const client = { id: "bench", grants: ["authorization_code", "refresh_token"], redirectUris: [] };
const profile = { email: "ada@example.com", email_verified: true, name: "Ada Lovelace", picture: "" };

async function read(kind, token) {
  const text = await redis.get(`${kind}:${token}`);
  if (!text) return null;
  const row = JSON.parse(text);
  const expires = new Date(row.expires);
  return kind === "access"
    ? { accessToken: token, accessTokenExpiresAt: expires, scope: row.scope, client, user: { id: row.user } }
    : { refreshToken: token, refreshTokenExpiresAt: expires, scope: row.scope, client, user: { id: row.user } };
}

const model = {
  getClient: async (id, secret) => (id === client.id && secret === "a-secret-of-32-characters-or-more" ? client : null),
  getAccessToken: (token) => read("access", token),
  getRefreshToken: (token) => read("refresh", token),
  revokeToken: async (token) => (await redis.del(`refresh:${token.refreshToken}`)) === 1,
  async saveToken(token, _client, user) {
    const row = (expires) => JSON.stringify({ user: user.id, scope: token.scope, expires });
    const pipe = redis.pipeline();
    pipe.set(`access:${token.accessToken}`, row(token.accessTokenExpiresAt), "EX", HOUR);
    if (token.refreshToken) {
      pipe.set(`refresh:${token.refreshToken}`, row(token.refreshTokenExpiresAt), "EX", MONTH);
    }
    await pipe.exec();
    return { ...token, client, user };
  },
};

const oauth = new OAuth2Server({ model, accessTokenLifetime: HOUR, refreshTokenLifetime: MONTH });
const app = express();

const answered = (work) => async (req, res) => {
  const request = new OAuth2Server.Request(req);
  const response = new OAuth2Server.Response(res);
  try {
    await work(request, response, res);
  } catch (error) {
    res.status(error.code || 500).json({ error: error.name });
  }
};

app.post(
  "/token",
  express.urlencoded({ extended: false }),
  answered(async (request, response, res) => {
    await oauth.token(request, response);
    res.set(response.headers).status(response.status).json(response.body);
  }),
);
app.get(
  "/me",
  answered(async (request, response, res) => {
    const token = await oauth.authenticate(request, response);
    res.json({ sub: token.user.id, ...profile });
  }),
);

const made = { access: [], refresh: [] };
for (let number = 0; number < TOKENS; number += 1) {
  const [access, refresh] = ["a", "r"].map((kind) => kind + String(number).padStart(63, "0"));
  const [hour, month] = [HOUR, MONTH].map((seconds) => new Date(Date.now() + 1000 * seconds));
  await model.saveToken(
    {
      accessToken: access,
      accessTokenExpiresAt: hour,
      refreshToken: refresh,
      refreshTokenExpiresAt: month,
      scope: ["profile"],
    },
    client,
    { id: `user-${number}` },
  );
  made.access.push(access);
  made.refresh.push(refresh);
}
writeFileSync(OUT, JSON.stringify(made));
app.listen(PORT, "127.0.0.1");
