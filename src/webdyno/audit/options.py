"""What load generators' options mean to an audit, in each tool's own units."""

_HTTP = {"c": "concurrency", "connections": "concurrency", "concurrency": "concurrency"}
_LENGTH = {"d": "time_limit_s", "duration": "time_limit_s"}
_HTTP |= _LENGTH
_COUNTED = {"n": "requests", "requests": "requests"}

OPTIONS: dict[str, dict[str, str]] = {
    "ab": {"n": "requests", "c": "concurrency", "t": "time_limit_s", "k": "keepalive"},
    "wrk": _HTTP | {"R": "demanded_rps", "rate": "demanded_rps", "s": "script", "script": "script"},
    "zrk": _HTTP | {"R": "demanded_rps", "rate": "demanded_rps"},
    "h2load": _COUNTED
    | {"c": "concurrency", "clients": "concurrency", "D": "time_limit_s"}
    | {"duration": "time_limit_s", "m": "streams", "max-concurrent-streams": "streams"}
    | {"rps": "each_rps"},
    "hey": _COUNTED
    | {"c": "concurrency", "z": "time_limit_s", "q": "each_rps"}
    | {"disable-keepalive": "reconnects"},
    "oha": _COUNTED
    | {"c": "concurrency", "z": "time_limit_s", "q": "demanded_rps", "p": "streams"}
    | {"disable-keepalive": "reconnects"},
    "siege": {"c": "concurrency", "concurrent": "concurrency", "t": "minutes", "time": "minutes"},
    "redis-benchmark": _COUNTED | {"c": "concurrency", "P": "pipelining", "p": "port", "h": "host"},
    "autocannon": _HTTP
    | {"p": "pipelining", "pipelining": "pipelining", "a": "requests", "amount": "requests"}
    | {"R": "demanded_rps", "overallRate": "demanded_rps"}
    | {"r": "each_rps", "connectionRate": "each_rps"},
    "bombardier": _HTTP
    | _COUNTED
    | {"r": "demanded_rps", "rate": "demanded_rps"}
    | {"a": "reconnects", "disableKeepAlives": "reconnects"},
    "plow": _HTTP | _COUNTED | {"rate": "demanded_rps"},
    "rewrk": {"c": "concurrency", "connections": "concurrency", "d": "time_limit_s", "h": "url"},
    "ghz": {"c": "concurrency", "concurrency": "concurrency", "n": "requests", "total": "requests"}
    | {"z": "time_limit_s", "duration": "time_limit_s", "r": "demanded_rps", "rps": "demanded_rps"},
    "vegeta": {"rate": "demanded_rps", "duration": "time_limit_s"},
    "k6": {"u": "concurrency", "vus": "concurrency"} | _LENGTH,
    "locust": {"u": "concurrency", "users": "concurrency", "t": "time_limit_s"}
    | {"run-time": "time_limit_s"},
    "httperf": {
        "num-conns": "connections",
        "num-conn": "connections",
        "num-calls": "calls_per_connection",
        "num-call": "calls_per_connection",
        "rate": "demanded_rps",
        "server": "host",
        "port": "port",
        "uri": "path",
    },
}
"""Options whose meaning matters here -> attribute of Command, or `minutes`, `script` and `url`."""

FLAGS = {"keepalive", "reconnects"}
"""Attributes of options without a value."""

ALIASES = {"boom": "hey", "wrk2": "wrk"}
"""Other names -> the tool whose options they take."""

DEFAULTS: dict[str, dict[str, int]] = {
    tool: {"concurrency": 50, "requests": 200} for tool in ("hey", "oha", "ghz")
}
"""What tools do that don't print what they did."""

_BODY = "H header headers m method b body d data t timeout"
_TLS = "k insecure cert key cacert"

_NO_MATTER = {
    "ab": "T H p u v A P X C x y z w e g h V q r l s b B i f Z I E m S",
    "wrk": "t threads H header L latency U u_latency T timeout v version B batch_latency",
    "zrk": "t threads H header T timeout latency json",
    "h2load": "t threads H header i input-file d data v verbose w window-bits W f max-frame-size "
    "connection-window-bits p no-tls-proto ciphers tls13-ciphers h1 h3 alpn-list npn-list groups "
    "T connection-active-timeout N connection-inactivity-timeout warm-up-time log-file connect-to "
    "B base-uri header-table-size encoder-header-table-size histogram output-file sni ktls "
    "no-udp-gso max-udp-payload-size qlog-file-base tls-session-file",
    "hey": f"{_BODY} T a A D x h2 host disable-compression disable-redirects cpus more o U",
    "oha": f"{_BODY} T a A D Z F x r redirect w u o j wait-ongoing-requests-after-deadline http2 "
    "http-version no-tui fps latency-correction no-color disable-color output output-format json "
    "insecure cacert cert key ipv4 ipv6 host no-pre-lookup connect-to connect-timeout db-url "
    "disable-compression unix-socket stats-success-breakdown time-unit debug",
    "siege": "b benchmark d delay i internet f file H header q quiet v verbose r reps log l g get "
    "A user-agent T content-type j json-output R rc m mark p print N n",
    "redis-benchmark": "t q d r csv n k a s u threads precision e l I cluster dbnum user",
    "autocannon": f"{_BODY} i input l latency T title w workers n no-progress j json "
    "renderStatusCodes expectBody E F form t debug warmup ca S socketPath",
    "bombardier": f"{_BODY} {_TLS} f body-file l latencies p print o format s stream fasthttp "
    "http1 http2 q no-print",
    "plow": f"{_BODY} {_TLS} listen content host socks5 resp-timeout dial-timeout summary json "
    "interval seconds stream auto-open-browser",
    "rewrk": "t threads host http2 pct json m method H header b body verify-ssl",
    "ghz": "proto protoset call d data D data-file b binary B binary-file m metadata M "
    "metadata-file i import-paths insecure skipTLS skip-tls cacert cert key cname t timeout "
    "connections cpus O format o output name tags e enable-compression lb-strategy connect-timeout "
    "keepalive debug reflect-metadata",
    "vegeta": "targets body header name timeout keepalive connections max-connections workers "
    "max-workers http2 h2c insecure lazy format output redirects laddr root-certs cert key "
    "resolvers chunked max-body session-tickets type inputs",
    "k6": "e env out o config insecure-skip-tls-verify no-usage-report quiet q v verbose tag "
    "summary-export summary-trend-stats summary-mode no-color no-summary log-output http-debug",
    "locust": "f locustfile H host r spawn-rate hatch-rate headless no-web csv html L loglevel "
    "tags only-summary json w workers",
    "httperf": "hog client timeout think-timeout add-header method print-reply print-request "
    "send-buffer recv-buffer http-version v verbose ssl ssl-no-reuse ssl-ciphers server-name "
    "num-calls",
}

NO_MATTER = {tool: frozenset(names.split()) for tool, names in _NO_MATTER.items()}
"""Options that change nothing of what an audit looks at. All others are named as unread."""
