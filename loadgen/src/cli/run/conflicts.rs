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
            file && (args.data.is_some() || args.method != "GET" || !args.headers.is_empty()),
            "--request-file and --method, --header or --data",
            "each line of the file has its own",
        ),
        (
            file && args.expects_something(),
            "--request-file and --expect-status, --expect-bytes or --expect-sha256",
            "each line of the file has its own `expect`",
        ),
        (
            args.cpus.is_some() && args.threads != 1,
            "--cpus and --threads",
            "there is one thread on each CPU given",
        ),
        (
            args.thread_count() > args.connections as usize,
            "more threads and fewer --connections",
            "each thread has connections of its own, and at least one",
        ),
        (
            args.hdr.is_some() && args.hdr == args.csv,
            "--hdr and --csv with the same file",
            "each would overwrite the other",
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

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    fn refusal(flags: &str) -> Option<String> {
        let words = std::iter::once("loadgen").chain(flags.split_whitespace());
        find(&Cli::try_parse_from(words).expect("known flags").args)
    }

    #[test]
    fn contradictions_are_refused_with_their_reason() {
        for (flags, reason) in [
            ("u --rate 5 --stage 1s:5", "only one"),
            ("u --rate 5 --think 1s", "doesn't wait for answers"),
            ("u --conn-rate 5 --keepalive never", "--requests-per-conn says"),
            ("u --times f --poisson", "fixed already"),
            ("u --replay f --rate 5 --replay-speed 2", "replaces"),
            ("u --replay f --method HEAD", "has the methods"),
            ("u v --replay f", "takes one URL"),
            ("--request-file f --zipf 1", "say how often"),
            ("--request-file f --header A:b", "has its own"),
            ("--request-file f --expect-bytes 5", "has its own `expect`"),
            ("u --request-file f", "has the URLs"),
            ("u --cpus 0,1 -t 2", "on each CPU"),
            ("u --threads 3 --connections 2", "at least one"),
            ("u --cpus 0-4 --connections 2", "at least one"),
            ("u --hdr f --csv f", "overwrite"),
            ("u --insecure --cacert f", "needs no authority"),
            ("u --streams 2", "nothing without --http2"),
            ("u --slow-rate 2", "nothing without --slow-readers"),
            ("u --poisson", "nothing without --rate"),
            ("", "a URL is missing"),
        ] {
            let said = refusal(flags).unwrap_or_default();
            assert!(said.contains(reason), "{flags}: {said}");
        }
        assert_eq!(refusal("u v --rate 5 --poisson -t 2 -c 2 --hdr f --csv g"), None);
    }
}
