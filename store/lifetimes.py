"""Lifetimes and rate limits as data, each with its clause. All lifetimes are in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE

ACCESS_TOKEN = 60 * MINUTE  # SPEC 8.3
REFRESH_TOKEN = 30 * DAY  # SPEC 8.3
GRACE = 30 * DAY  # SPEC 8.3
APP_BEGUN = 10 * MINUTE  # an app in its owner's list without a registration is still being created for this long
APPS_SWEEP = 10 * MINUTE  # between two searches for unfinished deletions of apps
DPOP_MARK = 3 * MINUTE  # how long a used DPoP proof is known: it is fresh for two minutes at most, and clocks differ
CODE = 60 * SECOND  # RFC 6749 4.1.2: at most ten minutes
REQUEST = 10 * MINUTE
DEVICE_REQUEST = 10 * MINUTE  # RFC 8628 3.2: for a person to come with the code, and for the device to fetch the tokens
DEVICE_CLAIM = 60 * SECOND  # for the decision on a device to be written; then somebody may decide again
PUSHED = 90_000  # a pushed request, until its browser arrives
ASSERTION = 12 * MINUTE  # the mark of a used client assertion: its ten minutes, and clocks that differ
ID_JAG_LIFE = 60 * MINUTE  # how far away the end of an identity provider's assertion may be
ID_JAG = ID_JAG_LIFE + 3 * MINUTE  # the mark of a used one: its life, and clocks that differ
DOCUMENT_PAUSE = 10 * SECOND  # between two fetches of one client ID metadata document
UNUSED_APP = 90 * DAY  # an app that registered itself, without a consent or a token
EMAIL_RESERVATION = 60 * SECOND
IMPORT = 7 * DAY  # how far an interrupted import has come
INVITE = 7 * DAY
TEAM_INVITATION = 7 * DAY  # to the team of an app
SAME_INVITE = 60 * MINUTE  # in which asking again mails the same invitation
SECOND_STEP = 5 * MINUTE  # from the password to the second step
SECOND_STEP_SETUP = 15 * MINUTE  # the same, for people who set the second step up first
BROWSER_SESSION = DAY  # the longest session of a person who does not stay signed in: some browsers keep all cookies
CHALLENGE = 5 * MINUTE  # for a passkey to answer
PROOF = 10 * MINUTE  # how long after re-authentication a person can change how they sign in
CONFIRM_LINK = DAY
RESET_LINK = 60 * MINUTE
CHANGE_LINK = 60 * MINUTE
UNDO_LINK = 7 * DAY  # takes an account back after a change of its address, or after its first second step
AI_REPLY = DAY  # an idempotency key of an AI call, and the reply under it
USAGE = 400 * DAY  # what AI calls used, after the last change of its rows
SPENDING = 2 * DAY  # how long the slices of an app's daily limit are known: the day, and clocks that differ
OPERATOR_JOB = DAY  # long work of operators, after it was prepared or begun
OPERATOR_REPLY = DAY  # an idempotency key of an operator's write, and the reply under it
DELIVERY = 30 * DAY  # a webhook delivery, sent or waiting
ATTEMPT = 14 * DAY  # an attempt at a delivery; the stream of an app ends 14 days after its last one, so all within 30
CREDIT_KEY = 90 * DAY  # an idempotency key of the operator's: payment back ends retry for days
WEBHOOK_OVERLAP = DAY  # how long the previous signing secret also signs
DOMAIN_PROOF = 90 * DAY  # how long a domain counts as verified after a check that found the app
DOMAIN_CHECK = DAY  # between two checks of a verified domain
DEVICE = 365 * DAY  # how long a browser that signed a person in is known; shorter if its key is retired
ACCOUNT_LIST = 180 * DAY  # how long a browser lists who signed in; shorter if its key is retired
MIDDLE, WIDE = 4, 16  # times the limit of one address: the limit of a /56, and of a /48 or an IPv4 /24
# Sealed texts that give access live at most this long, and a server notes hourly which key it seals with.
LONGEST_SEALED = 30 * DAY + DAY
SIGNED_TOKEN = 60 * MINUTE  # the longest life of a token that others verify by its signature
SIGNING_AHEAD = DAY  # how long a signing key is published before it signs: caches of the set expire by then
SIGNING_MARGIN = 10 * MINUTE  # how much longer a key is published than its last token lives, for clocks that differ


@dataclass(frozen=True, slots=True)
class Group:
    """A sliding window: `limit` requests per `period` ms. SPEC 8.1."""

    name: str
    limit: int
    period: int = MINUTE


OAUTH = Group("oauth", 100)  # SPEC 8.1: /api/oauth/*, per user, shared by all apps
INTROSPECT = Group("introspect", 6000)  # per app or API that asks; an operator may set another limit
CLIENT = Group("client", 600)  # calls that an app makes for itself
PUBLIC_CLIENT = Group("public-client", 60)  # the same for an app without a secret, per address
DEVICE_REQUESTS = Group("device-requests", 6000)  # of one public app from all addresses
# Wrong codes of devices (RFC 8628 5.1): of 20^8 codes some thousand are alive at a time.
DEVICE_CODE = Group("device-code", 10, 15 * MINUTE)  # per person
DEVICE_CODE_ADDRESS = Group("device-code-address", 60, 60 * MINUTE)
DEVICE_CODE_ALL = Group("device-code-all", 10_000, 60 * MINUTE)  # of everybody together
AUTHORIZE = Group("authorize", 60)  # each leaves a pending request for ten minutes
ADDRESS = Group("address", 100)  # requests to /api/oauth/* whose user is unknown
SIGN_IN_ADDRESS = Group("signin-address", 20)
# A known device counts here alone. Beyond this limit it counts as any browser, until a day has passed.
SIGN_IN_DEVICE = Group("signin-device", 20, DAY)  # per (person, device)
SIGN_IN_DEVICES = Group("signin-devices", 100, DAY)  # per person: people who sign in often have many devices
SIGN_IN_ACCOUNT = Group("signin-account", 20, 15 * MINUTE)
# Passwords typed in a live session. A thief's tries with a stolen cookie block no form in the other sessions.
OWN_PASSWORD = Group("own-password", 20, 15 * MINUTE)  # per session
OWN_PASSWORDS = Group("own-password", 60, 15 * MINUTE)  # per person
# Confirmations by a passkey, per person: each allows a change that sends a mail. Only right answers count.
OWN_PASSKEY = Group("own-passkey", 60, OWN_PASSWORDS.period)
MISTYPED = Group("mistyped", 1, 60 * MINUTE)  # lines about wrong passwords in the activity, per session
# Wrong codes in a row at the second step, from strangers or a known device. A pause follows, twice as long each time.
FACTOR = Group("factor", 10, 15 * MINUTE)
FACTOR_LONGEST = DAY
FACTOR_MOST = 100  # wrong codes after which no code counts until the password changes
FACTOR_LEFT = FACTOR_MOST - FACTOR.limit  # the most wrong codes that still count after a reset by mail
SIGN_UP_ADDRESS = Group("signup-address", 20, 60 * MINUTE)
REGISTER_APP = Group("register-app", 30, 60 * MINUTE)  # deleting one is work in every shard
# Changes of apps, per person: each sends the owner a mail, and every process reads the app again.
CHANGE_APP = Group("change-app", 60, 60 * MINUTE)
RENAME = Group("rename", 20, 60 * MINUTE)  # names and preferences that a person takes
REGISTER_CLIENT = Group("register-client", 20, 60 * MINUTE)  # apps that register themselves, per address
CLIENT_DOCUMENT = Group("client-document", 60, 60 * MINUTE)  # fetches of metadata documents, per address and host
ALL_ADDRESSES = 50  # times that limit, for all addresses together
FORGOT_ADDRESS = Group("forgot-address", 20, 60 * MINUTE)
# Mails to an address that somebody typed, with or without an account: requested from one network, and from all.
MAIL_TO = Group("mail-to", 5, 60 * MINUTE)
MAIL_TO_ALL = Group("mail-to", 20, 60 * MINUTE)
MAIL_DEVICE = Group("mail-device", 5, 60 * MINUTE)  # forgotten passwords, per (person, known device)
MAIL_DEVICES = Group("mail-devices", 10, 60 * MINUTE)  # per person: people who sign in often have many devices
MAIL = Group("mail", 5, 60 * MINUTE)  # links of one purpose, for a person
# The limits above, of strangers and known devices together: this window never refuses what they admit.
MAIL_RESET = Group("mail", MAIL_TO_ALL.limit + MAIL_DEVICES.limit, 60 * MINUTE)
SPENDING_MAIL = Group("spending-mail", 10, DAY)  # mails that tell a person that an app may spend more
INVITE_MEMBER = Group("invite-member", 20, DAY)  # mails that invite people to teams of apps, per inviter
WEBHOOK_SENT = Group("webhook-sent", 60, 60 * MINUTE)  # events that an owner sends by hand, per person
VERIFY_DOMAIN = Group("verify-domain", 20, 60 * MINUTE)  # checks of a domain that an owner starts, per person
CHECKOUT = Group("checkout", 20, 60 * MINUTE)  # purchases of credits that a person starts
PICTURE = Group("picture", 20, 60 * MINUTE)  # pictures a person uploads
# SPEC 8.1: per (app, user) pair.
DATA_READ = Group("data-read", 300)
DATA_WRITE = Group("data-write", 60)
DATA_LIST = Group("data-list", 60)
CREDITS_READ = Group("credits-read", 300)
CREDITS_USAGE = Group("credits-usage", 60)
MCP_MESSAGES = Group("mcp", 300)  # messages of the Model Context Protocol that call no tool, and mistakes
APPS_READ = Group("apps-read", 300)
AI_MODELS = Group("ai-models", 60)  # lists of models, counts of tokens
AI = Group("ai", 20)  # SPEC 8.1: per user, shared by all apps
