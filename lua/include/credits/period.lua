-- Amounts of a period, a month or a day, by its number, and limits of them.

-- The amount that counts in the present period, and the period that counts. If the clock steps back over the end of a period,
-- the later one continues, so that none starts again.
local function in_period(booked, amount, present)
  booked = tonumber(booked or '0')
  if booked < present then return 0, present end
  return tonumber(amount), booked
end

-- The greatest share of a limit, in percent, that a charge crossed; nil if it crossed none. At 100 the limit is used up.
local function crossed(limit, before, after)
  if after >= limit then return 100 end
  before, after = before * 100, after * 100
  if before < limit * 80 and after >= limit * 80 then return 80 end
  if before < limit * 50 and after >= limit * 50 then return 50 end
end
