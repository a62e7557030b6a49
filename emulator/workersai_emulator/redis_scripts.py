"""What is done in Redis at one stroke: Lua that knows keys and versions, and nothing of what a record says.

Keys are under a prefix `P`, the first argument of each script. A record is a hash of its version `v` and its data;
versions are never given twice, so that a record that was forgotten and made anew is never taken for the old one.

| key | what |
|---|---|
| `said:`owner, `counts:`owner | an owner's records |
| `numbers:`account | its counters |
| `batch:`account request, `payload:`account request | a batch, and the bytes of its request |
| `batches:`account | its requests by their number |
| `line`, `sizes`, `total` | which batch was polled longest ago, and how large they are |
| `journal`, `opinions`, `seq` | the exchanges, and what was said of their gateway logs |
| `durations` | how many exchanges of each series there ever were in each bucket, and how long they took |
"""

from __future__ import annotations

from typing import Final

_FORGET: Final = """
local function forget(P, member)
  local size = redis.call('HGET', P .. 'sizes', member)
  if not size then return end
  redis.call('HDEL', P .. 'sizes', member)
  redis.call('DECRBY', P .. 'total', size)
  redis.call('DEL', P .. 'batch:' .. member, P .. 'payload:' .. member)
  redis.call('ZREM', P .. 'line', member)
  local account, request = member:match('^(%S*) (.*)$')
  redis.call('ZREM', P .. 'batches:' .. account, request)
end
"""
_VERSION: Final = """
local function version(key) return redis.call('HGET', key, 'v') or '0' end
local function written(P, key, data)
  local v = redis.call('INCR', P .. 'version')
  redis.call('HSET', key, 'v', v, 'd', data)
  return tostring(v)
end
"""

#: P, account, 1 to count an exchange, owner, its two versions as they are known, owner, … → the exchange's number,
#: the last version of all, then for each owner nothing, or where a version is not as known both with their records.
BRING: Final = """
local P, number = ARGV[1], 0
if ARGV[3] == '1' then
  redis.call('SADD', P .. 'accounts', ARGV[2])
  number = redis.call('HINCRBY', P .. 'numbers:' .. ARGV[2], 'exchange', 1)
end
local told = {number, tonumber(redis.call('GET', P .. 'version') or '0')}
for i = 4, #ARGV, 3 do
  local said = redis.call('HMGET', P .. 'said:' .. ARGV[i], 'v', 'd')
  local counts = redis.call('HMGET', P .. 'counts:' .. ARGV[i], 'v', 'd')
  if (said[1] or '0') == ARGV[i + 1] and (counts[1] or '0') == ARGV[i + 2] then
    told[#told + 1] = false
  else
    told[#told + 1] = {said[1] or '0', said[2], counts[1] or '0', counts[2]}
  end
end
return told
"""

#: P, owner, then for each record its key, the version that it must have, and its data, or nothing to leave it → the
#: new versions; nothing where a record had another.
SAVE: Final = (
    _VERSION
    + """
local P, told = ARGV[1], {}
for i = 3, #ARGV, 3 do
  if version(P .. ARGV[i]) ~= ARGV[i + 1] then return false end
end
redis.call('SADD', P .. 'accounts', ARGV[2])
for i = 3, #ARGV, 3 do
  told[#told + 1] = ARGV[i + 2] == '' and ARGV[i + 1] or written(P, P .. ARGV[i], ARGV[i + 2])
end
return told
"""
)

