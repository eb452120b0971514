-- For wrk and wrk2: print the percentiles that the accuracy benchmark compares, in microseconds.
done = function(_, latency, _)
  for _, percentile in ipairs({ 50, 75, 90, 95, 99, 99.9 }) do
    io.write(string.format("percentile %g %d\n", percentile, latency:percentile(percentile)))
  end
end
