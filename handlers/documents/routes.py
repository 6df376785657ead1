"""The routes of hosted documents: the API, and the pages on which people view and delete them."""

from __future__ import annotations

from handlers.core.person_posts import ACTIVITY, PersonPost, ReauthRule
from handlers.core.policy import PAGE, Policy
from handlers.core.route import CLIENT, Route
from handlers.documents.documents import CollectionHandler, DocumentHandler, UsageHandler
from handlers.documents.pages import (
    AppDataHandler,
    DeleteDataHandler,
    DeleteDocumentHandler,
    DocumentPageHandler,
    ExportHandler,
)

ROUTES: tuple[Route, ...] = (
    Route(r"/api/v1/data/_meta/usage", UsageHandler, "usage", Policy(scope="data:read data:write", window="data-read")),
    Route(
        r"/api/v1/data/([^/]+)/([^/]+)",
        DocumentHandler,
        "document",
        Policy(scope="data:read", window="data-read", write_scope="data:write", write_window="data-write"),
    ),
    Route(r"/api/v1/data/([^/]+)", CollectionHandler, "collection", Policy(scope="data:read", window="data-list")),
    Route(rf"/account/apps/{CLIENT}/data", AppDataHandler, "account-data", PAGE),
    Route(
        rf"/account/apps/{CLIENT}/data/delete",
        DeleteDataHandler,
        "account-data-delete",
        PAGE,
        PersonPost("delete all documents of an app", ReauthRule.RECENT, (ACTIVITY,)),
    ),
    Route(rf"/account/apps/{CLIENT}/data/([^/]+)/([^/]+)", DocumentPageHandler, "account-document", PAGE),
    Route(
        rf"/account/apps/{CLIENT}/data/([^/]+)/([^/]+)/delete",
        DeleteDocumentHandler,
        "account-document-delete",
        PAGE,
        PersonPost("delete a document", ReauthRule.RECENT, (ACTIVITY,)),
    ),
    Route(rf"/account/apps/{CLIENT}/export", ExportHandler, "account-export", PAGE),
)
