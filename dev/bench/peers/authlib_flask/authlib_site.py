"""Authlib's OAuth 2.0 server on Flask, with its SQLAlchemy mixins over SQLite: refresh, and a protected resource.

DATABASE=/path/to.db TOKENS=1000 OUT=tokens.json python authlib_site.py creates the tables and tokens; gunicorn serves
`authlib_site:app`.
"""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from authlib.integrations.flask_oauth2 import AuthorizationServer, ResourceProtector, current_token
from authlib.integrations.sqla_oauth2 import (
    OAuth2ClientMixin,
    OAuth2TokenMixin,
    create_bearer_token_validator,
    create_query_client_func,
    create_save_token_func,
)
from authlib.oauth2.rfc6749 import grants
from flask import Flask, jsonify
from flask_sqlalchemy import SQLAlchemy
from sqlalchemy import event

app = Flask(__name__)
app.config["SQLALCHEMY_DATABASE_URI"] = f"sqlite:///{os.environ['DATABASE']}"
app.config["OAUTH2_REFRESH_TOKEN_GENERATOR"] = True
db = SQLAlchemy(app)


class User(db.Model):
    """A person."""

    id = db.Column(db.Integer, primary_key=True)
    email = db.Column(db.String(80), unique=True)
    name = db.Column(db.String(80))

    def get_user_id(self) -> int:
        """The user id, for Authlib."""
        return int(self.id)


class Client(db.Model, OAuth2ClientMixin):
    """An app."""

    id = db.Column(db.Integer, primary_key=True)


class Token(db.Model, OAuth2TokenMixin):
    """An access token with its refresh token."""

    __table_args__ = (db.Index("refresh", "refresh_token"),)
    id = db.Column(db.Integer, primary_key=True)
    user_id = db.Column(db.Integer, db.ForeignKey("user.id"))
    user = db.relationship("User")


class RefreshTokenGrant(grants.RefreshTokenGrant):
    """The refresh grant, with rotation."""

    TOKEN_ENDPOINT_AUTH_METHODS = ("client_secret_post",)
    INCLUDE_NEW_REFRESH_TOKEN = True

    def authenticate_refresh_token(self, refresh_token: str) -> Token | None:
        """The presented token, if it is live."""
        token = Token.query.filter_by(refresh_token=refresh_token).first()
        return token if token and not token.is_revoked() else None

    def authenticate_user(self, credential: Token) -> User | None:
        """The owner of the token."""
        return db.session.get(User, credential.user_id)

    def revoke_old_credential(self, credential: Token) -> None:
        """Ends the presented token."""
        now = int(time.time())
        credential.access_token_revoked_at = credential.refresh_token_revoked_at = now
        db.session.add(credential)
        db.session.commit()


server = AuthorizationServer(
    app, query_client=create_query_client_func(db.session, Client), save_token=create_save_token_func(db.session, Token)
)
server.register_grant(RefreshTokenGrant)
protect = ResourceProtector()
protect.register_token_validator(create_bearer_token_validator(db.session, Token)())


@app.post("/token")
def issue():
    """The token endpoint."""
    return server.create_token_response()


@app.get("/me")
@protect("profile")
def me():
    """The userinfo endpoint."""
    user = current_token.user
    return jsonify(sub=str(user.id), email=user.email, email_verified=True, name=user.name, picture="")


with app.app_context():

    @event.listens_for(db.engine, "connect")
    def tune(connection, _record):
        """Sets SQLite up for speed."""
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")


def fill(count: int) -> dict[str, list[str]]:
    """Creates the tables, a client, and people with tokens."""
    db.create_all()
    client = Client(client_id="bench", client_secret="a-secret-of-32-characters-or-more", client_id_issued_at=0)
    client.set_client_metadata(
        {
            "grant_types": ["authorization_code", "refresh_token"],
            "scope": "profile",
            "token_endpoint_auth_method": "client_secret_post",
        }
    )
    db.session.add(client)
    made = {"access": [f"a{number:041d}" for number in range(count)], "refresh": [f"r{n:047d}" for n in range(count)]}
    now = int(time.time())
    for number, (access, refresh) in enumerate(zip(made["access"], made["refresh"], strict=True), 1):
        db.session.add(User(id=number, email=f"ada{number}@example.com", name="Ada Lovelace"))
        db.session.add(
            Token(
                user_id=number,
                client_id="bench",
                token_type="Bearer",
                access_token=access,
                refresh_token=refresh,
                scope="profile",
                issued_at=now,
                expires_in=30 * 86400,
            )
        )
    db.session.commit()
    return made


if __name__ == "__main__":
    with app.app_context():
        Path(os.environ["OUT"]).write_text(json.dumps(fill(int(os.environ["TOKENS"]))))
