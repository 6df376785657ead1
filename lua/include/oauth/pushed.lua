-- How the list of an app's pushed requests names one: by its id, and after a space by the network that pushed it, if anybody
-- may push for the app. `network` is empty, or false for an absent field, if the app proved itself.
local function entry_of(id, network)
  return network and network ~= '' and id .. ' ' .. network or id
end
