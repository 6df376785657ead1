-- Whether this person, who has no second step, must set one up to sign in: everybody (`all`), or people with apps or in a
-- team (`owners`).
local function must_set_up(required, apps, teams)
  return required == 'all' or (required == 'owners' and redis.call('EXISTS', apps, teams) > 0)
end
