"""/developer/apps/:client_id/usage: the figures of an app, as a page and as a CSV file."""

from __future__ import annotations

from types import SimpleNamespace

from handlers.charts.csv_file import MEDIA_TYPE
from handlers.core.params import once, parse_pairs
from handlers.developer.apps import DeveloperPage
from handlers.developer.usage import RANGES, days_asked, usage_charts, usage_file
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
            wrong=None,
            notice=None,
        )


class UsageFileHandler(DeveloperPage):
    """The same figures as a CSV file."""

    async def get(self, client_id: str) -> None:
        """Sends a row for each of the last 30 days."""
        _, app = await self.own(client_id)
        figures = await self.store.app_stats.of(app.client_id)
        self.set_header("Content-Type", MEDIA_TYPE)
        self.set_header("Content-Disposition", f'attachment; filename="{app.client_id}-{figures.days[-1].day}.csv"')
        self.finish(usage_file(figures))
