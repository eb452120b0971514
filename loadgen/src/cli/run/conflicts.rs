//! Flags that contradict each other are refused with the reason.

use super::args::Args;

/// The first contradiction among the flags given, in words.
pub fn find(args: &Args) -> Option<String> {
    let rate = args.rate.is_some();
    let stages = !args.stages.is_empty();
    let times = args.times.is_some();
    let connections = args.conn_rate.is_some();
    let replay = args.replay.is_some();
    let file = args.request_file.is_some();
    let one_timetable = "each is a timetable of its own, and there is only one";
    let combinations = [
        (rate && stages, "--rate and --stage", one_timetable),
        (rate && times, "--rate and --times", one_timetable),
        (rate && connections, "--rate and --conn-rate", one_timetable),
        (stages && times, "--stage and --times", one_timetable),
        (stages && connections, "--stage and --conn-rate", one_timetable),
        (times && connections, "--times and --conn-rate", one_timetable),
        (replay && times, "--replay and --times", one_timetable),
        (replay && stages, "--replay and --stage", one_timetable),
        (replay && connections, "--replay and --conn-rate", one_timetable),
        (
            args.think.is_some() && args.is_open(),
            "--think and an open loop",
            "a pause follows an answer, and an open loop doesn't wait for answers",
        ),
        (
            connections && args.keepalive.is_some(),
            "--conn-rate and --keepalive",
            "--requests-per-conn says how many requests such a connection carries",
        ),
        (
            args.poisson && (times || replay && !rate),
            "--poisson and given times",
            "the times are fixed already",
        ),
        (
            replay && rate && args.replay_speed.is_some(),
            "--replay-speed and --rate",
            "the rate replaces the log's own times",
        ),
        (
            args.zipf.is_some() && (replay || file),
            "--zipf and --replay or --request-file",
            "the log's order, or the file's weights, say how often each is asked for",
        ),
        (replay && file, "--replay and --request-file", "both say what to ask for"),
        (file && !args.urls.is_empty(), "--request-file and URLs", "the file has the URLs"),
        (
            args.cpus.is_some() && args.threads != 1,
            "--cpus and --threads",
            "there is one thread on each CPU given",
        ),
        (
            replay && (args.data.is_some() || args.method != "GET"),
            "--replay and --data or --method",
            "the log has the methods, and no bodies",
        ),
        (
            args.layers.insecure && args.layers.cacert.is_some(),
            "--insecure and --cacert",
            "whoever takes any certificate needs no authority",
        ),
    ];
    let needs = [
        (args.requests_per_conn.is_some() && !connections, "--requests-per-conn", "--conn-rate"),
        (
            args.think_distribution.is_some() && args.think.is_none(),
            "--think-distribution",
            "--think",
        ),
        (args.replay_speed.is_some() && !replay, "--replay-speed", "--replay"),
        (args.layers.streams.is_some() && !args.layers.http2, "--streams", "--http2"),
        (args.slow_rate.is_some() && args.slow_readers == 0, "--slow-rate", "--slow-readers"),
        (args.poisson && !args.is_open(), "--poisson", "--rate, --stage or --conn-rate"),
        (args.max_backlog.is_some() && !args.is_open(), "--max-backlog", "--rate or --stage"),
    ];
    combinations
        .iter()
        .find(|(given, ..)| *given)
        .map(|(_, flags, reason)| format!("{flags} can't be combined: {reason}"))
        .or_else(|| {
            let missing = needs.iter().find(|(given, ..)| *given)?;
            Some(format!("{} means nothing without {}", missing.1, missing.2))
        })
        .or_else(|| match args.urls.len() {
            0 if !file => Some("a URL is missing: say what to ask for".into()),
            1.. if replay && args.urls.len() > 1 => {
                Some("--replay takes one URL: where the log's paths are asked for".into())
            }
            _ => None,
        })
}
