"""/developer/apps/:client_id/usage: the figures of an app, as a page and as CSV files."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

from handlers.charts.csv_file import MEDIA_TYPE
from handlers.core.lists.paging import part_of
from handlers.core.params import once, parse_pairs
from handlers.credits.usage import ROWS, ranked_totals
from handlers.developer.apps import DeveloperPage
from handlers.developer.usage import RANGES, days_asked, models_file, usage_charts, usage_file
from store.app_stats import AppFigures
from store.credits.used import of_app
from store.phrases import Phrase


class AppUsageHandler(DeveloperPage):
    """The page."""

    async def get(self, client_id: str) -> None:
        """Shows the figures of the last 30 days, and charts of the days asked for."""
        profile, app = await self.own(client_id)
        figures = await self.store.app_stats.of(client_id)
        days = days_asked(once(parse_pairs(self.request.query)).get("days"))
        where = f"/developer/apps/{client_id}/usage"
        self.render(
            "developer/usage.html",
            title=Phrase("Usage of %(app)s", app=app.name),
            signed_in=profile,
            app=app,
            figures=figures,
            sums=SimpleNamespace(
                calls=sum(day.calls for day in figures.days),
                limited=sum(day.limited for day in figures.days),
                spent=sum(day.spent for day in figures.days),
            ),
            charts=usage_charts(figures.days[-days:], self.wording(profile.preferences)),
            range_here=days,
            ranges=[(choice, f"{where}?days={choice}") for choice in RANGES],
            csv=f"{where}.csv",
            by_model=part_of(
                ranked_totals(of_app(client_id, figures), "model"),
                ROWS,
                self.page_asked("models_page"),
                f"{where}?days={days}",
                "models_page",
                "models",
            ),
            models_csv=f"/developer/apps/{client_id}/model-usage.csv",
            names={model.model_id: model.display_name for model in self.site.models.every()},
            prices=[(model.display_name, model.price()) for model in self.site.models.all()],
            spends="credits:spend" in app.scopes,
            wrong=None,
            notice=None,
        )


class UsageFileHandler(DeveloperPage):
    """The same figures as a CSV file."""

    async def get(self, client_id: str) -> None:
        """Sends a row for each of the last 30 days."""
        await self.send_file(client_id, "", usage_file)

    async def send_file(self, client_id: str, what: str, of: Callable[[AppFigures], bytes]) -> None:
        """Sends the file that `of` makes of the app's figures. `what` is a part of its name. Raises Refused."""
        _, app = await self.own(client_id)
        figures = await self.store.app_stats.of(app.client_id)
        name = f"{app.client_id}{what}-{figures.days[-1].day}.csv"
        self.set_header("Content-Type", MEDIA_TYPE)
        self.set_header("Content-Disposition", f'attachment; filename="{name}"')
        self.finish(of(figures))


class ModelUsageFileHandler(UsageFileHandler):
    """What the app's AI calls used, as a CSV file."""

    async def get(self, client_id: str) -> None:
        """Sends a row for each model and day of the last 30 days."""
        await self.send_file(client_id, "-models", models_file)
