-- wrk script: the newest ten readings of a random vehicle, or of the one that is named.
--   wrk … -s newest_ten.lua URL -- VEHICLES [VEHICLE_ID]
-- Ends with one line of JSON.

local vehicles, vehicle_id

local body = '{"TableName":"telemetry","KeyConditionExpression":"vehicleId = :v",' ..
  '"ExpressionAttributeValues":{":v":{"S":"VEH#%s"}},"ScanIndexForward":false,"Limit":10}'

function init(args)
  vehicles = tonumber(args[1])
  vehicle_id = args[2]
  wrk.method = "POST"
  wrk.headers["Content-Type"] = "application/x-amz-json-1.0"
  wrk.headers["X-Amz-Target"] = "DynamoDB_20120810.Query"
end

function request()
  -- The last vehicle of a small fleet has another number, so it is left out.
  local id = vehicle_id or string.format("V-%04d", math.random(vehicles - 1))
  return wrk.format(nil, nil, nil, string.format(body, id))
end

function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    '{"queries_per_s": %.1f, "mean_ms": %.4f, "p99_ms": %.3f, "errors": %d}\n',
    summary.requests / (summary.duration / 1e6), latency.mean / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status + errors.timeout))
end
