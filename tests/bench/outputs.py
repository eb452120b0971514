"""What the peers really printed against nginx: shortened where nothing is read."""

WRK = """\
Running 1s test @ http://127.0.0.1:18555/100b
  1 threads and 64 connections
  Thread Stats   Avg      Stdev     Max   +/- Stdev
    Latency   360.36us  142.38us   3.25ms   70.55%
    Req/Sec   118.61k    13.96k  133.08k    70.00%
percentile 50 347
percentile 75 410
percentile 90 512
percentile 95 602
percentile 99 811
percentile 99.9 1904
  118045 requests in 1.00s, 38.05MB read
Requests/sec: 117760.26
Transfer/sec:     37.96MB
"""

WRK_IN_TROUBLE = """\
Running 2s test @ http://127.0.0.1:18555/missing
  1 threads and 64 connections
  2000 requests in 2.00s, 0.90MB read
  Socket errors: connect 1, read 20, write 300, timeout 4000
  Non-2xx or 3xx responses: 1999
Requests/sec:   1000.00
"""

AB = """\
This is ApacheBench, Version 2.3 <$Revision$>
Benchmarking 127.0.0.1 (be patient).....done

Server Software:        nginx/1.22.1
Concurrency Level:      64
Time taken for tests:   1.000 seconds
Complete requests:      125421
Failed requests:        0
Keep-Alive requests:    125421
Total transferred:      42392298 bytes
HTML transferred:       12542100 bytes
Requests per second:    125419.62 [#/sec] (mean)
"""

AB_IN_TROUBLE = """\
Complete requests:      1000
Failed requests:        7
   (Connect: 0, Receive: 0, Length: 7, Exceptions: 0)
Non-2xx responses:      5
"""

H2LOAD = """\
finished in 1.00s, 80720.00 req/s, 26.02MB/s
requests: 80720 total, 80784 started, 80720 done, 80720 succeeded, 0 failed, 0 errored, 0 timeout
status codes: 80720 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 26.02MB (27283360) total, 14.40MB (15100811) headers (space savings 0.00%)
"""

HEY = """\
Summary:
  Total:\t1.0012 secs
  Requests/sec:\t32048.3205

Response time histogram:
  0.000 [1]\t|
  0.001 [10298]\t|■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■■

Status code distribution:
  [200]\t32087 responses



"""

HEY_IN_TROUBLE = """\
Status code distribution:
  [200]\t90 responses
  [404]\t7 responses

Error distribution:
  [3]\tGet "http://127.0.0.1:1/": dial tcp 127.0.0.1:1: connect: connection refused
  [2]\tGet "http://127.0.0.1:1/": net/http: request canceled
"""

HEY_CSV = """\
response-time,DNS+dialup,DNS,Request-write,Response-delay,Response-read,status-code,offset
0.0020,0.0000,0.0000,0.0000,0.0020,0.0000,200,0.0011
0.0010,0.0000,0.0000,0.0000,0.0010,0.0000,200,0.0012
0.0300,0.0000,0.0000,0.0000,0.0300,0.0000,200,0.0013
"""

OHA = """\
{"summary": {"successRate": 1.0, "total": 1.002331622},
 "latencyPercentiles": {"p10": 0.0000874, "p25": 0.000098637, "p50": 0.00012076,
  "p75": 0.000196273, "p90": 0.000277854, "p95": 0.000332596, "p99": 0.00058411,
  "p99.9": 0.005413606, "p99.99": 0.005413606},
 "statusCodeDistribution": {"200": 1000, "503": 2},
 "errorDistribution": {"aborted due to deadline": 9, "connection closed": 4}}
"""

STATUS = """\
Active connections: 64
server accepts handled requests
 39441 39440 316805
Reading: 0 Writing: 1 Waiting: 63
"""

GHZ = """{"date":"2026-11-29T08:39:11Z","endReason":"timeout","count":393,"total":341063527,\
"statusCodeDistribution":{"OK":390,"Unavailable":3}}"""
