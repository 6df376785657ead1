"""Lifetimes and rate limits as data, each with the clause it comes from. All lifetimes are in milliseconds."""

from __future__ import annotations

from dataclasses import dataclass

SECOND = 1000
MINUTE = 60 * SECOND
DAY = 24 * 60 * MINUTE

ACCESS_TOKEN = 60 * MINUTE  # SPEC 8.3
REFRESH_TOKEN = 30 * DAY  # SPEC 8.3
GRACE = 30 * DAY  # SPEC 8.3
APP_BEGUN = 10 * MINUTE  # a name in an owner's list without a registration behind it is one that is being made
APPS_SWEEP = 10 * MINUTE  # from one look for open deletions of apps to the next
CODE = 60 * SECOND  # RFC 6749 4.1.2: at most ten minutes
REQUEST = 10 * MINUTE
EMAIL_RESERVATION = 60 * SECOND
INVITE = 7 * DAY
SECOND_STEP = 5 * MINUTE  # from the password to the second step
CHALLENGE = 5 * MINUTE  # for a passkey to answer
PROOF = 10 * MINUTE  # for which a person who showed who it is can change how they sign in
CONFIRM_LINK = DAY
RESET_LINK = 60 * MINUTE
CHANGE_LINK = 60 * MINUTE
UNDO_LINK = 7 * DAY  # takes an account back after a change of its address, or after its first second step
AI_REPLY = DAY  # an idempotency key of an AI call, and the reply under it
DELIVERY = 30 * DAY  # what was told an app, or was to be
CREDIT_KEY = 90 * DAY  # an idempotency key of the operator's: payment back ends try again for days
WEBHOOK_OVERLAP = DAY  # for which the signing secret before the present one signs too
DOMAIN_PROOF = 90 * DAY  # for which a domain counts as proven after a check that found the app
DOMAIN_CHECK = DAY  # from one check of a proven domain to the next
DEVICE = 365 * DAY  # for which a browser that signed a person in is known; less where its key is retired before
MIDDLE, WIDE = 4, 16  # by which the limits of a /56 and of a /48 or an IPv4 /24 are larger than those of one address
# Sealed things that give access live at most this long, and a server notes hourly which key it seals with.
LONGEST_SEALED = 30 * DAY + DAY


@dataclass(frozen=True, slots=True)
class Group:
    """A sliding window: `limit` requests per `period` ms. SPEC 8.1."""

    name: str
    limit: int
    period: int = MINUTE


OAUTH = Group("oauth", 100)  # SPEC 8.1: /api/oauth/*, per user, shared by all apps
AUTHORIZE = Group("authorize", 60)  # each leaves a pending request for ten minutes
ADDRESS = Group("address", 100)  # requests to /api/oauth/* whose user is unknown
SIGN_IN_ADDRESS = Group("signin-address", 20)
# A known device counts here alone. Beyond that it counts as any browser, until a day has passed.
SIGN_IN_DEVICE = Group("signin-device", 20, DAY)  # per (person, device)
SIGN_IN_DEVICES = Group("signin-devices", 100, DAY)  # per person: whoever signs in often has many devices
SIGN_IN_ACCOUNT = Group("signin-account", 20, 15 * MINUTE)
# Passwords typed by who is signed in. What a thief types with a stolen cookie closes no form in the other sessions.
OWN_PASSWORD = Group("own-password", 20, 15 * MINUTE)  # per session
OWN_PASSWORDS = Group("own-password", 60, 15 * MINUTE)  # per person
# Confirmations by a passkey, per person: each lets a change pass that is mailed. Only right answers count.
OWN_PASSKEY = Group("own-passkey", 60, OWN_PASSWORDS.period)
MISTYPED = Group("mistyped", 1, 60 * MINUTE)  # lines of the activity on wrong passwords, per session
# Wrong codes of the second step in a row, of strangers or of a known device: then a pause, twice as long each time.
FACTOR = Group("factor", 10, 15 * MINUTE)
FACTOR_LONGEST = DAY
FACTOR_MOST = 100  # then no code counts until there is another password
FACTOR_LEFT = FACTOR_MOST - FACTOR.limit  # that count after a reset by mail, at most
SIGN_UP_ADDRESS = Group("signup-address", 20, 60 * MINUTE)
REGISTER_APP = Group("register-app", 30, 60 * MINUTE)  # deleting one is work in every shard
# Changes of apps, per person: each is mailed to the owner, and every process reads the app again.
CHANGE_APP = Group("change-app", 60, 60 * MINUTE)
RENAME = Group("rename", 20, 60 * MINUTE)  # names that a person takes
FORGOT_ADDRESS = Group("forgot-address", 20, 60 * MINUTE)
# Mails to an address that somebody typed, with an account or without: asked for in one network, and in all of them.
MAIL_TO = Group("mail-to", 5, 60 * MINUTE)
MAIL_TO_ALL = Group("mail-to", 20, 60 * MINUTE)
MAIL_DEVICE = Group("mail-device", 5, 60 * MINUTE)  # forgotten passwords, per (person, known device)
MAIL_DEVICES = Group("mail-devices", 10, 60 * MINUTE)  # per person: whoever signs in often has many devices
MAIL = Group("mail", 5, 60 * MINUTE)  # links of one purpose, for a person
# What the windows before it let through, strangers and known devices together, this one never refuses.
MAIL_RESET = Group("mail", MAIL_TO_ALL.limit + MAIL_DEVICES.limit, 60 * MINUTE)
SPENDING_MAIL = Group("spending-mail", 10, DAY)  # mails to a person that an app may spend more
WEBHOOK_SENT = Group("webhook-sent", 60, 60 * MINUTE)  # events that an owner sends by hand, per person
VERIFY_DOMAIN = Group("verify-domain", 20, 60 * MINUTE)  # domains that an owner has checked, per person
PICTURE = Group("picture", 20, 60 * MINUTE)  # pictures a person uploads
# SPEC 8.1: per (app, user) pair.
DATA_READ = Group("data-read", 300)
DATA_WRITE = Group("data-write", 60)
DATA_LIST = Group("data-list", 60)
CREDITS_READ = Group("credits-read", 300)
APPS_READ = Group("apps-read", 300)
AI_MODELS = Group("ai-models", 60)  # lists of models, counts of tokens
AI = Group("ai", 20)  # SPEC 8.1: per user, shared by all apps
