"""The routes to call AI models."""

from __future__ import annotations

from handlers.ai.messages import (
    MessagesHandler,
    ModelsHandler,
    SdkCountHandler,
    SdkMessagesHandler,
    SdkModelHandler,
    SdkModelsHandler,
)
from handlers.core.policy import Policy
from handlers.core.route import Route

ROUTES: tuple[Route, ...] = (
    Route(r"/api/v1/ai/messages", MessagesHandler, "ai-messages", Policy(scope="credits:spend", window="ai")),
    Route(r"/api/v1/ai/models", ModelsHandler, "ai-models", Policy(scope="credits:spend", window="ai-models")),
    Route(r"/api/v1/ai/v1/messages", SdkMessagesHandler, "ai-sdk-messages", Policy(scope="credits:spend", window="ai")),
    Route(
        r"/api/v1/ai/v1/messages/count_tokens",
        SdkCountHandler,
        "ai-sdk-count",
        Policy(scope="credits:spend", window="ai-models"),
    ),
    Route(
        r"/api/v1/ai/v1/models", SdkModelsHandler, "ai-sdk-models", Policy(scope="credits:spend", window="ai-models")
    ),
    Route(
        r"/api/v1/ai/v1/models/([^/]+)",
        SdkModelHandler,
        "ai-sdk-model",
        Policy(scope="credits:spend", window="ai-models"),
    ),
)
