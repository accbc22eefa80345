-- Deletes a run's stream after a delay, but not before its end. KEYS: the stream, its head. ARGV: milliseconds.
local stream, head, delay = KEYS[1], KEYS[2], tonumber(ARGV[1])
if redis.call('EXISTS', head) == 0 then return 0 end
if redis.call('HEXISTS', head, 'ended') == 1 then
  local left = redis.call('PTTL', head)
  if delay <= 0 then
    redis.call('DEL', stream, head)
  elseif left < 0 or left > delay then
    redis.call('PEXPIRE', stream, string.format('%d', delay))
    redis.call('PEXPIRE', head, string.format('%d', delay))
  end
  return 1
end
local time = redis.call('TIME')
local at = time[1] * 1000 + math.floor(time[2] / 1000) + delay
local before = tonumber(redis.call('HGET', head, 'forget'))
redis.call('HSET', head, 'forget', string.format('%d', before and math.min(before, at) or at))
return 1
