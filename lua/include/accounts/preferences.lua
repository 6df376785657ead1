-- What a person chose of how pages and mails read, in one text: the code of a language, a space, and a time zone.
local function in_one(language, zone)
  return (language or '') .. ' ' .. (zone or '')
end
