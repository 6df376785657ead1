"""The commands of `user`."""

from __future__ import annotations

from cli.apis_parser import Verbs
from cli.apps_parser import limit

ANY, WAYS = "any", ("any", "address", "name", "domain")
"""As `store/directory/queries.py` has them: the parser loads nothing of the store."""


def add_users(verb: Verbs) -> None:
    """Declares the verbs of `user`."""
    about = "read the password, or ask for it at a terminal; without this flag one is made and printed"
    create = verb(
        "create",
        "people.create_user",
        "make an account; its address counts as confirmed",
        "--email ada@example.com --name Ada",
        "--email ada@example.com --name Ada --password-stdin",
    )
    create.add_argument("--name", metavar="N", required=True, help="what apps and other people see")
    create.add_argument("--password-stdin", action="store_true", help=about)
    about_groups = "a group for the person, which apps see with the scope `groups`; may be repeated"
    create.add_argument("--group", metavar="G", action="append", dest="groups", default=[], help=about_groups)
    create.set_defaults(password=None)
    invite = verb(
        "invite",
        "people.invite_user",
        "make a link to sign up with this address; needs --base-url",
        "--email ada@example.com --base-url https://id.example.org",
    )
    for named in (create, invite):
        named.add_argument("--email", metavar="E", required=True, help="the address that the person signs in with")
    listed = verb(
        "list",
        "people.list_users",
        "list everybody, or the people who match",
        "",
        "--query ada@example.com --json",
        "--status suspended --limit 20",
        "--stream",
    )
    about_query = "the beginning of an address or of a word of a name; a domain; or a whole address or `sub`"
    listed.add_argument("--query", metavar="Q", default="", help=about_query)
    listed.add_argument("--by", choices=WAYS, default=ANY, help="what the query is compared with; default: any")
    states = ("active", "disabled", "suspended")
    about_status = "active, disabled, or suspended: disabled with a reason"
    listed.add_argument("--status", metavar="S", choices=states, default="", help=about_status)
    about_limit = "people on a page: 1 to 100; the answer has the cursor of the next page"
    listed.add_argument("--limit", metavar="N", type=limit, help=about_limit)
    listed.add_argument("--cursor", metavar="C", help="the cursor from the page before")
    listed.add_argument("--stream", action="store_true", help="print one JSON object a line, as people are read")
    verb("reindex", "people.reindex", "compare the search index with everybody, and correct it", "")
    question = "Delete {email}, with everything apps keep for this person?"
    ada = "ada@example.com"
    reset = verb("set-password", "people.set_password", "give a person a new password; every session ends", ada)
    reset.add_argument("--password-stdin", action="store_true", help=about)
    reset.set_defaults(password=None)
    export = verb(
        "export",
        "export.export_user",
        "export everything that is stored about a person",
        f"{ada} --output ada.zip",
        f"{ada} --format jsonl --output -",
    )
    export.add_argument("--output", metavar="FILE", required=True, help="- is standard output")
    export.add_argument("--format", choices=("zip", "jsonl"), default="zip", help="zip or jsonl; default: zip")
    update = verb(
        "update",
        "person_parts.update_user",
        "change a person's address or name; both addresses get an e-mail",
        f"{ada} --email ada@example.org",
        f'{ada} --name "Ada King"',
    )
    update.add_argument("--email", metavar="E", dest="new_email", help="the new address; it counts as confirmed")
    update.add_argument("--name", metavar="N", help="what apps and other people see")
    about = "with --email: the old mailbox isn't theirs any more, so it gets no link that undoes the change"
    update.add_argument("--no-way-back", dest="way_back", action="store_false", help=about)
    suspend = verb(
        "suspend",
        "people.suspend_user",
        "disable a person, who sees the reason when signing in",
        f'{ada} --reason "Unpaid since May"',
        f'{ada} --reason "Under review" --note "Ticket 4711" --until 2027-01-31',
    )
    suspend.add_argument("--reason", metavar="R", required=True, help="shown to the person who signs in; one line")
    suspend.add_argument("--note", metavar="N", default="", help="for operators, never shown to the person")
    suspend.add_argument("--until", metavar="DATE", help="a date or time (UTC) from which the person may sign in again")
    delete = verb(
        "delete",
        "people.delete_user",
        "delete a person and all their data, at once or after some days",
        ada,
        f'{ada} --wait 7 --reason "Asked for by post" --yes',
        ask=question,
    )
    delete.add_argument(
        "--wait", metavar="DAYS", type=int, help="disable now, and delete in 1 to 90 days; the person gets an e-mail"
    )
    delete.add_argument("--reason", metavar="R", default="", help="with --wait: shown to the person; one line")
    disconnect = verb(
        "disconnect",
        "people.disconnect_app",
        "disconnect an app from a person; its documents are kept for 30 days",
        f"{ada} notes",
    )
    listed_sessions = verb("sessions", "person_parts.list_sessions", "list a person's sessions, newest first", ada)
    end_session = verb(
        "end-session",
        "person_parts.end_session",
        "end one session of a person; apps keep their access",
        f"{ada} 4cTJmRk3nEWw0pYzQe1uZA",
    )
    identities = verb("identities", "person_parts.list_identities", "list a person's accounts at other sites", ada)
    unlink = verb(
        "unlink",
        "person_parts.unlink",
        "disconnect an account at another site, unless it is the only way to sign in",
        f"{ada} 9mC2Yv0bQ7u1rTjXk3eZsA",
    )
    bulk = verb(
        "bulk",
        "bulk.bulk_users",
        "act on up to 1,000 people: a dry run first, then with --token the act itself",
        'suspend --query @example.org --reason "The contract ended"',
        "suspend --token TOKEN",
        "delete --file people.txt --wait 7",
        "cancel-deletion --file people.txt",
    )
    acts = ("suspend", "resume", "sign-out", "delete", "cancel-deletion")
    bulk.add_argument("act", choices=acts, help="what to do to each of them")
    bulk.add_argument("--token", metavar="T", default="", help="the token that the dry run printed")
    bulk.add_argument("--file", metavar="FILE", help="a `sub` on each line; - is standard input")
    bulk.add_argument("--query", metavar="Q", default="", help="people whom `user list` finds, instead of a file")
    bulk.add_argument("--status", metavar="S", choices=states, default="", help="only people with this status")
    about = "of `delete`: disable now, and delete in 1 to 90 days; each person gets an e-mail"
    bulk.add_argument("--wait", metavar="DAYS", type=int, help=about)
    about = "of a suspension, or with --wait: shown to people who sign in"
    bulk.add_argument("--reason", metavar="R", default="", help=about)
    bulk.add_argument("--note", metavar="N", default="", help="of a suspension: for operators, never shown to people")
    bulk.add_argument("--until", metavar="DATE", default="", help="of a suspension: when it ends")
    about = "show a person: second step, connected apps, newest activity"
    for named in (
        reset,
        update,
        export,
        verb("show", "people.show_user", about, ada),
        verb("reset-factors", "people.reset_factors", "remove authenticator app, passkeys and recovery codes", ada),
        verb("sign-out", "people.sign_out", "end every session of a person; apps keep their access", ada),
        disconnect,
        listed_sessions,
        end_session,
        identities,
        unlink,
        verb("disable", "people.disable_user", "stop every token, end every session, and let nobody in", ada),
        suspend,
        verb("resume", "people.enable_user", "end a suspension, as `enable` does", ada),
        verb(
            "enable",
            "people.enable_user",
            "let the person in again; tokens that have not expired work again",
            ada,
        ),
        delete,
        verb("cancel-deletion", "people.cancel_deletion", "cancel a planned deletion", ada),
    ):
        named.add_argument("email", metavar="EMAIL|SUB", help="e-mail address, or the `sub` that public apps see")
    disconnect.add_argument("client_id", metavar="CLIENT_ID", help="the app")
    end_session.add_argument("id", metavar="ID", help="as `user sessions` shows it")
    unlink.add_argument("id", metavar="ID", help="as `user identities` shows it")


def add_groups(verb: Verbs) -> None:
    """Declares the verbs of `user group`."""
    for named in (
        verb("add", "people.add_groups", "add a person to groups", 'ada@example.com staff "Site admins"'),
        verb("remove", "people.remove_groups", "remove a person from groups", "ada@example.com staff"),
    ):
        named.add_argument("email", metavar="EMAIL|SUB", help="e-mail address, or the `sub` that public apps see")
        named.add_argument("groups", metavar="GROUP", nargs="+", help="1 to 100 characters; a person has at most 50")
