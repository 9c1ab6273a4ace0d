-- Divides the budgets of a fleet among its nodes. The store runs this script for each call of a node.
--
-- KEYS[1] is a hash, so that a store that forgets, forgets all of it:
--   'state'         the sessions of nodes, and the clock
--   'k' .. key      the record of a key: the leases of its budget, and the tokens of the unleased part
--   'm' .. serial   hints for a session: keys with a fair share that differs from its lease
--
-- ARGV: the identity of the server's process, the node's name, the start of its session, the call's number, the
-- milliseconds since its last call, the most nodes, whether it reports leases that the store has forgotten (1 or 0);
-- then for each key: the key, the milliseconds in which its bucket fills, the share that the node keeps, the tokens that
-- it returns, its demand. Shares and demands are in billionths of the budget, tokens in billionths of the burst.
--
-- Returns { 'ok', nodes, ended, rival, leases, hints }: the number of nodes; the number of sessions that have ended; 1 if
-- another node uses the same name; for each named key three numbers, its share, the tokens that come with it, its fair
-- share; for each hint the key and its fair share. Or { reason }, without a change of any lease:
--   'old'    a call that was overtaken by a later one
--   'taken'  a later node has this name
--   'full'   the fleet has its most nodes
--   'lost'   the store does not know the session: the node reports its leases, or begins a session

-- All minimum shares together are a twentieth.
local POOL = 950000000
-- A node uses a lease for three seconds. The rest is for one step of the store's clock.
local LEASE_MS = 4500
-- The longest time that may seem to pass between two calls.
local STEP_MS = 1500
local MOST_RECORDS = 200000
local MOST_HINTS = 1000
-- One call in so many looks through so many records for forgotten ones.
local SWEEPING_CALLS = 8
local SWEPT = 10

local hash = KEYS[1]
local run, name, start, number = ARGV[1], ARGV[2], tonumber(ARGV[3]), tonumber(ARGV[4])
local elapsed, nodes, reports = tonumber(ARGV[5]), tonumber(ARGV[6]), ARGV[7] == '1'

-- Redis 6 repeats scripts on replicas, unless they ask for their effects.
if redis.replicate_commands then redis.replicate_commands() end

local time = redis.call('TIME')
local wall = time[1] * 1000 + math.floor(time[2] / 1000)

local function read(field)
  local packed = redis.call('HMGET', hash, field)[1]
  return packed and cmsgpack.unpack(packed)
end

local function write(field, value)
  redis.call('HSET', hash, field, cmsgpack.pack(value))
end

-- A restarted server, or a replica that has taken over, may have lost leases. It gives none until all are over.
local state = read('state')
if not state or state.run ~= run then
  redis.call('DEL', hash)
  state = { run = run, now = 0, wall = wall, opens = LEASE_MS, serial = 0, ended = 0, cursor = '0', sessions = {} }
end

-- The wall clock may be set: no more time has passed since the last call of any node than since the caller's.
state.now = state.now + math.max(0, math.min(wall - state.wall, elapsed, STEP_MS))
state.wall = wall
local now = state.now
local is_open = now >= state.opens