#: P, account, request, number, submit, life, size, payload, most bytes, most batches → the batches that went.
PUT: Final = (
    _FORGET
    + """
local P, member, gone = ARGV[1], ARGV[2] .. ' ' .. ARGV[3], {}
local v = redis.call('INCR', P .. 'version')
redis.call('HSET', P .. 'batch:' .. member, 'v', v, 'submit', ARGV[5], 'life', ARGV[6])
redis.call('SET', P .. 'payload:' .. member, ARGV[8])
redis.call('SADD', P .. 'accounts', ARGV[2])
redis.call('ZADD', P .. 'batches:' .. ARGV[2], ARGV[4], ARGV[3])
redis.call('ZADD', P .. 'line', v, member)
redis.call('HSET', P .. 'sizes', member, ARGV[7])
redis.call('INCRBY', P .. 'total', ARGV[7])
while true do
  local count = redis.call('ZCARD', P .. 'line')
  local total = tonumber(redis.call('GET', P .. 'total'))
  if count <= 1 or (total <= tonumber(ARGV[9]) and count <= tonumber(ARGV[10])) then return gone end
  gone[#gone + 1] = redis.call('ZRANGE', P .. 'line', 0, 0)[1]
  forget(P, gone[#gone])
end
"""
)

#: P, account, request, its version, its life, or nothing to forget it, the version that what the account said must
#: have, or nothing, and what it says now → the new version of that; nothing where one of both had another.
LIVE: Final = (
    _FORGET
    + _VERSION
    + """
local P, member = ARGV[1], ARGV[2] .. ' ' .. ARGV[3]
local batch, said = P .. 'batch:' .. member, P .. 'said:' .. ARGV[2]
if version(batch) ~= ARGV[4] or (ARGV[6] ~= '' and version(said) ~= ARGV[6]) then return false end
if ARGV[5] == '' then
  forget(P, member)
else
  local v = redis.call('INCR', P .. 'version')
  redis.call('HSET', batch, 'v', v, 'life', ARGV[5])
  redis.call('ZADD', P .. 'line', v, member)
end
return ARGV[6] == '' and '' or written(P, said, ARGV[7])
"""
)

#: P, account, request.
FORGET: Final = _FORGET + "forget(ARGV[1], ARGV[2] .. ' ' .. ARGV[3])"

#: P, account, or nothing for all.
RESET: Final = (
    _FORGET
    + """
local P, account = ARGV[1], ARGV[2]
redis.call('INCR', P .. 'version')
if account ~= '' then
  for _, request in ipairs(redis.call('ZRANGE', P .. 'batches:' .. account, 0, -1)) do
    forget(P, account .. ' ' .. request)
  end
  redis.call('DEL', P .. 'numbers:' .. account, P .. 'said:' .. account, P .. 'counts:' .. account)
  redis.call('SREM', P .. 'accounts', account)
  return
end
local stays = {[P .. 'format'] = true, [P .. 'seed'] = true, [P .. 'version'] = true}
stays[P .. 'seq'], stays[P .. 'durations'] = true, true
for _, key in ipairs(redis.call('KEYS', P .. '*')) do
  if not stays[key] then redis.call('DEL', key) end
end
"""
)

#: P, account, exchange, how many are kept at most, its series and another where there is no room, its bucket, how
#: many microseconds it took, how many counts are kept at most → its number.
NOTE: Final = """
local P = ARGV[1]
local seq = redis.call('INCR', P .. 'seq')
redis.call('XADD', P .. 'journal', 'MAXLEN', ARGV[4], seq .. '-0', 'account', ARGV[2], 'exchange', ARGV[3])
local counts, series = P .. 'durations', ARGV[5]
if redis.call('HEXISTS', counts, series .. ' us') == 0 and redis.call('HLEN', counts) >= tonumber(ARGV[9]) then
  series = ARGV[6]
end
redis.call('HINCRBY', counts, series .. ' ' .. ARGV[7], 1)
redis.call('HINCRBY', counts, series .. ' us', ARGV[8])
return seq
"""

#: P, account, or nothing for all.
CLEAR: Final = """
local P = ARGV[1]
if ARGV[2] == '' then return redis.call('DEL', P .. 'journal', P .. 'opinions') end
for _, entry in ipairs(redis.call('XRANGE', P .. 'journal', '-', '+')) do
  if entry[2][2] == ARGV[2] then
    redis.call('XDEL', P .. 'journal', entry[1])
    redis.call('HDEL', P .. 'opinions', entry[1])
  end
end
"""
