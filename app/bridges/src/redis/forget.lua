-- Has a run's stream forgotten after a while, but not before its end. KEYS: the stream, its outline. ARGV: milliseconds.
local stream, outline, delay = KEYS[1], KEYS[2], tonumber(ARGV[1])
if redis.call('EXISTS', outline) == 0 then return 0 end
if redis.call('HEXISTS', outline, 'ended') == 1 then
  local left = redis.call('PTTL', outline)
  if delay <= 0 then
    redis.call('DEL', stream, outline)
  elseif left < 0 or left > delay then
    redis.call('PEXPIRE', stream, string.format('%d', delay))
    redis.call('PEXPIRE', outline, string.format('%d', delay))
  end
  return 1
end
local time = redis.call('TIME')
local at = time[1] * 1000 + math.floor(time[2] / 1000) + delay
local before = tonumber(redis.call('HGET', outline, 'forget'))
redis.call('HSET', outline, 'forget', string.format('%d', before and math.min(before, at) or at))
return 1
