-- As much of Redis as the script uses: one hash, a clock, and packed values.

wall_us = 0
run = 1
local data, copies, packed = {}, {}, {}
calls = 0

local function copy(value)
  if type(value) ~= 'table' then return value end
  local result = {}
  for key, one in pairs(value) do result[key] = copy(one) end
  return result
end

-- A packed value never changes: a snapshot of the hash keeps the texts alone.
cmsgpack = {
  pack = function(value)
    packed[#packed + 1] = copy(value)
    return tostring(#packed)
  end,
  unpack = function(text) return copy(packed[tonumber(text)]) end,
}

local function fields()
  local all = {}
  for field in pairs(data) do all[#all + 1] = field end
  table.sort(all)
  return all
end

local commands = {
  TIME = function() return { tostring(math.floor(wall_us / 1e6)), tostring(wall_us % 1e6) } end,
  HMGET = function(_, field) return { data[field] or false } end,
  HSET = function(_, field, value) data[field] = value end,
  HDEL = function(_, field) data[field] = nil end,
  DEL = function() data = {} end,
  HLEN = function() return #fields() end,
  HSCAN = function(_, cursor, _, count)
    local all, found = fields(), {}
    local from = tonumber(cursor)
    for place = from + 1, math.min(from + count, #all) do
      found[#found + 1] = all[place]
      found[#found + 1] = data[all[place]]
    end
    local next = from + count < #all and from + count or 0
    return { tostring(next), found }
  end,
}

redis = {
  call = function(command, ...) return commands[command](...) end,
}

KEYS = { 'limiter:{edge}:leases' }

-- Runs the script, which Rust has loaded, for one call.
function arbitrate(arguments)
  calls = calls + 1
  ARGV = arguments
  return script()
end

-- Keeps the present data, as a replica or a file would; `keep` replaces the last.
function keep() copies = copy(data) end

-- Starts another process of the server: with all its data, with the kept data, or with none.
function restart(with)
  run = run + 1
  if with == 'kept' then data = copy(copies) end
  if with == 'none' then data = {} end
end

-- Loses all data, in the same process.
function flush() data = {} end

function size() return #fields() end
