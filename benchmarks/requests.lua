-- Sends the requests of the file REQUESTS in random order. Each of its lines is a path, or a path, a
-- space and the body of a POST; "{n}" stands for the number of the request. As behind a proxy with
-- many clients, no two requests are equal: each has another client's address and an id of its own,
-- and one of the User-Agents of the file AGENTS, if that has some.
local requests = {}
for line in io.lines(os.getenv("REQUESTS")) do
  local path, body = line:match("^(%S+) ?(.*)$")
  requests[#requests + 1] = { path = path, body = body ~= "" and body or nil }
end
local agents = {}
for line in io.lines(os.getenv("AGENTS")) do
  agents[#agents + 1] = line
end
local n = os.time() * 1000000
math.randomseed(n % 2147483647)

request = function()
  n = n + 1
  local sent, number = requests[math.random(#requests)], string.format("%d", n)
  wrk.headers["X-Forwarded-For"] =
    string.format("10.%d.%d.%d", math.floor(n / 65536) % 256, math.floor(n / 256) % 256, n % 256)
  wrk.headers["X-Request-ID"] = string.format("%032x", n)
  if #agents > 0 then
    wrk.headers["User-Agent"] = agents[math.random(#agents)]:gsub("{n}", number)
  end
  local body = sent.body and sent.body:gsub("{n}", number)
  wrk.headers["Content-Type"] = body and "application/json"
  return wrk.format(body and "POST" or "GET", sent.path, nil, body)
end
