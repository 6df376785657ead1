"""The routes to call AI models."""

from __future__ import annotations

from handlers.ai.messages import MessagesHandler, SdkCountHandler, SdkMessagesHandler
from handlers.ai.models import ModelsHandler, SdkModelHandler, SdkModelsHandler
from handlers.ai.openai import ChatHandler, ResponseHandler, ResponsesHandler
from handlers.core.policy import Policy
from handlers.core.route import Route

_PAID = Policy(scope="credits:spend", window="ai")
_FREE = Policy(scope="credits:spend", window="ai-models")

ROUTES: tuple[Route, ...] = (
    Route(r"/api/v1/ai/messages", MessagesHandler, "ai-messages", _PAID),
    Route(r"/api/v1/ai/models", ModelsHandler, "ai-models", _FREE),
    Route(r"/api/v1/ai/v1/messages", SdkMessagesHandler, "ai-sdk-messages", _PAID),
    Route(r"/api/v1/ai/v1/chat/completions", ChatHandler, "ai-chat", _PAID),
    Route(r"/api/v1/ai/v1/responses", ResponsesHandler, "ai-responses", _PAID),
    Route(r"/api/v1/ai/v1/responses/([^/]+)", ResponseHandler, "ai-response", _FREE),
    Route(r"/api/v1/ai/v1/messages/count_tokens", SdkCountHandler, "ai-sdk-count", _FREE),
    Route(r"/api/v1/ai/v1/models", SdkModelsHandler, "ai-sdk-models", _FREE),
    Route(r"/api/v1/ai/v1/models/([^/]+)", SdkModelHandler, "ai-sdk-model", _FREE),
)
