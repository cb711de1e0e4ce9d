-- No request is like another: each has a header of its own.
local n = 0
request = function()
  n = n + 1
  wrk.headers["X-Number"] = string.format("%010d", n)
  return wrk.format()
end
