-- What wrk sends. One thread only: the count is its own. At the end prints one line of JSON.
--
--   wrk -t1 -s load.lua URL -- round FILE FIRST   the requests of the file in turn, from the one behind FIRST on
--   wrk -t1 -s load.lua URL -- once FILE 0        the same, but none is ever sent twice
--   wrk -t1 -s load.lua URL -- chain FILE 0       rotates refresh tokens, each token of an answer once in its turn
--   wrk -t1 -s load.lua URL -- push FILE FIRST    pushes authorization requests, and arrives once with each request_uri
--
-- FILE has parts with NUL between them: whole requests; for a chain, the text before the token in a request, the text
-- after it ("-" for none), and tokens of one length; for pushes, the request that pushes, the text before the request_uri
-- in one that arrives, and the texts after it, of which each arrival takes the next, from the one behind FIRST on.
local parts, turns_back, sender = {}, true, nil
at, ran_out, wrong = 0, 0, 0 -- not local: `done` asks the thread for them

function setup(thread)
  sender = thread
end

function request()
  at = at + 1
  if at > #parts then
    if not turns_back then ran_out = 1 end
    at = 1
  end
  return parts[at]
end

-- The tokens are a queue: the next one to present is parts[at + 1].
local function rotate()
  local before, after = parts[1], parts[2] == '-' and '' or parts[2]
  local last = #parts
  at = 2
  function request()
    if at == last then
      ran_out = 1
      return before .. after
    end
    at = at + 1
    local token = parts[at]
    parts[at] = nil
    return before .. token .. after
  end
  function response(_, _, body)
    local token = string.match(body, '"refresh_token"%s*:%s*"([^"]+)"')
    if token then
      last = last + 1
      parts[last] = token
    end
  end
end

-- A connection pushes if no request_uri waits, so half of the requests are pushes. An arrival that gets no code is wrong.
local function push()
  local pushing, before, people = parts[1], parts[2], #parts - 2
  local waiting = {}
  function request()
    local request_uri = table.remove(waiting)
    if not request_uri then return pushing end
    at = at % people + 1
    return before .. request_uri .. parts[at + 2]
  end
  function response(status, headers, body)
    if status == 201 then
      waiting[#waiting + 1] = string.match(body, '"request_uri"%s*:%s*"([^"]+)"')
    elseif not string.find(headers.Location or headers.location or '', '[?&]code=') then
      wrong = wrong + 1
    end
  end
end

function init(args)
  local kind, name, first = args[1], args[2], tonumber(args[3])
  local file = assert(io.open(name, 'rb'))
  for part in string.gmatch(file:read('*a'), '%Z+') do parts[#parts + 1] = part end
  file:close()
  at, turns_back = first, kind == 'round'
  if kind == 'chain' then rotate() end
  if kind == 'push' then push() end
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"requests": %d, "seconds": %.6f, "bytes": %d, "p50": %.3f, "p99": %.3f, "refused": %d, "broken": %d, ' ..
    '"at": %d, "ran_out": %d}\n',
    summary.requests, summary.duration / 1e6, summary.bytes, latency:percentile(50) / 1e3,
    latency:percentile(99) / 1e3, math.max(errors.status, sender:get('wrong')), errors.connect + errors.read + errors.write + errors.timeout,
    sender:get('at'), sender:get('ran_out')))
end
