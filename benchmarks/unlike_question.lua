-- No question is like another: each adds a condition of its own, which every row meets.
local n = 0
request = function()
  n = n + 1
  return wrk.format(nil, wrk.path .. string.format("&created_at=lt.2100-01-01T00:00:00.%06dZ", n))
end
