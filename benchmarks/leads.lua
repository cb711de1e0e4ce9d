-- Each request is a lead of its own.
local n = 0
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
request = function()
  n = n + 1
  local body = string.format(
    '{"name":"Reader %d","email":"reader%d@example.com","budget_tier":"starter","message":"An enquiry, number %d."}',
    n, n, n)
  return wrk.format(nil, nil, nil, body)
end