-- A session is { name, start, number, serial, end, most nodes, rival }.
local sessions, count, mine, lives = {}, 0, nil, {}
for _, session in ipairs(state.sessions) do
  if session[5] > now then
    sessions[#sessions + 1] = session
    lives[session[4]] = true
    if session[1] == name then mine = session end
    if session[1] ~= '' then
      count = count + 1
      nodes = math.min(nodes, session[6])
    end
  else
    redis.call('HDEL', hash, 'm' .. session[4])
    state.ended = state.ended + 1
  end
end
state.sessions = sessions

local function refuse(reason)
  write('state', state)
  return { reason }
end

if mine and start < mine[2] then
  mine[7] = 1
  return refuse('taken')
end
if mine and start == mine[2] and number <= mine[3] then return refuse('old') end
if mine and start > mine[2] then
  -- The node has started again: its earlier leases run out.
  mine[1], mine, count = '', nil, count - 1
end
-- Each node's minimum share is a part by its own number of nodes.
if mine and count > tonumber(ARGV[6]) then return refuse('full') end
if not mine then
  if number > 1 and not (reports and not is_open) then return refuse('lost') end
  if count >= nodes then return refuse('full') end
  state.serial = state.serial + 1
  mine = { name, start, number, state.serial, 0, 0, 0 }
  sessions[#sessions + 1] = mine
  lives[state.serial] = true
  count = count + 1
end
mine[3], mine[5], mine[6] = number, now + LEASE_MS, tonumber(ARGV[6])
local serial = mine[4]

-- A record is { time, tokens, fill time }, then for each session: its serial, share and demand. Leases of an earlier
-- server may use the tokens that come before leases are given.
local fills = math.max(now, state.opens)
local function refreshed(record)
  local fresh, free = { fills, record[2], record[3] }, POOL
  for at = 4, #record, 3 do
    if lives[record[at]] then
      fresh[#fresh + 1] = record[at]
      fresh[#fresh + 1] = record[at + 1]
      fresh[#fresh + 1] = record[at + 2]
      free = free - record[at + 1]
    end
  end
  -- The part that was free all the time fills. Leases that have ended since leave an empty part.
  local before = POOL
  for at = 4, #record, 3 do before = before - record[at + 1] end
  local filled = math.floor(before * (fills - record[1]) / record[3])
  fresh[2] = math.min(before, fresh[2] + filled)
  return fresh, free
end

-- Max-min fair shares, in the order of the record's sessions.
local function fair_shares(record)
  local order, fair = {}, {}
  for at = 4, #record, 3 do order[#order + 1] = at end
  table.sort(order, function(one, other) return record[one + 2] < record[other + 2] end)
  local rest = POOL
  for position, at in ipairs(order) do
    fair[at] = math.min(record[at + 2], math.floor(rest / (#order - position + 1)))
    rest = rest - fair[at]
  end
  return fair
end

-- A thirty-second more or less is worth no call.
local function is_less(share, than)
  return share < than - than / 32
end

local hints = {}
local function hint(other, key, fair)
  if not hints[other] then
    local known = read('m' .. other) or {}
    local size = 0
    for _ in pairs(known) do size = size + 1 end
    hints[other] = { known = known, size = size }
  end
  local of = hints[other]
  if of.known[key] or of.size < MOST_HINTS then
    if not of.known[key] then of.size = of.size + 1 end
    of.known[key] = fair
  end
end

local records
local function room()
  records = records or redis.call('HLEN', hash)
  records = records + 1
  return records <= MOST_RECORDS
end

-- Settles a key with the caller; returns its share, the tokens that come with it, and its fair share.
local function settle(key, fill, keeps, returned, demand)
  local field = 'k' .. key
  local known = read(field)
  local is_new = not known
  -- A record is forgotten when the unleased part is full: so a new one has filled since leases are given.
  local record, free = refreshed(known or { state.opens, 0, fill })
  record[3] = fill

  local at
  for place = 4, #record, 3 do
    if record[place] == serial then at = place end
  end
  if not at then
    if demand == 0 and keeps == 0 then
      if not is_new then write(field, record) end
      return 0, 0, 0
    end
    if is_new and not room() then return 0, 0, 0 end
    at = #record + 1
    record[at], record[at + 1], record[at + 2] = serial, 0, 0
  end

  local counted = record[at + 1]
  if reports and not is_open and keeps > counted then
    counted = math.min(keeps, counted + free)
    free = free - (counted - record[at + 1])
    record[2] = math.min(record[2], free)
  end
  keeps = math.min(keeps, counted)
  free = free + counted - keeps
  record[2] = math.min(free, record[2] + math.min(returned, counted - keeps))
  record[at + 1], record[at + 2] = keeps, demand

  local fair = fair_shares(record)
  local share, tokens = keeps, 0
  if is_open and fair[at] > keeps and free > 0 then
    share = math.min(fair[at], keeps + free)
    tokens = math.floor(record[2] * (share - keeps) / free)
    free = free - (share - keeps)
    record[2] = record[2] - tokens
    record[at + 1] = share
  end

  -- Others with too much, if any session has too little; and others with too little, if there is more.
  local lacks = false
  for place = 4, #record, 3 do
    lacks = lacks or is_less(record[place + 1], fair[place])
  end
  local goal = share
  for place = 4, #record, 3 do
    local has, should = record[place + 1], fair[place]
    if (lacks and is_less(should, has)) or (free > 0 and is_less(has, should)) then
      if place ~= at then hint(record[place], key, should) end
    end
  end
  if lacks then goal = fair[at] end

  if share == 0 and demand == 0 then
    table.remove(record, at)
    table.remove(record, at)
    table.remove(record, at)
  end
  if #record == 3 and record[2] >= POOL then
    redis.call('HDEL', hash, field)
  else
    write(field, record)
  end
  return share, tokens, goal
end

local leases = {}
for place = 8, #ARGV, 5 do
  local share, tokens, goal = settle(ARGV[place], math.max(1, tonumber(ARGV[place + 1])), tonumber(ARGV[place + 2]),
    tonumber(ARGV[place + 3]), tonumber(ARGV[place + 4]))
  leases[#leases + 1] = share
  leases[#leases + 1] = tokens
  leases[#leases + 1] = goal
end

for other, of in pairs(hints) do write('m' .. other, of.known) end
local told = {}
local of_mine = read('m' .. serial)
if of_mine then
  for key, fair in pairs(of_mine) do
    told[#told + 1] = key
    told[#told + 1] = fair
  end
  redis.call('HDEL', hash, 'm' .. serial)
end

-- Records of sessions that have ended. To look through some costs more than a call that names nothing.
if number % SWEEPING_CALLS == 0 then
  local swept = redis.call('HSCAN', hash, state.cursor, 'COUNT', SWEPT)
  state.cursor = swept[1]
  for place = 1, #swept[2], 2 do
    local field = swept[2][place]
    if string.sub(field, 1, 1) == 'k' then
      local record = refreshed(cmsgpack.unpack(swept[2][place + 1]))
      if #record == 3 and record[2] >= POOL then redis.call('HDEL', hash, field) end
    end
  end
end

local rival = mine[7]
mine[7] = 0
write('state', state)
return { 'ok', count, state.ended, rival, leases, told }
