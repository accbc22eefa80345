-- Appends to a run's stream, or returns the reason for the refusal. KEYS: the stream, its head. ARGV: see `append` in client.rs.
local stream, head = KEYS[1], KEYS[2]
local attempt, before, remake, waiting, kind = tonumber(ARGV[1]), tonumber(ARGV[2]), ARGV[3] == '1', ARGV[4], ARGV[5]
local live_ms, waiting_ms, retention_ms = tonumber(ARGV[6]), tonumber(ARGV[7]), tonumber(ARGV[8])
local max_events, max_bytes, channel, run = tonumber(ARGV[9]), tonumber(ARGV[10]), ARGV[11], ARGV[12]
local owed, spilled = tonumber(ARGV[13]), tonumber(ARGV[14])
local most_events, most_bytes = tonumber(ARGV[15]), tonumber(ARGV[16])
local events_from, overhead = 17, 64

local function number(field, otherwise)
  return tonumber(redis.call('HGET', head, field)) or otherwise
end
local function set(field, value)
  redis.call('HSET', head, field, string.format('%d', value))
end
local function keep_for(ms)
  redis.call('PEXPIRE', stream, string.format('%d', ms))
  redis.call('PEXPIRE', head, string.format('%d', ms))
end
local function answer(verdict)
  return {verdict, redis.call('HGETALL', head)}
end

local owner = number('attempt', 0)
attempt = attempt or owner
if attempt < owner then return answer('fenced') end
if redis.call('HEXISTS', head, 'ended') == 1 then return answer('ended') end

local tail = number('tail', 0)
local newest = redis.call('XREVRANGE', stream, '+', '-', 'COUNT', 1)[1]
local stored = newest and tonumber(string.match(newest[1], '^%d+')) or 0
if remake or stored ~= tail then
  -- A stream needs both keys. The requested deletion time stays in force.
  local forget = redis.call('HGET', head, 'forget')
  redis.call('DEL', stream, head)
  if forget then redis.call('HSET', head, 'forget', forget) end
  tail = 0
  if remake then
    tail = before
    set('first', before + 1)
    set('tail', before)
  end
end
set('attempt', attempt)
if owed then set('owed', owed) end
before = before or tail
if before > tail then
  keep_for(live_ms)
  return answer('short')
end

local first, bytes, seq = number('first', 1), number('bytes', 0), before
for i = events_from, #ARGV, 3 do
  seq = seq + 1
  local id = string.format('%d-%s', seq, ARGV[i])
  if seq > tail then
    redis.call('XADD', stream, id, 'e', ARGV[i + 1], 'd', ARGV[i + 2])
    redis.call('HSETNX', head, 'from:' .. ARGV[i], string.format('%d', seq))
    bytes = bytes + #ARGV[i + 1] + #ARGV[i + 2] + overhead
  elseif seq >= first then
    local there = redis.call('XRANGE', stream, id, id)[1]
    if not there or there[2][2] ~= ARGV[i + 1] or there[2][4] ~= ARGV[i + 2] then return answer('conflict') end
  end
end
tail = math.max(tail, seq)
-- Trims events that are in the durable log first; events not logged yet stay up to the larger limit.
while tail > first and (tail - first + 1 > max_events or bytes > max_bytes) do
  if first > spilled and tail - first + 1 <= most_events and bytes <= most_bytes then break end
  local oldest = redis.call('XRANGE', stream, '-', '+', 'COUNT', 1)[1]
  redis.call('XDEL', stream, oldest[1])
  bytes = bytes - #oldest[2][2] - #oldest[2][4] - overhead
  first = first + 1
end
set('tail', tail)
set('first', first)
set('bytes', bytes)

if waiting == '1' then
  redis.call('HSET', head, 'waiting', '1')
elseif #ARGV >= events_from then
  redis.call('HDEL', head, 'waiting')
end
if kind ~= '' then
  redis.call('HSET', head, 'ended', kind)
  local time = redis.call('TIME')
  local left = number('forget', math.huge) - (time[1] * 1000 + math.floor(time[2] / 1000))
  keep_for(math.max(math.min(retention_ms, left), 1))
elseif redis.call('HEXISTS', head, 'waiting') == 1 then
  keep_for(waiting_ms)
else
  keep_for(live_ms)
end
if #ARGV >= events_from or kind ~= '' then
  redis.call('PUBLISH', channel, string.format('%d %s %s', attempt, kind == '' and '-' or kind, run))
end
return answer('ok')
